//go:build databases

package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// open makes a source of one kind of database.
type open func(t *testing.T, dsn, query string, change ...func(*Options)) *Source

func postgresSource(t *testing.T, dsn, query string, change ...func(*Options)) *Source {
	t.Helper()
	return newSource(t, Postgres, dsn, query, change...)
}

func mysqlSource(t *testing.T, dsn, query string, change ...func(*Options)) *Source {
	t.Helper()
	return newSource(t, MySQL, dsn, query, change...)
}

// eventually waits for a condition.
func eventually(t *testing.T, why string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal(why)
		}
	}
}

// failure is a query that fails, and what the error says of it.
type failure struct{ reason, dsn, query, want string }

// testFailures: whatever fails, the error says what, and has none of the secrets.
func testFailures(t *testing.T, from open, failures []failure, secrets ...string) {
	t.Helper()
	for _, c := range failures {
		t.Run(c.reason, func(t *testing.T) {
			_, _, err := readAll(t, from(t, c.dsn, c.query))
			got := fmt.Sprint(err)
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			for _, secret := range secrets {
				if strings.Contains(got, secret) {
					t.Errorf("the error contains %s: %s", secret, got)
				}
			}
		})
	}
}

// growing is a type of a cursor, and two values of it.
type growing struct{ kind, first, second string }

// testCursor: a cursor works for the types that grow, and finds the least change. The column is quoted.
func testCursor(t *testing.T, from open, dsn string, exec func(...string), cursor, column string, types []growing) {
	t.Helper()
	for i, c := range types {
		table := fmt.Sprintf("t%d", i)
		exec("CREATE TABLE "+table+" (id bigint PRIMARY KEY, "+column+" "+c.kind+")",
			"INSERT INTO "+table+" VALUES (1, "+c.first+"), (2, "+c.first+"), (3, NULL)")
		s := from(t, dsn, "SELECT * FROM "+table, func(o *Options) { o.Cursor, o.Full = cursor, time.Hour })
		exec("UPDATE " + table + " SET " + column + " = " + column + " WHERE id = 1")
		for k, want := range []int{3, 2, 2, 1} {
			rows, _, err := readAll(t, s)
			if err != nil || len(rows) != want || s.Partial() != (k > 0) {
				t.Errorf("%s: read %d: %d rows, %v", c.kind, k, len(rows), err)
			}
			if k == 1 {
				exec("UPDATE " + table + " SET " + column + " = " + c.second + " WHERE id = 1")
			}
		}
	}
}

// testRestart: a server that is gone is an error, and the next read connects again. It returns a read.
func testRestart(t *testing.T, s *Source, server interface {
	Kill()
	Start()
}, before func(read func() error)) {
	t.Helper()
	read := func() error {
		rows, doubt, err := readAll(t, s)
		if err == nil && (len(rows) != 2 || doubt != (Doubt{})) {
			t.Fatalf("%d rows, %v", len(rows), doubt)
		}
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	before(read)
	server.Kill()
	if err := read(); err == nil {
		t.Error("a server that is gone answers")
	}
	server.Start()
	if err := read(); err != nil {
		t.Error(err)
	}
}

// testHostileWrites: whatever a state says, it is written as it is, twice. The statement sets message and state to
// $message, and counts n.
func testHostileWrites(t *testing.T, w *Writer, s *Source, without string) {
	t.Helper()
	for i, value := range hostileValues {
		values := map[string]any{"id": fmt.Sprintf("%d %.100s", i, strings.ToValidUTF8(value, "?")), "message": value}
		if err := errors.Join(w.set(t.Context(), values), w.set(t.Context(), values)); err != nil {
			t.Fatalf("%.50q: %v", value, err)
		}
	}
	rows, _, err := readAll(t, s)
	if err != nil || len(rows) != len(hostileValues) {
		t.Fatal(err, len(rows))
	}
	for _, row := range rows {
		var i int
		_, _ = fmt.Sscan(row.Key, &i)
		want := strings.ToValidUTF8(strings.ReplaceAll(hostileValues[i], without, ""), "\uFFFD")
		if row.Columns["state"] != want || row.Columns["message"] != want || row.Columns["n"] != int64(2) {
			t.Errorf("%.50q became %.50q", hostileValues[i], row.Columns["state"])
		}
	}
}

var hostileValues = []string{
	`'; DROP TABLE apps; --`, `$1 $id $message $$`, `\'; DELETE FROM apps; /*`, "NUL \x00 in the middle", "not \xff\xfe UTF-8", "\u202e\u2028\ufeff\x1b[31m\r\n\t",
	`{{ .row.id }}`, "a: b\n- c: &x *x !!str\n---\n", strings.Repeat("half a MB ", 50000), "%s %d %n", `E'\'`, "?", ":id", "@id", "e\u0301 \U0001F600",
}
