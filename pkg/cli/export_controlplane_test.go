//go:build controlplane

package cli_test

import (
	"database/sql"
	"os"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// exported asks an export.
func exported(t *testing.T, file, query string) string {
	t.Helper()
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var text sql.NullString
	if err := db.QueryRow(query).Scan(&text); err != nil {
		t.Fatal(query, err)
	}
	return text.String
}

// An export has every upstream with its downstreams and conditions. With -w it follows them; a file that is something else stays.
func TestExport(t *testing.T) {
	t.Setenv("KUBECONFIG", testkit.Kubeconfig(t))
	ns := testkit.Namespace(t)
	t.Chdir(t.TempDir())
	conf := strings.ReplaceAll(strings.Replace(everyKey, "  - {name: price, sql: {sqlite: {path: prices.db}, "+
		"query: \"SELECT color, price FROM prices\", key: color}, objectName: self.spec.color}\n", "", 1), "NS", ns)
	conf = strings.Replace(conf, "        price: \"{{ (input \"price\").row.price }}\"\n", "", 1)
	if err := os.WriteFile("operator.yaml", []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: builder}}")
	hostile := `it's "blue"; DROP TABLE upstreams; --`
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one, labels: {a: b}}, spec: {color: blue}}")
	runUntilIdle(t, ns, "operator.yaml")
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: red}, spec: {color: red}}")
	if code, out := run(t, "export", "-c", "operator.yaml", "--sqlite", "state.db"); code != 0 {
		t.Fatal(out)
	}
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
	p := startWriting(t, testkit.Config(), "export", "-c", "operator.yaml", "--sqlite", "state.db", "-w")
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"labels": {"a": "c"}}}`)
	follow := func(query, want string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			got := exported(t, "state.db", query)
			return got == want, got
		})
	}
	follow("SELECT group_concat(labels) FROM upstreams", `{"a":"c"}`)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	testkit.Delete(t, configMaps, ns, "one-a")
	follow("SELECT group_concat(state) FROM downstreams WHERE name = 'one-a'", "Create")
	if info, err := os.Stat("state.db"); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has another mode: %v, %v", info, err)
	}
	p.interrupt(t)
	if code := p.wait(t); code != 0 {
		t.Errorf("export -w ended with %d: %s", code, p.text(t))
	}
	if err := os.WriteFile("other.db", []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("pipe.db", 0o600); err != nil {
		t.Fatal(err)
	}
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
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": null}}`)
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
