//go:build controlplane && locks

package clusters

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
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

func TestZooKeeper(t *testing.T) {
	t.Parallel()
	chaos(t, startZooKeeper(t, 1))
}

// TestZooKeeperEnsemble: of three servers, the one that the clusters talk to is killed, be it the leader or not.
func TestZooKeeperEnsemble(t *testing.T) {
	t.Parallel()
	chaos(t, startZooKeeper(t, 3))
}
