//go:build databases

package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/postgres"
)

// A transaction that sets the cursor and commits late, after greater values were read, is found: by the next read if it is not later
// than the overlap, or else by the next one for all rows. So is a change under a clock that went back.
func TestPostgresLateTransaction(t *testing.T) {
	server := postgres.New(t)
	for i, c := range []struct {
		reason          string
		overlap         time.Duration
		set             string
		found, partials bool // by the next read
	}{
		{"within the overlap", time.Hour, "clock_timestamp()", true, true},
		{"later than the overlap", time.Nanosecond, "clock_timestamp()", false, true},
		{"a clock that went back", time.Hour, "clock_timestamp() - interval '1 day'", false, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			table := fmt.Sprintf("late%d", i)
			server.Exec("CREATE TABLE "+table+" (id int PRIMARY KEY, v text, at timestamptz)",
				"INSERT INTO "+table+" SELECT g, 'old', clock_timestamp() - interval '2 days' FROM generate_series(1, 3) g",
				"INSERT INTO "+table+" VALUES (4, 'old', clock_timestamp())")
			s := postgresSource(t, server.DSN(), "SELECT id, v, at FROM "+table, func(o *Options) {
				o.Cursor, o.Overlap, o.Full = "at", c.overlap, 1000*time.Hour
			})
			values := func() (now map[string]any) {
				t.Helper()
				rows, _, err := readAll(t, s)
				if err != nil {
					t.Fatal(err)
				}
				now = map[string]any{}
				for _, row := range rows {
					now[row.Key] = row.Columns["v"]
				}
				return now
			}
			values()
			s.cursor.past[0].begun = s.cursor.past[0].begun.Add(-2 * time.Hour) // as if it were that long ago
			values()
			end := server.Hold(t, "UPDATE "+table+" SET v = 'late', at = "+c.set+" WHERE id = 1")
			server.Exec("UPDATE " + table + " SET v = 'new', at = clock_timestamp() WHERE id = 2")
			for range 2 { // the cursor passes the value that is not committed
				if now := values(); now["2"] != "new" || now["1"] != nil && now["1"] != "old" || !s.Partial() {
					t.Fatalf("before the commit: %v", now)
				}
			}
			end()
			if now := values(); (now["1"] == "late") != c.found || s.Partial() != c.partials {
				t.Errorf("after the commit: %v, partial %t", now, s.Partial())
			}
			s.options.Full = time.Nanosecond
			if now := values(); now["1"] != "late" || len(now) != 4 || s.Partial() {
				t.Errorf("all rows: %v", now)
			}
		})
	}
}

// A table that others lock is a query that takes too long; what others have not committed is not there; and a source that waits holds
// nothing that others wait for.
func TestPostgresHeldTransactions(t *testing.T) {
	server := postgres.New(t)
	server.Exec("CREATE TABLE apps (id int PRIMARY KEY, v text)", "INSERT INTO apps VALUES (1, 'old')")
	s := postgresSource(t, server.DSN(), "SELECT id, v FROM apps", func(o *Options) { o.Listen = "apps" })
	value := func() string {
		t.Helper()
		rows, _, err := readAll(t, s)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(rows[0].Columns["v"])
	}
	end := server.Hold(t, "UPDATE apps SET v = 'new'", "INSERT INTO apps VALUES (2, 'new')")
	must.Same(t, "old", value(), "what is not committed is read")
	end()
	must.Same(t, "new", value(), "after the commit")
	end = server.Hold(t, "LOCK TABLE apps IN ACCESS EXCLUSIVE MODE")
	s.options.Timeout = 300 * time.Millisecond
	if _, _, err := readAll(t, s); err == nil || !strings.Contains(err.Error(), "took longer than 300ms (source.timeout)") &&
		!strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("a table that is locked: %v", err)
	}
	end()
	s.options.Timeout = time.Minute
	must.Same(t, "new", value(), "after the lock")
	// With no other connection than this one, a statement that waits for nobody.
	server.Exec("SET lock_timeout = '1ms'", "ALTER TABLE apps ADD COLUMN more text")
	if n := server.Exec("SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"); n != "0" {
		t.Errorf("%s transactions are open while nothing is read", n)
	}
}

// A thousand notifications cause one execution: those that came before it are about what it sees.
func TestPostgresManyNotifications(t *testing.T) {
	server := postgres.New(t)
	s := postgresSource(t, server.DSN(), "SELECT 1 AS id", func(o *Options) { o.Listen = "apps" })
	if _, _, err := readAll(t, s); err != nil {
		t.Fatal(err)
	}
	var burst []string
	for i := range 1000 {
		burst = append(burst, fmt.Sprintf("NOTIFY apps, '%d'", i))
	}
	server.Exec(burst...)
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readAll(t, s); err != nil {
		t.Fatal(err)
	}
	s.options.Poll = 3 * time.Second
	begun := s.begun
	if err := s.Wait(t.Context()); err != nil || time.Since(begun) < s.options.Poll {
		t.Errorf("the next execution is %s after the last: %v", time.Since(begun), err)
	}
}

// Text of any encoding is read as what it says, and what is not text does no harm.
func TestPostgresEncodings(t *testing.T) {
	server := postgres.New(t)
	for _, c := range []struct{ encoding, value, want, wantErr string }{
		{"LATIN1", `convert_from('\xe9', 'LATIN1')`, "é", ""},
		{"SQL_ASCII", `convert_from('\x61ff62', 'SQL_ASCII')`, "a\uFFFDb", ""},
		{"UTF8", `E'\u202e\u0001\ufffe'`, "\u202e\u0001\ufffe", ""},
	} {
		server.Exec("CREATE DATABASE " + c.encoding + " ENCODING '" + c.encoding + "' TEMPLATE template0")
		dsn := strings.Replace(server.DSN(), "/postgres?", "/"+strings.ToLower(c.encoding)+"?", 1)
		rows, _, err := readAll(t, postgresSource(t, dsn, "SELECT 1 AS id, "+c.value+" AS v"))
		if err != nil || rows[0].Columns["v"] != c.want {
			t.Errorf("%s: %q, %v", c.encoding, rows, err)
		}
	}
	ascii := strings.Replace(server.DSN(), "/postgres?", "/sql_ascii?", 1)
	for _, c := range []struct{ dsn, key string }{
		{ascii, `convert_from('\x61ff', 'SQL_ASCII')`}, {server.DSN(), `'\x00'::bytea`}, {server.DSN(), "'\"a\"'::jsonb"}, {server.DSN(), "1.5::float8"},
		{server.DSN(), "now()"}, {server.DSN(), "true"},
	} {
		_, _, err := readAll(t, postgresSource(t, c.dsn, "SELECT "+c.key+" AS id"))
		if err == nil || !strings.Contains(err.Error(), "which source.key names, is neither text nor a whole number in row 1: cast it to text") {
			t.Errorf("a key that is %s: %v", c.key, err)
		}
	}
}

// A value of hundreds of megabytes is refused before it is read.
func TestPostgresHugeValue(t *testing.T) {
	server := postgres.New(t)
	for _, c := range []struct{ query, want string }{
		{"SELECT 1 AS id, repeat('x', 200000000) AS v", "the database sends a row of more than 4 MiB: select less"},
		{"SELECT 1 AS id, repeat('x', 2000000) AS v", `the row "1" of source.query has 2000015 bytes`},
		{"SELECT g AS id, repeat('x', 1000000) AS v FROM generate_series(1, 1000) g", "the rows of source.query have more than 268435456 bytes"},
	} {
		if _, _, err := readAll(t, postgresSource(t, server.DSN(), c.query)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.query, err)
		}
	}
}

// A write that waits for a lock ends on the server at the deadline of its context, even if the client is frozen and does not ask for it.
func TestPostgresWriteDeadline(t *testing.T) {
	server := postgres.New(t)
	server.Exec("CREATE TABLE apps (id int PRIMARY KEY, state text)", "INSERT INTO apps VALUES (1, 'old')")
	w := newWriter(t, PostgresWriter, server.DSN(), "UPDATE apps SET state = $state WHERE id = $id")
	w.options.Timeout = time.Hour
	write := func(ctx context.Context, state string) error {
		return w.set(ctx, map[string]any{"id": 1, "state": state})
	}
	end := server.Hold(t, "SELECT * FROM apps FOR UPDATE")
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var answer *RefusedError
	if err := write(short, "late"); !errors.As(err, &answer) || !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("the server has not ended it: %v", err)
	}
	end()
	if err := write(t.Context(), "new"); err != nil {
		t.Error(err)
	}
	must.Same(t, "new", server.Exec("SELECT state FROM apps"), "the state")
}

// Whatever a state says, it is written as it is.
func TestPostgresWritesHostileValues(t *testing.T) {
	server := postgres.New(t)
	server.Exec("CREATE TABLE apps (id text PRIMARY KEY, state text, message varchar, n int DEFAULT 0)")
	w := newWriter(t, PostgresWriter, server.DSN(), "INSERT INTO apps (id, state, message, n) VALUES ($id, 'x', $message, 1) "+
		"ON CONFLICT (id) DO UPDATE SET state = $message, message = $message || '', n = apps.n + 1")
	testHostileWrites(t, w, postgresSource(t, server.DSN(), "SELECT id, state, message, n FROM apps"), "\x00")
}
