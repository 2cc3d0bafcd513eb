// Package mariadb runs a MariaDB server of the machine for tests, on loopback, in a folder of its own. It installs
// nothing: make does, from Debian's packages.
package mariadb

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // registers the driver

	"github.com/corollary-dev/corollary/internal/testkit"
)

// User and Password are those of a user who may do anything.
const (
	User     = "administrator"
	Password = "kept-out-of-every-message"
)

// Server is a server, which may be stopped and started.
type Server struct {
	t    testing.TB
	dir  string
	addr string
	more []string
	cmd  *exec.Cmd
	db   *sql.DB
}

// New makes a server with the database test and starts it, with more arguments than the usual ones. It is removed at
// the end of the test.
func New(t testing.TB, more ...string) *Server {
	t.Helper()
	home, err := os.MkdirTemp("", "mariadb")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: filepath.Join(home, "data"), addr: testkit.FreeAddress(t), more: more}
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(home)
	})
	s.write("init.sql", fmt.Sprintf(
		"CREATE USER IF NOT EXISTS %[1]s IDENTIFIED BY '%[2]s';\nGRANT ALL ON *.* TO %[1]s WITH GRANT OPTION;\n"+
			"CREATE DATABASE IF NOT EXISTS test;\n", User, Password))
	install := s.command("mariadb-install-db", "--no-defaults", "--datadir="+s.dir, "--skip-test-db",
		"--auth-root-authentication-method=normal")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v (make database-test installs what is missing)\n%s", err, out)
	}
	if s.db, err = sql.Open("mysql", s.DSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	s.Start()
	return s
}

func (s *Server) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.dir), name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	if os.Getuid() == 0 {
		args = append(args, "--user=root") // which has to be said
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Dir(s.dir)
	// A server that starts removes the temporary tables in TMPDIR, those of other servers too.
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=" + cmd.Dir, "TMPDIR=" + cmd.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Start starts the server, on the port that it had before, and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	home := filepath.Dir(s.dir)
	s.cmd = s.command("mariadbd", append([]string{"--no-defaults", "--datadir=" + s.dir,
		"--bind-address=" + host, "--port=" + port,
		"--socket=" + filepath.Join(home, "socket"), "--pid-file=" + filepath.Join(home, "pid"),
		"--init-file=" + filepath.Join(home, "init.sql"),
		"--skip-name-resolve", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2"}, s.more...)...)
	log := &bytes.Buffer{}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, time.Minute, func() (bool, string) {
		err := s.db.Ping()
		return err == nil, fmt.Sprintf("MariaDB does not start: %v", err)
	})
}

// Kill kills the server.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// DSN is the connection string of the user who may do anything.
func (s *Server) DSN() string { return s.DSNOf(User, Password) }

// DSNOf is the connection string of a user.
func (s *Server) DSNOf(user, password string) string {
	return fmt.Sprintf("%s:%s@tcp(%s)/test", user, password, s.addr)
}

// Exec executes statements, one after the other.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.db.Exec(statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Text is what a query returns: the values of its only column, with commas between them.
func (s *Server) Text(query string) string {
	s.t.Helper()
	rows, err := s.db.Query(query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }() // Err returns what went wrong
	var values []string
	for rows.Next() {
		var value sql.NullString
		if err := rows.Scan(&value); err != nil {
			s.t.Fatalf("%s: %v", query, err)
		}
		values = append(values, value.String)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return strings.Join(values, ",")
}

// Begin begins a transaction of another client with some statements, which stays open until end is called.
func (s *Server) Begin(statements ...string) (end func()) {
	s.t.Helper()
	tx, err := s.db.Begin()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = tx.Rollback() })
	for _, statement := range statements {
		if _, err := tx.Exec(statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
	return func() {
		s.t.Helper()
		if err := tx.Commit(); err != nil {
			s.t.Fatal(err)
		}
	}
}
