//go:build controlplane && locks

package clusters

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// zookeeperJars are where Debian has ZooKeeper and what it needs.
const zookeeperJars = "/usr/share/java/*"

// zookeeperService is a node in an ensemble. The clusters reach the first server only by their proxies.
type zookeeperService struct {
	*server
	others []*server
}

// Config implements service.
func (s *zookeeperService) Config(_ *testing.T, addr, name string) string {
	return "zookeeper: {servers: [\"" + addr + "\"], path: /corollary/" + name + "}\n"
}

// startZooKeeper starts an ensemble of so many servers.
func startZooKeeper(t *testing.T, servers int) *zookeeperService {
	t.Helper()
	var members string
	clients := make([]string, servers)
	for i := range clients {
		clients[i] = testkit.FreeAddress(t)
		members += fmt.Sprintf("server.%d=%s:%s\n", i+1, testkit.FreeAddress(t), port(testkit.FreeAddress(t)))
	}
	if servers == 1 {
		members = ""
	}
	s := &zookeeperService{}
	for i, client := range clients {
		dir := t.TempDir()
		host, _, err := net.SplitHostPort(client)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir=%s\nclientPort=%s\nclientPortAddress=%s\n"+
			"maxClientCnxns=0\nadmin.enableServer=false\nforceSync=no\n%s", dir, port(client), host, members)
		for name, text := range map[string]string{"zoo.cfg": text, "myid": fmt.Sprint(i + 1)} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		one := startServer(t, client, func() *exec.Cmd {
			return exec.Command("java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", zookeeperClasses(t),
				"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
		})
		if s.others = append(s.others, one); i == 0 {
			s.server = one
		}
	}
	return s
}

func zookeeperClasses(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/usr/share/java/zookeeper.jar"); err != nil {
		t.Fatalf("ZooKeeper is missing: run make locks-test, which installs it: %v", err)
	}
	return zookeeperJars
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return strings.TrimSpace(port)
}

func TestZooKeeperContract(t *testing.T) {
	t.Parallel()
	s := startZooKeeper(t, 1)
	conn, _, err := zk.Connect([]string{s.addr}, 5*time.Second, zk.WithLogInfo(false))
	must(t, err)
	defer conn.Close()
	eventually(t, "ZooKeeper does not answer", func() bool {
		_, _, err := conn.Exists("/")
		return err == nil
	})
	contract(t, s, func(name string) { must(t, conn.Delete("/corollary/"+name, -1)) })
	refusesGarbage(t, s, func(name, text string) {
		_, err := conn.Create("/corollary/"+name, []byte(text), 0, zk.WorldACL(zk.PermAll))
		must(t, err)
	})
}

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	chaos(t, startZooKeeper(t, 1))
}

// Restart implements service: the leader is killed, and started again once there is another one. That may be the server
// that the clusters talk to.
func (s *zookeeperService) Restart() func(*testing.T) {
	if len(s.others) == 1 {
		return s.server.Restart()
	}
	return func(t *testing.T) {
		t.Helper()
		leader := s.leader(t, nil)
		leader.kill()
		s.leader(t, leader)
		leader.start(t)
	}
}

// leader waits for the server that leads, which is not a given one.
func (s *zookeeperService) leader(t *testing.T, not *server) (found *server) {
	t.Helper()
	eventually(t, "no ZooKeeper leads", func() bool {
		for _, one := range s.others {
			if one != not && strings.Contains(ask(t, one.addr, "srvr"), "Mode: leader") {
				found = one
				return true
			}
		}
		return false
	})
	return found
}

// ask sends one of ZooKeeper's words of four letters.
func ask(t *testing.T, addr, word string) string {
	t.Helper()
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(word))
	text, _ := io.ReadAll(c)
	return string(text)
}

// TestZooKeeperEnsemble: of three servers, the leader is killed.
func TestZooKeeperEnsemble(t *testing.T) {
	t.Parallel()
	chaos(t, startZooKeeper(t, 3))
}
