//go:build controlplane

package clusters

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// server is a lock service that is a process of its own.
type server struct {
	addr    string
	command func() *exec.Cmd
	process *exec.Cmd
	ended   chan struct{}
}

// startServer starts a process that listens at addr, and waits until it does. It ends with the test.
func startServer(t *testing.T, addr string, command func() *exec.Cmd) *server {
	t.Helper()
	s := &server{addr: addr, command: command}
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.process, s.ended = s.command(), make(chan struct{})
	log := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(log)
	must(t, err)
	defer func() { _ = file.Close() }() // the process has it by then
	s.process.Stdout, s.process.Stderr = file, file
	must(t, s.process.Start())
	process, ended := s.process, s.ended
	go func() {
		_ = process.Wait()
		close(ended)
	}()
	eventually(t, "the lock service does not listen at "+s.addr, func() bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", s.addr)
		if err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log)
			t.Fatalf("the lock service has ended:\n%s", text)
		default:
		}
		return false
	})
}

func (s *server) kill() {
	_ = s.process.Process.Kill()
	<-s.ended
}

// Addr implements service.
func (s *server) Addr() string { return s.addr }

// Restart implements service.
func (s *server) Restart() func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		s.kill()
		s.start(t)
	}
}

// etcdService is a key in an etcd of one member.
type etcdService struct{ *server }

func (s *etcdService) Config(_ *testing.T, addr, name string) string {
	return "etcd: {endpoints: [\"http://" + addr + "\"], key: /corollary/" + name + "}\n"
}

// startEtcdWith starts an etcd of one member, whose clients use a scheme.
func startEtcdWith(t *testing.T, scheme string, more ...string) *etcdService {
	t.Helper()
	binaries, err := assets.Find()
	must(t, err)
	client, peer, dir := testkit.FreeAddress(t), testkit.FreeAddress(t), t.TempDir()
	return &etcdService{startServer(t, client, func() *exec.Cmd {
		return exec.Command(filepath.Join(binaries, "etcd"), append([]string{"--name", "m", "--data-dir", dir,
			"--listen-client-urls", scheme + "://" + client, "--advertise-client-urls", scheme + "://" + client,
			"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
			"--initial-cluster", "m=http://" + peer, "--log-level", "error"}, more...)...)
	})}
}

func TestEtcd(t *testing.T) {
	t.Parallel()
	chaos(t, startEtcdWith(t, "http"))
}
