// Package postgres runs a PostgreSQL server of the machine for tests, on loopback, in a folder of its own. It installs
// nothing: make does, from Debian's packages.
package postgres

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Password is that of the superuser postgres.
const Password = "kept-out-of-every-message"

// Server is a server, which may be stopped and started.
type Server struct {
	t    testing.TB
	bin  string
	dir  string
	addr string
	as   *syscall.Credential // nil: the user of the test
	cmd  *exec.Cmd
}

// New makes a server and starts it. It is removed at the end of the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := prepare(t)
	password := filepath.Join(filepath.Dir(s.dir), "password")
	if err := os.WriteFile(password, []byte(Password), 0o644); err != nil {
		t.Fatal(err)
	}
	s.run("initdb", "-D", s.dir, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8",
		"--locale", "C", "--no-sync")
	s.Start()
	return s
}

// prepare finds the programs, a folder, a port and a user: PostgreSQL does not run as root.
func prepare(t testing.TB) *Server {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		t.Fatal("no PostgreSQL is installed: make database-test installs it")
	}
	slices.Sort(found)
	home, err := os.MkdirTemp("", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, bin: found[len(found)-1], dir: filepath.Join(home, "data"), addr: testkit.FreeAddress(t)}
	if os.Getuid() == 0 {
		s.as = unprivileged(t)
		if err := os.Chown(home, int(s.as.Uid), int(s.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(home)
	})
	return s
}

// unprivileged is the user that Debian's package makes.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = filepath.Dir(s.dir)
	cmd.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C", "PGPASSWORD=" + Password, "HOME=" + cmd.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (s *Server) run(name string, args ...string) string {
	s.t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// Start starts the server, on the port that it had before, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = s.command("postgres", "-D", s.dir, "-p", port, "-c", "listen_addresses="+host,
		"-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "wal_level=replica", "-c", "max_wal_senders=5", "-c", "hot_standby=on",
		"-c", "shared_buffers=16MB")
	log := &bytes.Buffer{}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, time.Minute, func() (bool, string) {
		return s.command("pg_isready", "-q", "-h", host, "-p", port).Run() == nil, "PostgreSQL does not start"
	})
}

// Kill kills the server.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return s.addr }

// DSN is the connection string of the superuser.
func (s *Server) DSN() string { return s.DSNOf("postgres", Password) }

// DSNOf is the connection string of a user.
func (s *Server) DSNOf(user, password string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", user, password, s.addr)
}

// Exec executes statements, one after the other, and returns what the last one prints.
func (s *Server) Exec(statements ...string) string {
	s.t.Helper()
	args := []string{"-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", s.DSN()}
	for _, statement := range statements {
		args = append(args, "-c", statement)
	}
	return strings.TrimSpace(s.run("psql", args...))
}

// Standby makes a standby of the server, as it is now, and starts it. It follows the server until that is gone.
func (s *Server) Standby() *Server {
	s.t.Helper()
	standby := prepare(s.t)
	standby.run("pg_basebackup", "-D", standby.dir, "-R", "-X", "stream", "--no-sync", "-c", "fast", "-d", s.DSN())
	standby.Start()
	return standby
}

// Promote makes a standby the primary.
func (s *Server) Promote() {
	s.t.Helper()
	s.Exec("SELECT pg_promote()")
}
