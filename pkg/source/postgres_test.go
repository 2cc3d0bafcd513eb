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

func TestPostgresTypes(t *testing.T) {
	server := postgres.New(t)
	server.Exec("CREATE TYPE mood AS ENUM ('glad', 'sad')", "CREATE ROLE reader LOGIN PASSWORD 'unprivileged'")
	for _, c := range []struct {
		reason, value string
		want          any
	}{
		{"an integer of 64 bits", "9223372036854775807::bigint", int64(9223372036854775807)},
		{"one of 16", "-5::smallint", int64(-5)},
		{"numeric is text: all its digits count", "12345678901234567890.10::numeric", "12345678901234567890.10"},
		{"a real number", "1.25::float8", 1.25},
		{"the shortest text that is the number", "0.1::float4", 0.1},
		{"not a number", "'NaN'::float8", "NaN"},
		{"text", "'007'", "007"},
		{"hostile text", `'}}"; DROP TABLE t; -- {{ .x }}' || chr(10) || 'x: y'`, "}}\"; DROP TABLE t; -- {{ .x }}\nx: y"},
		{"a boolean", "true", true},
		{"bytes", `'\x00ff'::bytea`, "AP8="},
		{"a time with a zone", "'2026-01-02 03:04:05.5+02'::timestamptz", "2026-01-02T01:04:05.5Z"},
		{"a time in another zone's half hours", "'2026-01-02 03:04:05+05:30'::timestamptz", "2026-01-01T21:34:05Z"},
		{"a time without a zone", "'2026-01-02 03:04:05'::timestamp", "2026-01-02T03:04:05Z"},
		{"a time without end", "'infinity'::timestamptz", "infinity"},
		{"a time before our calendar", "'0044-03-15 BC'::timestamptz", "0044-03-15 00:00:00+00 BC"},
		{"a date", "'2026-01-02'::date", "2026-01-02"},
		{"a uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		{"an enum", "'glad'::mood", "glad"},
		{"JSON", `'{"a": [9007199254740993, 1.5, null], "b": null}'::jsonb`, map[string]any{"a": []any{int64(9007199254740993), 1.5, nil}}},
		{"the null of JSON is no value", "'null'::jsonb", nil},
		{"an array of texts", `ARRAY['a,b', '"{}"', NULL, 'NULL']`, []any{"a,b", `"{}"`, nil, "NULL"}},
		{"an array of integers", "ARRAY[1, 9007199254740993]::bigint[]", []any{int64(1), int64(9007199254740993)}},
		{"an array of arrays", "ARRAY[[1, 2], [3, 4]]", []any{[]any{int64(1), int64(2)}, []any{int64(3), int64(4)}}},
		{"an empty array", "'{}'::text[]", []any{}},
		{"an array of JSON", `ARRAY['{"a": 1}'::jsonb]`, []any{map[string]any{"a": int64(1)}}},
		{"an interval", "'1 day 2 hours'::interval", "1 day 02:00:00"},
		{"a network", "'10.0.0.0/8'::cidr", "10.0.0.0/8"},
		{"NULL is no value", "NULL::int", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			readsAs(t, postgresSource(t, server.DSNOf("reader", "unprivileged"), "SELECT 1 AS id, "+c.value+" AS v"), map[string]any{"v": c.want})
		})
	}
}

// Comments and semicolons at the end of a query change nothing, with and without a cursor.
func TestPostgresQueryEnds(t *testing.T) {
	server := postgres.New(t)
	for _, end := range queryEnds {
		for _, column := range []string{"", "id"} {
			s := postgresSource(t, server.DSN(), "SELECT generate_series(1, 2) AS id"+end, func(o *Options) { o.Cursor = column })
			if rows, _, err := readAll(t, s); err != nil || len(rows) != 2 {
				t.Errorf("%q with the cursor %q: %d rows, %v", end, column, len(rows), err)
			}
		}
	}
}

// Whatever fails, the error says what, and has no part of the connection string.
func TestPostgresErrors(t *testing.T) {
	server := postgres.New(t)
	server.Exec(
		"CREATE TABLE apps (id int, name text)",
		"INSERT INTO apps VALUES (1, 'a')",
		"CREATE FUNCTION refuse(v text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '% is refused', v; END $$",
		"CREATE ROLE someuser LOGIN PASSWORD 'somepassword'",
	)
	good := server.DSN()
	testFailures(t, postgresSource, []failure{
		{"not a connection string", "://" + postgres.Password, "SELECT 1 AS id", "the connection string is not one: write postgres://"},
		{"a wrong port", "postgres://postgres:" + postgres.Password + "@127.0.0.1:1/x?sslmode=disable", "SELECT 1 AS id",
			"the server cannot be reached: connect: connection refused"},
		{"a host that does not exist", "postgres://u:" + postgres.Password + "@nowhere.invalid/x", "SELECT 1 AS id",
			"the name of the host is not known"},
		{"a wrong password", server.DSNOf("postgres", "wrong"+postgres.Password), "SELECT 1 AS id", `password authentication failed for user "…" (SQLSTATE 28P01)`},
		{"an unknown user", server.DSNOf("nobodyatall", postgres.Password), "SELECT 1 AS id", `password authentication failed for user "…"`},
		{"a right that is missing", server.DSNOf("someuser", "somepassword"), "SELECT * FROM apps",
			"executing source.query: permission denied for table apps (SQLSTATE 42501)"},
		{"a table that does not exist", good, "SELECT id FROM nothing", `relation "nothing" does not exist (SQLSTATE 42P01, at character`},
		{"a statement that writes", good, "DELETE FROM apps RETURNING id", "cannot execute DELETE in a read-only transaction (SQLSTATE 25006)"},
		{"two statements", good, "SELECT id FROM apps; DELETE FROM apps",
			"reading source.query: it is more than one statement"},
		{"an error in the middle of the rows", good, "SELECT g AS id, 1 / (5000 - g) FROM generate_series(1, 10000) g",
			"division by zero (SQLSTATE 22012)"},
		{"a cast that fails", good, "SELECT 1 AS id, v::int FROM (VALUES (format('%s%s', 'nobody', 'atall'))) AS t(v)",
			"executing source.query: invalid input syntax for type integer: … (SQLSTATE 22P02)"},
		{"a cast of text in the query", good, "SELECT 1 AS id, 'x'::int", `invalid input syntax for type integer: "x" (SQLSTATE 22P02, at character`},
		{"a name that comes from a row", good, "SELECT 1 AS id, format('%s%s', 'nobody', 'atall')::regclass",
			"relation … does not exist (SQLSTATE 42P01)"},
		{"JSON that is none", good, "SELECT 1 AS id, format('%s%s', 'nobody', 'atall')::json",
			"a value is not valid for its type or for a function"},
		{"a function's own text", good, "SELECT refuse(format('%s%s', 'nobody', 'atall')) AS id", "it may quote a row (SQLSTATE P0001)"},
		{"a key twice", good, "SELECT 1 AS id UNION ALL SELECT 1", `two rows of source.query have the id "1"`},
		{"a million rows", good, "SELECT g AS id FROM generate_series(1, 1000000) g", "more than 20000 rows"},
	}, postgres.Password, "somepassword", "127.", "nowhere.invalid", "nobodyatall")
	if n := server.Exec("SELECT count(*) FROM apps"); n != "1" {
		t.Errorf("%s rows are left", n)
	}
}

// A slow query ends on the server, too.
func TestPostgresSlowQuery(t *testing.T) {
	server := postgres.New(t)
	s := postgresSource(t, server.DSN(), "SELECT 1 AS id FROM pg_sleep(600)", func(o *Options) { o.Timeout = 300 * time.Millisecond })
	if _, _, err := readAll(t, s); err == nil ||
		!strings.Contains(err.Error(), "took longer than 300ms") && !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("got %v", err)
	}
	const sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
	eventually(t, "the query still runs", func() bool { return server.Exec(sleeping) == "0" })
}

// A lost connection is an error once, and the next read connects again. A restart in between does not matter.
func TestPostgresRestarts(t *testing.T) {
	server := postgres.New(t)
	server.Exec("CREATE TABLE apps (id int)", "INSERT INTO apps VALUES (1), (2)")
	s := postgresSource(t, server.DSN(), "SELECT id FROM apps")
	testRestart(t, s, server, func(read func() error) {
		server.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		if err := errors.Join(read(), read()); err == nil || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("after a lost connection: %v", err)
		}
	})
}

// A notification ends the wait; one that is missed does not matter, since the query is executed again in time.
func TestPostgresNotifications(t *testing.T) {
	server := postgres.New(t)
	s := postgresSource(t, server.DSN(), "SELECT 1 AS id", func(o *Options) { o.Listen = `odd "name` })
	wait := func(want string, act func()) {
		t.Helper()
		if _, _, err := readAll(t, s); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- s.Wait(t.Context()) }()
		act()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(want, err)
			}
		case <-time.After(time.Minute):
			t.Fatal(want)
		}
	}
	wait("a notification does not end the wait", func() { server.Exec(`NOTIFY "odd ""name"`) })
	wait("a lost connection does not end the wait", func() {
		server.Exec(
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
		)
	})
	wait("after a new connection there are no notifications", func() { server.Exec(`NOTIFY "odd ""name"`) })
	s.options.Poll = 2 * time.Second
	wait("without a notification the wait does not end", func() {})
}

// Rows are not gone because a standby has not seen them.
func TestPostgresFailover(t *testing.T) {
	primary := postgres.New(t)
	primary.Exec("CREATE TABLE apps (id int)", "INSERT INTO apps VALUES (1)")
	standby := primary.Standby()
	dsn := primary.DSN()
	s := postgresSource(t, "", "SELECT id FROM apps")
	s.options.DSN = func(context.Context) (string, error) { return dsn, nil }
	at := func(server *postgres.Server) (string, Doubt, error) {
		dsn = server.DSN()
		s.Close()
		rows, doubt, err := readAll(t, s)
		return fmt.Sprint(len(rows)), doubt, err
	}
	if n, doubt, err := at(primary); n != "1" || doubt != (Doubt{}) || err != nil {
		t.Fatal(n, doubt, err)
	}
	standby.Exec("SELECT pg_wal_replay_pause()")
	primary.Exec("INSERT INTO apps VALUES (2)")
	if n, _, err := at(primary); n != "2" || err != nil {
		t.Fatal(n, err)
	}
	if _, _, err := at(standby); err == nil || !strings.Contains(err.Error(), "the server that answered is behind") {
		t.Errorf("a standby that lags: %v", err)
	}
	standby.Exec("SELECT pg_wal_replay_resume()")
	eventually(t, "the standby stays behind", func() bool {
		n, doubt, err := at(standby)
		if err == nil && (n != "2" || doubt.Lasting || !strings.Contains(doubt.Why, "a standby answered")) {
			t.Errorf("a standby that has caught up: %s rows, %v", n, doubt)
		}
		return err == nil
	})
	standby.Exec("SELECT pg_wal_replay_pause()")
	primary.Exec("INSERT INTO apps VALUES (3)")
	if n, _, err := at(primary); n != "3" || err != nil {
		t.Fatal(n, err)
	}
	primary.Kill()
	standby.Exec("SELECT pg_wal_replay_resume()", "SELECT pg_promote()")
	n, doubt, err := at(standby)
	if err != nil || !doubt.Lasting || !strings.Contains(doubt.Why, "a standby became the primary") {
		t.Errorf("after a failover: %s rows, %v, %v", n, doubt, err)
	}
	if _, doubt, err := at(standby); err != nil || doubt != (Doubt{}) {
		t.Errorf("after the first result: %v, %v", doubt, err)
	}
	standby.Exec("DELETE FROM apps")
	primary.Start() // the old one, which does not know that it is none any more
	if _, _, err := at(primary); err == nil || !strings.Contains(err.Error(), "its timeline is 1, and 2 was seen before") {
		t.Errorf("the old primary: %v", err)
	}
}

// A cursor works for the types that grow, and finds a change of a microsecond.
func TestPostgresCursor(t *testing.T) {
	server := postgres.New(t)
	exec := func(statements ...string) { server.Exec(statements...) }
	testCursor(t, postgresSource, server.DSN(), exec, "c", "c", []growing{
		{"bigint", "9007199254740993", "9007199254740994"},
		{"timestamptz", "'2026-01-01 00:00:00.000001+00'", "'2026-01-01 00:00:00.000002+00'"},
		{"timestamp", "'2026-01-01 00:00:00'", "'2026-01-01 00:00:00.000001'"},
		{"numeric", "1.00000000000000000001", "1.00000000000000000002"},
		{"date", "'2026-01-01'", "'2026-01-02'"},
		{"bytea", `'\x00ff'`, `'\x01'`},
		{"boolean", "false", "true"},
		{"text", `'1''; DROP TABLE t0; -- $1 \'`, `'2''; DROP TABLE t0; -- $1 \'`},
	})
}

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
