package cli_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// database opens a SQLite database until the test ends, and executes statements in it.
func database(t *testing.T, file string) (db *sql.DB, exec func(statement string)) {
	t.Helper()
	db = must(sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)"))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db, func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(statement, err)
		}
	}
}

// exported asks an export.
func exported(t *testing.T, file, query string) string {
	t.Helper()
	db := must(sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)"))(t)
	defer func() { _ = db.Close() }()
	var text sql.NullString
	if err := db.QueryRow(query).Scan(&text); err != nil {
		t.Fatal(query, err)
	}
	return text.String
}

// An export has every upstream with its downstreams and conditions. With -w it follows them; a file that is something
// else stays.
func TestExport(t *testing.T) {
	ns := memory(t)
	t.Chdir(t.TempDir())
	conf := strings.ReplaceAll(strings.Replace(everyKey, "  - {name: price, sql: {sqlite: {path: prices.db}, "+
		"query: \"SELECT color, price FROM prices\", key: color}, objectName: self.spec.color}\n", "", 1), "NS", ns)
	conf = strings.Replace(conf, "        price: \"{{ (input \"price\").row.price }}\"\n", "", 1)
	write(t, "operator.yaml", conf)
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: builder}}")
	hostile := `it's "blue"; DROP TABLE upstreams; --`
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one, labels: {a: b}}, spec: {color: blue}}")
	runUntilIdle(t, ns, "operator.yaml")
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: red}, spec: {color: red}}")
	expect(t, 0, "", "export", "-c", "operator.yaml", "--sqlite", "state.db")
	for query, want := range map[string]string{
		"SELECT group_concat(name || labels || object) FROM upstreams":                                                `one{"a":"b"}{"spec":{"color":"blue","size":3}}`,
		"SELECT count(*) || '/' || min(state) || '/' || max(state) FROM downstreams":                                  "5/InSync/InSync",
		"SELECT group_concat(type || status) FROM conditions":                                                         "ReadyTrue",
		"SELECT count(*) FROM downstreams WHERE kind = 'Secret' AND reason || name LIKE '%password%'":                 "0",
		"SELECT count(*) FROM exports WHERE operator = 'every'":                                                       "1",
		"SELECT count(*) FROM upstreams u JOIN downstreams d ON d.upstream_name = u.name AND d.operator = u.operator": "5",
	} {
		if got := exported(t, "state.db", query); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	if err := os.Chmod("state.db", 0o640); err != nil { // for whoever reads it
		t.Fatal(err)
	}
	p := startWriting(t, testkit.Config(t), "export", "-c", "operator.yaml", "--sqlite", "state.db", "-w")
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"labels": {"a": "c"}}}`)
	follow := func(query, want string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			got := exported(t, "state.db", query)
			return got == want, got
		})
	}
	follow("SELECT group_concat(labels) FROM upstreams", `{"a":"c"}`)
	testkit.Delete(t, configMaps, ns, "one-a")
	follow("SELECT group_concat(state) FROM downstreams WHERE name = 'one-a'", "Create")
	if info, err := os.Stat("state.db"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has another mode: %v, %v", info, err)
	}
	p.stop(t)
	write(t, "other.db", hostile)
	ok(t, syscall.Mkfifo("pipe.db", 0o600))
	for _, file := range []string{"other.db", "pipe.db", "."} {
		if code, out := run(t, "export", "-c", "operator.yaml", "--sqlite", file); code == 0 || !strings.Contains(out, "is not an export") {
			t.Errorf("%s is something else: %d: %s", file, code, out)
		}
	}
	if text, _ := os.ReadFile("other.db"); string(text) != hostile {
		t.Errorf("the file became %s", text)
	}
	exportToLinks(t)
	files, _ := os.ReadDir(".")
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			t.Errorf("%s is left", f.Name())
		}
	}
}

// exportToLinks exports to symbolic links: what they name is written, and they stay.
func exportToLinks(t *testing.T) {
	t.Helper()
	for _, err := range []error{
		os.Mkdir("real", 0o700), os.Mkdir("links", 0o700), os.Symlink("links", "other"), os.Symlink("../real/first.db", "links/first.db"),
		os.Symlink("other/first.db", "chain.db"), os.Symlink("loop.db", "loop.db"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ reason, link string }{
		{"it names a file that does not exist", "links/first.db"},
		{"it names an export", "links/first.db"},
		{"it names a link, in a linked directory", "chain.db"},
	} {
		_ = os.Remove("old.db")
		_ = os.Rename("real/first.db", "old.db")
		if strings.Contains(row.reason, "an export") {
			_ = os.Rename("old.db", "real/first.db")
		}
		if code, out := run(t, "export", "-c", "operator.yaml", "--sqlite", row.link); code != 0 {
			t.Errorf("%s: exit code %d: %s", row.reason, code, out)
		}
		link, err := os.Lstat(row.link)
		if err != nil || link.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link became a file (%v)", row.reason, err)
		}
		if got := exported(t, "real/first.db", "SELECT count(*) FROM exports"); got != "1" {
			t.Errorf("%s: there are %s exports", row.reason, got)
		}
	}
	if code, out := run(t, "export", "-c", "operator.yaml", "--sqlite", "loop.db"); code == 0 {
		t.Errorf("a link to itself: exit code %d: %s", code, out)
	}
}

// exportedThings makes a ConfigMap of each of a few rows, in an empty directory with operator.yaml and apps.db.
func exportedThings(t *testing.T, rows int) (dir string, exec func(statement string)) {
	t.Helper()
	ns := testkit.Namespace(t)
	dir = inDirectory(t)
	write(t, dir+"/operator.yaml", strings.ReplaceAll(rowsOperator, "NS", ns))
	_, exec = database(t, dir+"/apps.db")
	exec("CREATE TABLE apps (id INTEGER PRIMARY KEY, name TEXT, extra TEXT)")
	exec(fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d) "+
		"INSERT INTO apps SELECT i, 'app-' || i, 'one' FROM n", rows))
	replaceIn(t, dir+"/operator.yaml", "SELECT id, name FROM", "SELECT * FROM")
	return dir, exec
}

func replaceIn(t *testing.T, file, from, to string) {
	t.Helper()
	write(t, file, strings.ReplaceAll(read(t, file), from, to))
}

// whole fails if an export is damaged, or has not so many upstreams and downstreams.
func whole(t *testing.T, file string, rows int) {
	t.Helper()
	if got := exported(t, file, "PRAGMA integrity_check"); got != "ok" {
		t.Errorf("%s is damaged: %s", file, got)
	}
	want := fmt.Sprintf("%d/%d", rows, rows)
	if got := exported(t, file, "SELECT (SELECT count(*) FROM upstreams) || '/' || (SELECT count(*) FROM downstreams)"); got != want {
		t.Errorf("%s has %s upstreams and downstreams, want %s", file, got, want)
	}
}

// export is the command that exports to state.db of a directory.
func export(dir string, more ...string) []string {
	return append([]string{"export", "-c", dir + "/operator.yaml", "--sqlite", dir + "/state.db"}, more...)
}

// What a killed process has left of an export is recovered, and never becomes part of a new one.
func TestExportAfterACrash(t *testing.T) {
	t.Parallel()
	memory(t)
	const rows = 9
	dir, _ := exportedThings(t, rows)
	exports := func(t *testing.T) {
		t.Helper()
		expect(t, 0, "", export(dir)...)
	}
	for _, mode := range []string{"DELETE", "WAL"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(mode, lost), func(t *testing.T) {
				for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
					_ = os.Remove(dir + "/state.db" + suffix)
				}
				exports(t)
				killedWriter(t, dir+"/state.db", mode)
				if lost { // the advice to remove the file was followed
					ok(t, os.Remove(dir+"/state.db"))
				}
				exports(t)
				whole(t, dir+"/state.db", rows)
				if left, _ := filepath.Glob(dir + "/state.db-*"); len(left) > 0 {
					t.Errorf("%v are left", left)
				}
			})
		}
	}
}

// killedWriter leaves a file as a process does that is killed in a transaction, or after one in WAL mode.
func killedWriter(t *testing.T, file, mode string) {
	t.Helper()
	db := must(sql.Open("sqlite", file+"?_pragma=journal_mode("+mode+")&_pragma=cache_size(1)"))(t)
	db.SetMaxOpenConns(1)
	statements := []string{"CREATE TABLE big (n INTEGER, t TEXT)", "CREATE INDEX mine ON downstreams (reason)", "BEGIN",
		"UPDATE downstreams SET reason = hex(zeroblob(3000)), state = 'Lost'", "DELETE FROM upstreams",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) INSERT INTO big SELECT i, hex(zeroblob(900)) FROM n"}
	if mode == "WAL" {
		statements = append(statements, "COMMIT", "BEGIN", "DELETE FROM conditions", "UPDATE big SET t = hex(zeroblob(901))")
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
	state := map[string][]byte{}
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if data, err := os.ReadFile(file + suffix); err == nil {
			state[suffix] = data
		}
	}
	if len(state["-journal"])+len(state["-wal"]) == 0 {
		t.Fatal("nothing is in a journal")
	}
	_ = db.Close()
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		_ = os.Remove(file + suffix)
		if data, ok := state[suffix]; ok {
			write(t, file+suffix, string(data))
		}
	}
}

// With -w, readers and writers do not hold each other up, and a database that fails for a while is waited for.
func TestExportGoesOn(t *testing.T) {
	t.Parallel()
	memory(t)
	dir, exec := exportedThings(t, 3)
	expect(t, 0, "", export(dir)...)
	db := must(sql.Open("sqlite", dir+"/state.db"))(t)
	defer func() { _ = db.Close() }()
	const extra = "SELECT group_concat(DISTINCT object ->> '$.row.extra') FROM upstreams"
	reader := func() (tx *sql.Tx, read func() string) {
		tx = must(db.Begin())(t)
		read = func() (text string) {
			if err := tx.QueryRow(extra).Scan(&text); err != nil {
				t.Error(err)
			}
			return text
		}
		read() // which begins it
		return tx, read
	}
	first, _ := reader() // of a file without WAL: the export has to wait for it
	p := startWriting(t, testkit.Config(t), export(dir, "-w")...)
	says := func(want string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			out := p.text(t)
			return strings.Contains(out, want), out
		})
	}
	says("note: " + dir + "/state.db is locked by another process, a reader with an open transaction for example: waiting")
	_ = first.Rollback()
	follow := func(want string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			got := exported(t, dir+"/state.db", extra)
			return got == want, got + ": " + p.text(t)
		})
	}
	mode := func() (bool, string) {
		got := exported(t, dir+"/state.db", "PRAGMA journal_mode")
		return got == "wal", got
	}
	testkit.Eventually(t, patience, mode)
	exec("UPDATE apps SET extra = 'two'")
	follow("two")
	second, read := reader()
	exec("UPDATE apps SET extra = 'three'")
	follow("three")
	if got := read(); got != "two" {
		t.Errorf("a transaction that began before reads %s", got)
	}
	_ = second.Rollback()
	exec("ALTER TABLE apps RENAME TO gone")
	says("no such table: apps")
	follow("three")
	exec("ALTER TABLE gone RENAME TO apps")
	says("the rows are read again")
	exec("UPDATE apps SET extra = 'four'")
	follow("four")
	_ = db.Close()
	if code, out := run(t, export(dir)...); code != 0 { // which leaves the file without WAL
		t.Errorf("a second export exits with %d: %s", code, out)
	}
	exec("UPDATE apps SET extra = 'five'")
	follow("five")
	p.stop(t)
	if got := exported(t, dir+"/state.db", "PRAGMA journal_mode"); got != "delete" {
		t.Errorf("the file is left in the mode %s", got)
	}
	whole(t, dir+"/state.db", 3)
}

// An export that is killed again and again, whatever it is doing, starts again and has everything.
func TestExportIsKilled(t *testing.T) {
	t.Parallel()
	memory(t)
	const rows = 60
	dir, exec := exportedThings(t, rows)
	chance := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		p := startWriting(t, testkit.Config(t), export(dir, "-w")...)
		since := exported(t, dir+"/apps.db", "SELECT strftime('%Y-%m-%dT%H:%M:%SZ')")
		if round > 0 {
			testkit.Eventually(t, patience, func() (bool, string) {
				got := exported(t, dir+"/state.db", "SELECT max(written) FROM exports")
				return got >= since, got + ": " + p.text(t)
			})
		} else {
			testkit.Eventually(t, patience, func() (bool, string) {
				_, err := os.Stat(dir + "/state.db")
				return err == nil, p.text(t)
			})
		}
		exec(fmt.Sprintf("UPDATE apps SET extra = '%d'", round))
		timer := time.NewTimer(time.Duration(chance.IntN(2500)) * time.Millisecond)
		<-timer.C
		_ = p.Process.Kill()
		<-p.ended
		if got := exported(t, dir+"/state.db", "PRAGMA integrity_check"); got != "ok" {
			t.Fatalf("round %d: it is damaged: %s", round, got)
		}
	}
	expect(t, 0, "", export(dir)...)
	whole(t, dir+"/state.db", rows)
	if got := exported(t, dir+"/state.db", "SELECT count(*) FROM upstreams WHERE object ->> '$.row.extra' = '7'"); got != fmt.Sprint(rows) {
		t.Errorf("%s rows are current", got)
	}
}
