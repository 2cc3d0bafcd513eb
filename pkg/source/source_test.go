package source

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/sqltext"
)

// newDatabase makes a database of statements.
func newDatabase(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a?b#c%20.db") // which mean something in a URL
	db := must.Get(sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path))).In(t)
	t.Cleanup(func() { _ = db.Close() })
	for _, s := range statements {
		must.Get(db.Exec(s)).In(t, s)
	}
	return path
}

// at gives a connection string.
func at(dsn string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return dsn, nil }
}

// newSource is closed at the end of the test.
func newSource(t *testing.T, driver Driver, dsn, query string, change ...func(*Options)) *Source {
	t.Helper()
	o := Options{At: "source", Driver: driver, DSN: at(dsn), Query: query, Key: "id", Poll: time.Hour, Timeout: time.Minute, MaxRows: 20000}
	for _, f := range change {
		f(&o)
	}
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// newWriter is closed at the end of the test.
func newWriter(t *testing.T, driver WriteDriver, dsn, statement string) *Writer {
	t.Helper()
	parsed := must.Get(sqltext.Parse(statement)).In(t)
	w := NewWriter(WriterOptions{Driver: driver, DSN: at(dsn), Statement: parsed, Timeout: time.Minute})
	t.Cleanup(w.Close)
	return w
}

// set writes the values of the parameters.
func (w *Writer) set(ctx context.Context, values map[string]any) error {
	return w.Write(ctx, func(name string) any { return values[name] }, func() error { return nil })
}

func readAll(t *testing.T, s *Source) ([]Row, Doubt, error) {
	t.Helper()
	var rows []Row
	doubt, err := s.Read(t.Context(), func(row Row) error {
		rows = append(rows, row)
		return nil
	})
	return rows, doubt, err
}

// rowsOf executes a query.
func rowsOf(t *testing.T, path, query string, change ...func(*Options)) ([]Row, error) {
	t.Helper()
	few := func(o *Options) { o.MaxRows = 100 }
	rows, _, err := readAll(t, newSource(t, SQLite, path, query, append(change, few)...))
	return rows, err
}

// readsAs fails the test unless the only row has the id 1 and these columns; nil is none.
func readsAs(t *testing.T, s *Source, want map[string]any) {
	t.Helper()
	rows, doubt, err := readAll(t, s)
	if err != nil || doubt != (Doubt{}) || len(rows) != 1 {
		t.Fatal(err, doubt, rows)
	}
	want["id"] = int64(1)
	maps.DeleteFunc(want, func(_ string, value any) bool { return value == nil })
	must.Same(t, want, rows[0].Columns)
}

func TestTypes(t *testing.T) {
	path := newDatabase(t, "CREATE TABLE t (id INTEGER, v)", "CREATE TABLE j (id INTEGER, v JSON, at DATETIME, b BOOLEAN)",
		`INSERT INTO j VALUES (1, '{"a": [9007199254740993, 1.5, null, {"b": null, "c": "x"}]}', '2026-01-02T03:04:05.5+02:00', true)`)
	for _, c := range []struct {
		reason, value string
		want          any
	}{
		{"an integer of 64 bits", "9223372036854775807", int64(9223372036854775807)},
		{"one that is no float64", "9007199254740993", int64(9007199254740993)},
		{"a real number", "1.25", 1.25},
		{"a real number without a fraction stays one", "2.0", 2.0},
		{"infinity is not in JSON", "9e999", "+Inf"},
		{"text", "'007'", "007"},
		{"text that would mean something elsewhere", `'}}"; DROP TABLE t; -- {{ .x }}'`, `}}"; DROP TABLE t; -- {{ .x }}`},
		{"text that is not UTF-8", "CAST(x'61ff62' AS TEXT)", "a\uFFFDb"},
		{"bytes", "x'00ff'", "AP8="},
		{"NULL is no value", "NULL", nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			readsAs(t, newSource(t, SQLite, path, "SELECT 1 AS id, "+c.value+" AS v"), map[string]any{"v": c.want})
		})
	}
	readsAs(t, newSource(t, SQLite, path, "SELECT * FROM j"), map[string]any{"b": true, "at": "2026-01-02T01:04:05.5Z",
		"v": map[string]any{"a": []any{int64(9007199254740993), 1.5, nil, map[string]any{"c": "x"}}}})
}

func TestRefusedResults(t *testing.T) {
	path := newDatabase(t, "CREATE TABLE broken (id, v JSON)", "INSERT INTO broken VALUES (1, '{')", "CREATE TABLE t (id, v JSON)",
		"INSERT INTO t VALUES (1, '{}'), (2, '[]')", "CREATE TABLE times (at DATETIME)", "INSERT INTO times VALUES ('2026-01-02 03:04:05')")
	for _, c := range []struct{ reason, query, want string }{
		{"no column of the key", "SELECT id AS number, v FROM t", "source.query returns no column id, which source.key names: it returns " +
			"number, v"},
		{"a key that is NULL", "SELECT NULL AS id",
			"row 1 of source.query has no id: the column that source.key names must be neither NULL nor empty"},
		{"a key without text, which no mark could name", "SELECT '' AS id", "row 1 of source.query has no id"},
		{"a key twice", "SELECT 'a/b' AS id UNION ALL SELECT 'a/b'", `two rows of source.query have the id "a/b", but source.key says that it identifies a row`},
		{"one key as a number and as text", "SELECT 1 AS id UNION ALL SELECT '1'", `two rows of source.query have the id "1"`},
		{"a key that is a fraction", "SELECT 1.5 AS id", "the column id of source.query, which source.key names, is neither text nor a " +
			"whole number"},
		{"two columns of one name", "SELECT id, v, v FROM t", "source.query returns two columns v: name one of them otherwise with AS"},
		{"more rows than allowed", "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM n LIMIT 1000000) SELECT id FROM n",
			"source.query returns more than 100 rows: select fewer, or raise source.maxRows"},
		{"a value that is too large to be read", "SELECT 'k' AS id, zeroblob(100000000) AS v", "string or blob too big"},
		{"a key that is not text", "SELECT CAST(x'61ff' AS TEXT) AS id", "is neither text nor a whole number in row 1: cast it to text"},
		{"a key that is converted", "SELECT at AS id FROM times", "is neither text nor a whole number in row 1: cast it to text"},
		{"a row that is too large", "SELECT 'k' AS id, hex(zeroblob(600000)) AS v", `the row "k" of source.query has 1200008 bytes, and 1048576 are allowed: select less`},
		{"a long key is cut in messages", "SELECT 1 AS x, hex(zeroblob(600000)) AS id", `the row "` + strings.Repeat("0", 60) + `…" of source.query has`},
		{"JSON that is none", "SELECT id, v FROM broken", "column v of row 1 of source.query: it is not JSON: unexpected EOF"},
		{"JSON without an end", "SELECT 1 AS id, v FROM (SELECT '[' AS v)", ""}, // text: the column is not declared
		{"JSON that is too deep", "SELECT id, v FROM deep", "it is nested deeper than 100"},
		{"a table that does not exist", "SELECT id FROM u", "executing source.query: SQL logic error: no such table: u"},
		{"a statement that writes", "DELETE FROM t RETURNING id", "executing source.query"},
		{"a second statement that writes", "SELECT id FROM t; DELETE FROM t", "reading source.query: it is more than one statement"},
		{"no statement", "-- nothing", "reading source.query: it is empty"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			path := path
			if strings.Contains(c.query, "deep") {
				path = newDatabase(t, "CREATE TABLE deep (id, v JSON)", "INSERT INTO deep VALUES (1, '"+strings.Repeat("[",
					200)+strings.Repeat("]", 200)+"')")
			}
			_, err := rowsOf(t, path, c.query)
			if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %q", got, c.want)
			}
			if left, err := rowsOf(t, path, "SELECT name AS id FROM sqlite_master"); err != nil || len(left) == 0 {
				t.Errorf("the database was changed: %v %v", left, err)
			}
		})
	}
	if rows, err := rowsOf(t, path, "SELECT id FROM t"); err != nil || len(rows) != 2 {
		t.Errorf("rows were deleted: %v %v", rows, err)
	}
}

// A query that takes too long is ended, and another one is possible.
func TestSlowQuery(t *testing.T) {
	path := newDatabase(t, "CREATE TABLE t (id)")
	const endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id+1 FROM n) SELECT max(id) AS id FROM n"
	_, err := rowsOf(t, path, endless, func(o *Options) { o.Timeout = 50 * time.Millisecond })
	if err == nil || !strings.Contains(err.Error(), "the query took longer than 50ms (source.timeout)") {
		t.Errorf("got %v", err)
	}
}

// A database that is not there, or not one, is an error, and is not made.
func TestNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	for range 2 {
		if _, err := rowsOf(t, path, "SELECT 1 AS id"); err == nil || !strings.Contains(err.Error(), "unable to open database file") {
			t.Errorf("got %v", err)
		}
	}
}

// A path that is not a file is refused: opening a named pipe would never end.
func TestSQLiteRefusesWhatIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for _, path := range []string{pipe, dir} {
		refused := make(chan error, 2)
		go func() {
			_, err := SQLite(t.Context(), path, &Options{})
			refused <- err
			_, err = SQLiteWriter(t.Context(), path, &WriterOptions{})
			refused <- err
		}()
		for range 2 {
			if err := <-refused; err == nil || err.Error() != "it is not a regular file" {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// A file is replaced by another one at its path, or goes: each execution reads what is there then.
func TestSQLiteFileIsReplaced(t *testing.T) {
	const versions = "CREATE TABLE t (id INTEGER, version INTEGER)"
	publish := func(t *testing.T, statements ...string) string {
		t.Helper()
		return newDatabase(t, append([]string{versions}, statements...)...)
	}
	rename := func(t *testing.T, from, to string) {
		t.Helper()
		must.Do(t, os.Rename(from, to))
	}
	for _, c := range []struct {
		reason  string
		replace func(t *testing.T, path string)
		want    string // the keys, or a part of the error
	}{
		{"a file is renamed over it, the usual way to publish one", func(t *testing.T, path string) {
			rename(t, publish(t, "INSERT INTO t VALUES (3, 1), (4, 1)"), path)
		}, "3 4"},
		{"a file that was written as often is copied over it: SQLite's counter of changes is the same", func(t *testing.T, path string) {
			data := must.Get(os.ReadFile(publish(t, "INSERT INTO t VALUES (3, 7), (4, 7)"))).In(t)
			must.Do(t, os.WriteFile(path, data, 0o600))
		}, "3 4"},
		{"it is deleted", func(t *testing.T, path string) {
			must.Do(t, os.Remove(path))
		}, "unable to open database file: no such file"},
		{"it is deleted, and is there again", func(t *testing.T, path string) {
			rename(t, path, path+".old")
			rename(t, publish(t, "INSERT INTO t VALUES (5, 1)"), path)
		}, "5"},
		{"a named pipe is in its place", func(t *testing.T, path string) {
			rename(t, path, path+".old")
			must.Do(t, syscall.Mkfifo(path, 0o600))
		}, "it is not a regular file"},
	} {
		for _, cursor := range []string{"", "version"} {
			t.Run(c.reason+"/"+cursor, func(t *testing.T) {
				path := publish(t, "INSERT INTO t VALUES (1, 5), (2, 5)")
				s := newSource(t, SQLite, path, "SELECT * FROM t", func(o *Options) { o.Cursor, o.Full = cursor, time.Hour })
				read := func() string {
					rows, doubt, err := readAll(t, s)
					if err != nil {
						return err.Error()
					}
					if doubt != (Doubt{}) {
						t.Errorf("there is a doubt: %v", doubt)
					}
					var keys []string
					for _, row := range rows {
						keys = append(keys, row.Key)
					}
					return strings.Join(keys, " ")
				}
				if got := read(); got != "1 2" {
					t.Fatal(got)
				}
				c.replace(t, path)
				if got := read(); !strings.Contains(got, c.want) {
					t.Errorf("%s is read, want %s", got, c.want)
				}
			})
		}
	}
}

// A write goes to the file that is at the path, and fails while there is none.
func TestSQLiteWritesToTheFileThatIsThere(t *testing.T) {
	const table = "CREATE TABLE t (id INTEGER, state TEXT)"
	path := newDatabase(t, table, "INSERT INTO t VALUES (1, '')")
	w := newWriter(t, SQLiteWriter, path, "UPDATE t SET state = $state WHERE id = $id")
	write := func() error { return w.set(t.Context(), map[string]any{"id": int64(1), "state": "Ready"}) }
	must.Do(t, write())
	must.Do(t, os.Remove(path))
	if err := write(); err == nil || !strings.Contains(err.Error(), "unable to open database file") {
		t.Errorf("a file that is gone is written to: %v", err)
	}
	must.Do(t, os.Rename(newDatabase(t, table, "INSERT INTO t VALUES (1, '')"), path))
	must.Do(t, write())
	if rows, err := rowsOf(t, path, "SELECT * FROM t"); err != nil || rows[0].Columns["state"] != "Ready" {
		t.Errorf("the state is not in the new file: %v %v", rows, err)
	}
}
