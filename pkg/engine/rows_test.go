package engine_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// rowsConfig makes a ConfigMap of each row of a SQLite database. DB is its path.
const rowsConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
source:
  sqlite: {path: DB}
  query: SELECT id, name, data FROM apps
  key: id
  changes: {poll: 1s}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .row.name }}
        namespace: NS
      data: {{ .row.data }}
    targetNamespaces: {from: List, names: [NS]}
    # downstream
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
  owner: {annotation: NAME.example.com/owner}
guard: {confirm: {namespace: NS, configMap: confirmations, key: rows}}
events: All
retry: {minDelay: 1s, maxDelay: 10s}
`

// database is a SQLite database with the table of rowsConfig.
type database struct {
	t    testing.TB
	path string
	db   *sql.DB
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	d := &database{t: t, path: filepath.Join(t.TempDir(), "apps.db")}
	var err error
	if d.db, err = sql.Open("sqlite", d.path+"?_pragma=busy_timeout(60000)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.db.Close() })
	d.exec("CREATE TABLE apps (id, name TEXT, data JSON)")
	return d
}

func (d *database) exec(statement string, args ...any) {
	d.t.Helper()
	if _, err := d.db.Exec(statement, args...); err != nil {
		d.t.Fatal(statement, err)
	}
}

// add inserts rows named app-FROM to app-TO, in one statement: no result has a part of them.
func (d *database) add(from, to int) {
	d.t.Helper()
	d.exec("INSERT INTO apps WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i+1 FROM n WHERE i < ?) SELECT i, 'app-' || i, '{\"key\": \"one\"}' FROM n", from, to)
}

func (d *database) config(ns, name string) string {
	return strings.ReplaceAll(fill(rowsConfig, ns, name), "DB", d.path)
}

// startApps runs the config for as many rows until their ConfigMaps exist.
func startApps(t *testing.T, ns, name string, rows int) (*database, string, *running) {
	t.Helper()
	db := newDatabase(t)
	db.add(1, rows)
	r := start(t, testkit.Config(t), db.config(ns, name)).ready()
	waitApps(t, ns, name, 1, rows)
	return db, db.config(ns, name), r
}

func app(i int) string { return fmt.Sprintf("app-%d", i) }

// waitApps waits until exactly these apps exist.
func waitApps(t *testing.T, ns, name string, from, to int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		var have []string
		for _, cm := range testkit.List(t, configMaps, ns, selector(name)) {
			have = append(have, cm.GetName())
		}
		for i := from; i <= to; i++ {
			if testkit.Find(t, configMaps, ns, app(i)) == nil {
				return false, app(i) + " is missing: " + strings.Join(have, ", ")
			}
		}
		return len(have) == to-from+1, strings.Join(have, ", ")
	})
}

// stayApps fails if one of these apps goes.
func stayApps(t *testing.T, ns string, from, to int) {
	t.Helper()
	never(t, func() (bool, string) {
		for i := from; i <= to; i++ {
			if cm := testkit.Find(t, configMaps, ns, app(i)); cm == nil || cm.GetDeletionTimestamp() != nil {
				return true, app(i) + " is gone"
			}
		}
		return false, ""
	})
}

func TestRows(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		db.add(1, 3)
		db.exec(`INSERT INTO apps VALUES ('a/b "c": {x}', 'hostile', '{"key": "}}\n- {{ .x }}: ''x"}')`)
		counts := testkit.NewCounter()
		start(t, counts.Wrap(testkit.Config(t)), db.config(ns, name)).ready()
		waitData(t, ns, app(3), "key", "one")
		hostile := waitData(t, ns, "hostile", "key", "}}\n- {{ .x }}: 'x")
		for mark, cm := range map[string]*unstructured.Unstructured{"/a%2Fb%20%22c%22:%20%7Bx%7D/" + name + ":a%2Fb%20%22c%22:%20%7Bx%7D": hostile,
			"/2/" + name + ":2": testkit.Get(t, configMaps, ns, app(2))} {
			must.Same(t, mark, cm.GetAnnotations()[name+".example.com/owner"], "the owner mark")
		}
		writes := func() int {
			return counts.Mutating(func(r testkit.Request) bool { return r.Resource != "events" })
		}
		before := writes()
		db.exec(`UPDATE apps SET data = '{"key": "two"}' WHERE id = 2`)
		waitData(t, ns, app(2), "key", "two")
		must.Same(t, 1, writes()-before, "a changed row makes", "writes")
		testkit.Patch(t, configMaps, ns, app(3), "somebody", `{"data": {"key": "drifted"}}`)
		waitData(t, ns, app(3), "key", "one")
		waitEvent(t, "default", name, "Repaired", "row 3: ConfigMap "+ns+"/app-3 repaired")
		db.exec(`DELETE FROM apps WHERE id = 1`)
		waitGone(t, configMaps, ns, app(1))
		db.add(1, 1)
		waitData(t, ns, app(1), "key", "one")
		waitMetric(t, 4, "corollary_source_rows", name)
	})
}

// What a result lacks is deleted only as far as source.deletes allows, whenever it is noticed.
func TestRowsThatAreGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, statement string
		wants             string // in the message of what waits; empty: all goes
		gone              int    // the rows from 1
	}{
		{"as many as the minimum need no confirmation", "DELETE FROM apps WHERE id <= 5", "", 5},
		{"more wait", "DELETE FROM apps WHERE id <= 6", "6 of 9 existing downstreams would be deleted, and source.deletes allows 5", 6},
		{"an empty result deletes nothing", "DELETE FROM apps", "but the query returned no rows", 9},
	} {
		for _, at := range []string{"poll", "restart", "reload"} {
			t.Run(c.reason+"/"+at, spaced(func(t *testing.T, ns, name string) {
				db, conf, r := startApps(t, ns, name, 9)
				conf = replaceOnce(t, conf, "conventions:\n", "conventions:\n  finalizer: "+name+".example.com/cleanup\n") // which no row has
				logged := &logText{}
				switch at {
				case "poll":
					db.exec(c.statement)
				case "restart":
					r.halt()
					db.exec(c.statement)
					r = startWith(t, testkit.Config(t), logged.to, conf).ready()
				case "reload":
					db.exec("CREATE TABLE others AS SELECT * FROM apps")
					db.exec(strings.Replace(c.statement, "apps", "others", 1))
					conf = strings.Replace(conf, "FROM apps", "FROM others", 1)
					r.reloadTo(conf)
				}
				if c.wants == "" {
					waitApps(t, ns, name, c.gone+1, 9)
					notLeftAlone(t, at, name, logged.String(), `"msg"="deleted"`)
					return
				}
				r.waitSays(c.wants)
				notLeftAlone(t, at, name, logged.String(), "a change waits for confirmation")
				if at != "reload" && c.gone < 9 { // the rest goes on
					db.add(10, 10)
					waitData(t, ns, app(10), "key", "one")
				}
				stayApps(t, ns, 1, 9)
				if strings.Contains(logged.String(), "request for the upstream failed") {
					t.Error(logged.String())
				}
				confirmWith(t, ns, "rows", r.digest())
				for i := 1; i <= c.gone; i++ {
					waitGone(t, configMaps, ns, app(i))
				}
			}))
		}
	}
}

// notLeftAlone: what rows have left that were gone before a start is not said to be another process's; the log says
// what becomes of it.
func notLeftAlone(t *testing.T, at, name, logged, says string) {
	t.Helper()
	if at == "restart" && !strings.Contains(logged, says) || strings.Contains(logged, "they are left alone") {
		t.Errorf("the log does not say %q, or says that they are left alone:\n%s", says, logged)
	}
	for _, e := range testkit.List(t, events, "default", "") {
		regarding, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
		if reason, _, _ := unstructured.NestedString(e.Object, "reason"); regarding == name && reason == "SharedConventions" {
			t.Error("an event says that they are left alone")
		}
	}
}

// Nothing that a database answers, or does not, loses anything.
func TestRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, statement, wants string }{
		{"the key is not among the columns", "ALTER TABLE apps RENAME COLUMN id TO number", "no such column: id"},
		{"a column was renamed", "ALTER TABLE apps RENAME COLUMN data TO content", "no such column: data"},
		{"the table is gone", "DROP TABLE apps", "no such table: apps"},
		{"two rows have one key", "INSERT INTO apps VALUES (1, 'x', '{}')", `two rows of source.query have the id "1"`},
		{"a row has no key", "UPDATE apps SET id = NULL WHERE id = 2", "row 2 of source.query has no id"},
		{"a key is a fraction", "UPDATE apps SET id = 1.5 WHERE id = 2", "neither text nor a whole number"},
		{"a value is not JSON", "UPDATE apps SET data = '{' WHERE id = 2", "column data of row 2 of source.query: it is not JSON"},
		{"there are too many rows", "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n WHERE i < 200) INSERT INTO apps SELECT i, 'x' || i, '{}' FROM n",
			"more than 100 rows: select fewer, or raise source.maxRows"},
		{"a row is too large", "UPDATE apps SET name = hex(zeroblob(600000)) WHERE id = 2", `the row "2" of source.query has`},
	} {
		t.Run(c.reason, spaced(func(t *testing.T, ns, name string) {
			db := newDatabase(t)
			db.add(1, 3)
			conf := strings.Replace(db.config(ns, name), "  key: id\n", "  key: id\n  maxRows: 100\n", 1)
			r := start(t, testkit.Config(t), conf).ready()
			waitApps(t, ns, name, 1, 3)
			db.exec(c.statement)
			waitState(t, name, "SourceFailed")
			stayApps(t, ns, 1, 3)
			r.mustBeReady()
			testkit.Patch(t, configMaps, ns, app(3), "somebody", `{"data": {"key": "drifted"}}`)
			waitData(t, ns, app(3), "key", "one")
			r.halt()
			r = start(t, testkit.Config(t), conf)
			r.waitUnready("SourceFailed", c.wants)
			stayApps(t, ns, 1, 3)
		}))
	}
}

// A change that waits for confirmation hides neither that rows cannot be read nor the end of that: not in the log, the
// metric or a check.
func TestSourceFailsWhileGuardWaits(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"poll", "start", "reload"} {
		t.Run(at, spaced(func(t *testing.T, ns, name string) {
			db, logged := newDatabase(t), &logText{}
			db.add(1, 9)
			conf := db.config(ns, name)
			r := startWith(t, testkit.Config(t), logged.to, conf).ready()
			waitApps(t, ns, name, 1, 9)
			problems := func() string { return text(r.Reloaded(nil)) }
			switch at {
			case "poll":
				db.exec("DELETE FROM apps WHERE id <= 6")
			case "start":
				r.halt()
				db.exec("DELETE FROM apps WHERE id <= 6")
				strict := strings.Replace(conf, "guard: {", "guard: {maxChanged: 1%, minimum: 1, ", 1)
				strict = strings.Replace(strict, "data: {{ .row.data }}", "data: {key: two}", 1)
				r = startWith(t, testkit.Config(t), logged.to, strict)
				problems = func() string { return text(r.Ready(nil)) }
			case "reload":
				r.reloadTo(strings.Replace(conf, "  - name: config\n", "  - name: config\n    when: 'false'\n", 1))
			}
			says := func(want bool) {
				t.Helper()
				testkit.Eventually(t, patience, func() (bool, string) {
					err := problems()
					return strings.Contains(err, "GuardWaiting") && strings.Contains(err, "SourceFailed") == want &&
						strings.Contains(err, "no such table: apps") == want, err
				})
				waitMetric(t, 1, "corollary_operator_state", name, "reason", "GuardWaiting")
				waitMetric(t, map[bool]float64{true: 1}[want], "corollary_operator_state", name, "reason", "SourceFailed")
			}
			says(false)
			db.exec("ALTER TABLE apps RENAME TO gone")
			says(true)
			if out := logged.String(); strings.Count(out, "no such table: apps") != 1 {
				t.Errorf("the log does not say it once:\n%s", out)
			}
			db.exec("ALTER TABLE gone RENAME TO apps")
			says(false)
			if out := logged.String(); !strings.Contains(out, "the rows are read again") {
				t.Errorf("the log does not say that it is over:\n%s", out)
			}
			stayApps(t, ns, 1, 9)
		}))
	}
}

// With a cursor, rows are found that have changed, and by the execution for all rows what the cursor misses.
func TestRowsWithCursor(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		db.exec("ALTER TABLE apps ADD COLUMN version INTEGER DEFAULT 10")
		for i := range 3 {
			db.exec("INSERT INTO apps (id, name, data) VALUES (?, ?, ?)", i+1, app(i+1), `{"key": "one"}`)
		}
		conf := strings.Replace(db.config(ns, name), "changes: {poll: 1s}", "changes: {poll: 1s, cursor: version, overlap: 1s, full: 10s}", 1)
		conf = strings.Replace(conf, "SELECT id, name, data FROM", "SELECT id, name, data, version FROM", 1)
		r := start(t, testkit.Config(t), conf).ready()
		waitApps(t, ns, name, 1, 3)
		change := func(i, version int, value string) {
			t.Helper()
			db.exec("UPDATE apps SET version = ?, data = ? WHERE id = ?", version, `{"key": "`+value+`"}`, i)
			waitData(t, ns, app(i), "key", value)
		}
		change(1, 11, "two")
		change(2, 12, "two")
		change(3, 5, "two") // a clock that went back, or a transaction that took long
		db.exec("INSERT INTO apps (id, name, data, version) VALUES (4, 'app-4', '{\"key\": \"one\"}', NULL)")
		waitApps(t, ns, name, 1, 4)
		db.exec("DELETE FROM apps WHERE id = 4")
		waitGone(t, configMaps, ns, app(4))
		stayApps(t, ns, 1, 3)
		r.changeTo(name, strings.Replace(conf, "data: {{ .row.data }}", "data: {key: three}", 1))
		waitData(t, ns, app(3), "key", "three")
		stayApps(t, ns, 1, 3)
	})
}
