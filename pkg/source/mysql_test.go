//go:build databases

package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corollary-dev/corollary/internal/mariadb"
	"github.com/corollary-dev/corollary/internal/must"
)

func TestMySQLTypes(t *testing.T) {
	server := mariadb.New(t)
	server.Exec(`CREATE TABLE t (id int PRIMARY KEY, tiny tinyint, yes boolean, big bigint, huge bigint unsigned, small bigint unsigned, dec_ decimal(30,10),
		f float, d double, c char(5), v varchar(100), x text CHARACTER SET latin1, b blob, bin binary(2), at datetime(6),
			ts timestamp(3) NULL, da date, ti time,
		y year, e enum('glad', 'sad'), s set('a', 'b'), bits bit(9), j json, zero datetime, nothing int)`,
		"SET sql_mode = ''",
		`INSERT INTO t VALUES (1, -5, true, -9223372036854775808, 18446744073709551615, 9007199254740993, 12345678901234567890.1, 0.1, 0.1, 'a',
		'}}"; DROP TABLE t; -- {{ .x }}\n', 'é', x'00ff', unhex('00ff'),
		'2026-01-02 03:04:05.5', '2026-01-02 03:04:05.123', '2026-01-02', '25:00:00',
		2026, 'glad', 'a,b', b'100000001', '{"a": [9007199254740993, 1.5, null]}', '0000-00-00', NULL)`)
	want := map[string]any{"tiny": int64(-5), "yes": int64(1), "big": int64(-9223372036854775808),
		"huge":  "18446744073709551615",
		"small": int64(9007199254740993), "dec_": "12345678901234567890.1000000000", "f": 0.1, "d": 0.1, "c": "a",
		"v": "}}\"; DROP TABLE t; -- {{ .x }}\n",
		"x": "é", "b": "AP8=", "bin": "AP8=", "at": "2026-01-02T03:04:05.5Z", "ts": "2026-01-02T03:04:05.123Z", "da": "2026-01-02",
		"ti": "25:00:00",
		"y":  int64(2026), "e": "glad", "s": "a,b", "bits": int64(257), "j": `{"a": [9007199254740993, 1.5, null]}`, "zero": "0000-00-00 00:00:00"}
	for _, cursor := range []string{"", "id"} { // with a parameter, values come in another form
		s := mysqlSource(t, server.DSN(), "SELECT * FROM t", func(o *Options) { o.Cursor, o.Full = cursor, time.Hour })
		for range 3 {
			readsAs(t, s, want)
		}
		if s.Partial() != (cursor != "") {
			t.Error("not read as wanted")
		}
	}
}

// A JSON column of MySQL is a structure. MariaDB has no such type, so it is the only one that is not read from a server
// here.
func TestMySQLJSON(t *testing.T) {
	value, err := mysqlValue("JSON", []byte(`{"a": [9007199254740993, null]}`))
	if diff := cmp.Diff(map[string]any{"a": []any{int64(9007199254740993), nil}}, value); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// Whatever fails, the error says what, and has no part of the connection string.
func TestMySQLErrors(t *testing.T) {
	server := mariadb.New(t)
	server.Exec("CREATE TABLE apps (id int, name text)", "INSERT INTO apps VALUES (1, 'a')",
		"CREATE USER someuser IDENTIFIED BY 'somepassword'",
		"CREATE TABLE other (id int)", "GRANT SELECT ON test.other TO someuser")
	good := server.DSN()
	testFailures(t, mysqlSource, []failure{
		{"not a connection string", "mysql://" + mariadb.Password, "SELECT 1 AS id",
			"the connection string is not one: write USER:PASSWORD@tcp("},
		{"a wrong port", "u:" + mariadb.Password + "@tcp(127.0.0.1:1)/test", "SELECT 1 AS id",
			"the server cannot be reached: connect: connection refused"},
		{"a host that does not exist", "u:" + mariadb.Password + "@tcp(nowhere.invalid:1)/test", "SELECT 1 AS id",
			"the name of the host is not known"},
		{"a wrong password", server.DSNOf(mariadb.User, "wrong"+mariadb.Password), "SELECT 1 AS id",
			"Access denied for user '…' (using password: YES) (error 1045)"},
		{"a database that does not exist", strings.Replace(good, "/test", "/none", 1), "SELECT 1 AS id", "Unknown database 'none' (error 1049)"},
		{"a server without TLS", good + "?tls=true", "SELECT 1 AS id", "the connection was lost, or could not be made"},
		{"a right that is missing", server.DSNOf("someuser", "somepassword"), "SELECT * FROM apps", "SELECT command denied to user '…' for table `test`.`apps` (error 1142)"},
		{"a table that does not exist", good, "SELECT id FROM nothing",
			"executing source.query: Table 'test.nothing' doesn't exist (error 1146)"},
		{"a statement that writes", good, "DELETE FROM apps", "Cannot execute statement in a READ ONLY transaction (error 1792)"},
		{"a statement that changes a table", good, "DROP TABLE apps", "Cannot execute statement in a READ ONLY transaction (error 1792)"},
		{"two statements", good + "?multiStatements=true", "SELECT id FROM apps; DELETE FROM apps",
			"source.query: it is more than one statement"},
		{"a file of ours", good + "?allowAllFiles=true", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE apps", "READ ONLY transaction"},
		{"a key twice", good, "SELECT 1 AS id UNION ALL SELECT 1", `two rows of source.query have the id "1"`},
		{"a key of bytes", good, "SELECT x'00ff' AS id", "is neither text nor a whole number in row 1: cast it to text"},
		{"a key that is a time", good, "SELECT now() AS id", "is neither text nor a whole number in row 1: cast it to text"},
		{"a key that is a fraction", good, "SELECT 1.5e0 AS id", "is neither text nor a whole number in row 1: cast it to text"},
		{"a million rows", good, "SELECT seq AS id FROM seq_1_to_1000000", "more than 20000 rows"},
		{"a row that is too large", good, "SELECT 1 AS id, repeat('x', 2000000) AS v", `the row "1" of source.query has 2000015 bytes`},
	}, mariadb.Password, mariadb.User, "somepassword", "someuser", "127.", "nowhere.invalid")
	must.Same(t, "1", server.Text("SELECT count(*) FROM apps"), "rows are left")
}

// A slow query ends on the server, too, as does one that waits for a lock. A source that waits holds nothing that
// others wait for.
func TestMySQLSlowQuery(t *testing.T) {
	server := mariadb.New(t)
	server.Exec("CREATE TABLE apps (id int PRIMARY KEY)", "INSERT INTO apps VALUES (1)")
	fails := func(s *Source) {
		t.Helper()
		if _, _, err := readAll(t, s); err == nil || !strings.Contains(err.Error(), "took longer than 1s (source.timeout)") &&
			!strings.Contains(err.Error(), "max_statement_time") && !strings.Contains(err.Error(), "Lock wait timeout") {
			t.Errorf("got %v", err)
		}
	}
	second := func(o *Options) { o.Timeout = time.Second }
	fails(mysqlSource(t, server.DSN(), "SELECT 1 AS id FROM (SELECT sleep(600)) AS s", second))
	const sleeping = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%sleep(600)) AS s' "
	eventually(t, "the query still runs", func() bool { return server.Text(sleeping) == "0" })
	s := mysqlSource(t, server.DSN(), "SELECT id FROM apps", second)
	end := server.Begin("UPDATE apps SET id = 2")
	if rows, _, err := readAll(t, s); err != nil || rows[0].Key != "1" {
		t.Errorf("what is not committed is read: %v, %v", rows, err)
	}
	end()
	if rows, _, err := readAll(t, s); err != nil || rows[0].Key != "2" {
		t.Errorf("after the commit: %v, %v", rows, err)
	}
	server.Exec("SET SESSION lock_wait_timeout = 1", "ALTER TABLE apps ADD COLUMN more text")
	end = server.Begin("LOCK TABLES apps WRITE")
	fails(s)
	end()
	server.Exec("UNLOCK TABLES")
}

// A lost connection is an error once, and the next read connects again.
func TestMySQLRestarts(t *testing.T) {
	server := mariadb.New(t)
	server.Exec("CREATE TABLE apps (id int)", "INSERT INTO apps VALUES (1), (2)")
	s := mysqlSource(t, server.DSN(), "SELECT id FROM apps")
	testRestart(t, s, server, func(func() error) {})
}

// Rows are not gone because another server, or a replica, does not have them.
func TestMySQLFailover(t *testing.T) {
	primary, other := mariadb.New(t), mariadb.New(t, "--server-id=2", "--read-only")
	for _, server := range []*mariadb.Server{primary, other} {
		server.Exec("CREATE TABLE apps (id int)", "INSERT INTO apps VALUES (1)")
	}
	dsn := primary.DSN()
	s := mysqlSource(t, "", "SELECT id FROM apps")
	s.options.DSN = func(context.Context) (string, error) { return dsn, nil }
	at := func(server *mariadb.Server) Doubt {
		t.Helper()
		dsn = server.DSN()
		s.Close()
		_, doubt, err := readAll(t, s)
		if err != nil {
			t.Fatal(err)
		}
		return doubt
	}
	if doubt := at(primary); doubt != (Doubt{}) {
		t.Errorf("the first result: %v", doubt)
	}
	if doubt := at(other); !doubt.Lasting || !strings.Contains(doubt.Why, "another database answered") {
		t.Errorf("another server: %v", doubt)
	}
	if doubt := at(other); doubt.Lasting || !strings.Contains(doubt.Why, "a standby answered") {
		t.Errorf("a replica: %v", doubt)
	}
	other.Exec("SET GLOBAL read_only = 0")
	if doubt := at(other); doubt != (Doubt{}) {
		t.Errorf("a replica that became the primary: %v", doubt)
	}
}

// A cursor works for the types that grow, and finds a change of a microsecond.
func TestMySQLCursor(t *testing.T) {
	server := mariadb.New(t)
	testCursor(t, mysqlSource, server.DSN(), server.Exec, "a`b", "`a``b`", []growing{
		{"bigint", "9007199254740993", "9007199254740994"},
		{"bigint unsigned", "18446744073709551614", "18446744073709551615"},
		{"datetime(6)", "'2026-01-01 00:00:00.000001'", "'2026-01-01 00:00:00.000002'"},
		{"timestamp(6) NULL", "'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.000001'"},
		{"decimal(30,20)", "1.00000000000000000001", "1.00000000000000000002"},
		{"date", "'2026-01-01'", "'2026-01-02'"},
		{"varchar(100)", `'1''; DROP TABLE t0; -- ?'`, `'2''; DROP TABLE t0; -- ?'`},
	})
}

// Whatever a state says, it is written as it is; a parameter may be used more than once. A write that waits for a lock
// is not done once nobody waits for it any more.
func TestMySQLWriter(t *testing.T) {
	server := mariadb.New(t)
	server.Exec("CREATE TABLE apps (id varchar(200) PRIMARY KEY, state longtext, message longtext, n int DEFAULT 0) CHARACTER SET utf8mb4")
	dsn := server.DSN()
	w := newWriter(t, MySQLWriter, dsn, "INSERT INTO apps (id, state, message, n) VALUES ($id, $message, 'x', 1) "+
		"ON DUPLICATE KEY UPDATE state = $message, message = concat($message, ''), n = n + 1")
	testHostileWrites(t, w, mysqlSource(t, dsn, "SELECT id, state, message, n FROM apps"), "nothing")
	write := func(ctx context.Context, id int, value string) error {
		return w.set(ctx, map[string]any{"id": fmt.Sprint(id), "message": value})
	}
	must.Do(t, write(t.Context(), 0, "first"))
	end := server.Begin("SELECT * FROM apps WHERE id = '0' FOR UPDATE")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- write(ctx, 0, "late") }()
	const waiting = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO apps%'"
	eventually(t, "the write does not wait", func() bool { return server.Text(waiting) == "1" })
	cancel()
	var refused *RefusedError
	if err := <-done; err == nil || errors.As(err, &refused) {
		t.Errorf("a write that was given up: %v", err)
	}
	end()
	must.Do(t, write(t.Context(), 1, "next"))
	if n := server.Text("SELECT state FROM apps WHERE id = '0' FOR UPDATE"); n == "late" {
		t.Error("a write that was given up is done")
	}
	server.Exec("ALTER TABLE apps DROP COLUMN n")
	if err := write(t.Context(), 1, "x"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "Unknown column 'n'") {
		t.Errorf("a statement that the server refuses: %v", err)
	}
	server.Kill()
	if err := write(t.Context(), 1, "x"); err == nil || errors.As(err, &refused) {
		t.Errorf("a server that is gone: %v", err)
	}
}
