package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// rowsOperator makes a ConfigMap of each row.
const rowsOperator = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NS}
source: {sqlite: {path: apps.db}, query: "SELECT id, name FROM apps", key: id, changes: {poll: 1s}}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: "{metadata: {name: '{{ .row.name }}', namespace: NS}, data: {id: '{{ .row.id }}'}}"
    targetNamespaces: {from: List, names: [NS]}
` + ownConventions + `guard: {confirm: {namespace: NS, configMap: confirmations, key: rows}}
`

// TestPlanAndBackupOfRows: plan says that nothing is deleted yet where an answer of the database is in doubt, and fails
// where there is none. A backup has what follows from rows.
func TestPlanAndBackupOfRows(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := inDirectory(t)
	write(t, dir+"/operator.yaml", strings.ReplaceAll(rowsOperator, "NS", ns))
	_, exec := database(t, dir+"/apps.db")
	exec("CREATE TABLE apps (id INTEGER PRIMARY KEY, name TEXT)")
	exec("INSERT INTO apps VALUES (1, 'one'), (2, 'two')")
	runUntilIdle(t, ns, "operator.yaml")
	expect := func(code int, command string, want ...string) {
		t.Helper()
		got, out := run(t, strings.Fields(command)...)
		for _, text := range want {
			if got != code || !strings.Contains(out, text) {
				t.Errorf("%s exits with %d, and %q is wanted:\n%s", command, got, text, out)
			}
		}
	}
	expect(0, "backup -c operator.yaml --downstreams -o "+dir+"/backup.tar.zst", "configmaps: 2 objects")
	before := testkit.Find(t, configMaps, ns, "one").GetAnnotations()
	testkit.Delete(t, configMaps, ns, "one")
	expect(0, "restore backup.tar.zst", "configmaps")
	owner := ns + ".example.com/owner"
	if after := testkit.Find(t, configMaps, ns, "one"); after == nil || after.GetAnnotations()[owner] != before[owner] {
		t.Errorf("restored is %v", after)
	}
	expect(0, "plan -c operator.yaml", "2 unchanged")
	exec("DELETE FROM apps WHERE id = 1")
	expect(2, "plan -c operator.yaml", "Plan: 1 to delete, 1 unchanged\n")
	exec("DELETE FROM apps")
	expect(2, "plan -c operator.yaml", "Plan: 2 to delete\n")
	expect(2, "plan -c operator.yaml", "the query returned no rows, which may be a mistake: "+
		"run deletes what belongs to the missing rows only after a confirmation")
	exec("DROP TABLE apps")
	expect(1, "plan -c operator.yaml", "executing source.query: SQL logic error: no such table: apps")
}

// TestWhyRow: why takes any key as the database has it, and the name that get shows.
func TestWhyRow(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := inDirectory(t)
	write(t, dir+"/operator.yaml", strings.ReplaceAll(rowsOperator, "NS", ns))
	db, _ := database(t, dir+"/apps.db")
	long := strings.Repeat("long/", 60)
	for i, key := range []string{"", "a/b", "50%", "a%2Fc", "x y", "ü", `"q"`, long} {
		statement, values := "CREATE TABLE apps (id, name)", []any(nil)
		if key != "" {
			statement, values = "INSERT INTO apps VALUES (?, ?)", []any{key, fmt.Sprintf("app-%d", i)}
		}
		must(db.Exec(statement, values...))(t)
	}
	for i, name := range []string{"", "a/b", "50%", "a%2Fc", "x y", "ü", `"q"`, long} {
		for _, args := range [][]string{{"row", name}, {"row/" + name}} {
			code, out := run(t, append([]string{"why", "-c", "operator.yaml"}, args...)...)
			if want := fmt.Sprintf("app-%d", i); name != "" && (code != 0 || !strings.Contains(out, want)) {
				t.Errorf("why %q exits with %d, and says nothing of %s:\n%s", args, code, want, out)
			}
		}
	}
	if _, out := run(t, "why", "-c", "operator.yaml", "row", "a%2Fb"); !strings.Contains(out, "app-1") {
		t.Errorf("why does not know the name that get shows:\n%s", out)
	}
	if _, out := run(t, "why", "-c", "operator.yaml", "row", "a/c"); !strings.Contains(out, "source.query does not return it") {
		t.Errorf("why finds a row that does not exist:\n%s", out)
	}
}
