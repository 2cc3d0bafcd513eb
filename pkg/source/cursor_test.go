package source

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
)

// From where a result begins, if results begin at the given seconds: the value of the cursor is the second.
func TestCursorBegins(t *testing.T) {
	for _, c := range []struct {
		reason        string
		overlap, full time.Duration
		begins        []int
		want          []any // nil: all rows
	}{
		{"no result before", time.Minute, time.Hour, []int{0}, []any{nil}},
		{"no result is old enough", 10 * time.Second, time.Hour, []int{0, 5, 10, 15}, []any{nil, nil, nil, int64(0)}},
		{"the newest that is old enough counts", 10 * time.Second, time.Hour, []int{0, 20, 40, 60, 65},
			[]any{nil, nil, int64(0), int64(20), int64(40)}},
		{"without an overlap, the last one", 0, time.Hour, []int{0, 5, 6}, []any{nil, int64(0), int64(5)}},
		{"now and then all rows", 0, 10 * time.Second, []int{0, 5, 9, 10, 19, 20}, []any{nil, int64(0), int64(5), nil, int64(10), nil}},
	} {
		var at cursor
		start := time.Now()
		for i, second := range c.begins {
			at.next(&Options{Cursor: "v", Overlap: c.overlap, Full: c.full}, start.Add(time.Duration(second)*time.Second), Doubt{})
			if at.from != c.want[i] {
				t.Errorf("%s: the result at %d begins from %v, not %v", c.reason, second, at.from, c.want[i])
			}
			at.take(int64(second))
		}
		if at.next(&Options{Cursor: "v", Full: time.Hour}, start.Add(time.Hour), Doubt{Why: "a standby answered"}); at.from != nil {
			t.Errorf("%s: a result in doubt begins from %v", c.reason, at.from)
		}
	}
}

// Only rows that may have changed are read, until it is time for all. After an error, all are.
func TestCursorReads(t *testing.T) {
	for _, values := range [][3]string{{"1", "2", "3"}, {"'2026-01-01T00:00:00Z'", "'2026-01-01T00:00:01Z'", "'2026-01-02'"}} {
		path := newDatabase(t, `CREATE TABLE t (id INTEGER PRIMARY KEY, "a ""b" , v TEXT)`,
			"INSERT INTO t VALUES (1, "+values[0]+", 'one'), (2, "+values[0]+", 'one'), (3, NULL, 'one')")
		db := must.Get(sql.Open("sqlite", "file:"+strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path))).In(t)
		t.Cleanup(func() { _ = db.Close() })
		exec := func(statements ...string) {
			for _, statement := range statements {
				must.Get(db.Exec(statement)).In(t, statement)
			}
		}
		s := newSource(t, SQLite, path, "SELECT * FROM t; ", func(o *Options) { o.Cursor, o.Full = `a "b`, time.Hour })
		read := func(want int, partial bool) {
			t.Helper()
			rows, _, err := readAll(t, s)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != want || s.Partial() != partial {
				t.Errorf("%d rows were read, partial %v", len(rows), s.Partial())
			}
		}
		read(3, false)
		read(2, true) // which have the greatest value
		exec(`UPDATE t SET "a ""b" = ` + values[1] + `, v = 'two' WHERE id = 1`)
		read(2, true)
		read(1, true)
		exec("INSERT INTO t VALUES (4, "+values[2]+", 'one')", "DELETE FROM t WHERE id = 2")
		read(2, true)
		s.options.Query = "SELECT * FROM nothing"
		if _, _, err := readAll(t, s); err == nil {
			t.Error("there is no error")
		}
		s.options.Query = "SELECT * FROM t"
		read(3, false)
		s.options.Full = 0
		read(3, false)
	}
}

// A cursor that cannot be one is refused.
func TestCursorThatIsNone(t *testing.T) {
	path := newDatabase(t, "CREATE TABLE t (id INTEGER, at DATETIME)", "INSERT INTO t VALUES (1, '2026-01-02 03:04:05')")
	for column, want := range map[string]string{
		"v":  "executing source.query: SQL logic error: no such column: q.v",
		"at": "write CAST(at AS TEXT) AS at",
	} {
		_, err := rowsOf(t, path, "SELECT id, at FROM t", func(o *Options) { o.Cursor = column })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// queryEnds are ends of a query that change nothing.
var queryEnds = []string{"", ";", " ; ;\n", " -- c", " -- c;\n", "; -- c", ";\n-- c\n", " /* c */", " /* c */ ;", "; /* ; */",
	"; -- c\n/* d */ ; -- e"}

// Comments and semicolons at the end of a query change nothing, with and without a cursor.
func TestQueryEnds(t *testing.T) {
	path := newDatabase(t, "CREATE TABLE t (id INTEGER, v INTEGER)", "INSERT INTO t VALUES (1, 1), (2, 2)")
	for _, end := range queryEnds {
		for _, column := range []string{"", "v"} {
			rows, err := rowsOf(t, path, "SELECT * FROM t"+end, func(o *Options) { o.Cursor = column })
			if err != nil || len(rows) != 2 {
				t.Errorf("%q with the cursor %q: %d rows, %v", end, column, len(rows), err)
			}
		}
	}
}
