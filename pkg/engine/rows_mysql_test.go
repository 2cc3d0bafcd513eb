//go:build controlplane && databases

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/mariadb"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// Rows of a MySQL database are as those of others: followed, never deleted because of a failure, and told their state. The connection
// string comes from a Secret, and is printed nowhere.
func TestMySQL(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), mariadb.New(t)
	server.Exec("CREATE TABLE apps (id bigint PRIMARY KEY, name varchar(300), data longtext, state text, message text, updated_at datetime(6) "+
		"DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6)) CHARACTER SET utf8mb4",
		"CREATE USER reader IDENTIFIED BY 'first-password'", "GRANT SELECT, UPDATE ON test.* TO reader")
	add := func(from, to int) {
		for i := from; i <= to; i++ {
			server.Exec(fmt.Sprintf(`INSERT INTO apps (id, name, data) VALUES (%d, 'app-%[1]d', '{"key": "one"}')`, i))
		}
	}
	add(1, 4)
	server.Exec("INSERT INTO apps (id, name, data) VALUES (9, 'Not a name''; DROP TABLE apps; -- \\\\', '{}')")
	testkit.Apply(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: database}\nstringData: {url: '"+server.DSNOf("reader", "first-password")+"'}\n")
	conf := strings.NewReplacer("sqlite: {path: DB}", "mysql: {dsnFrom: {secret: {namespace: "+ns+", name: database, key: url}}}",
		"changes: {poll: 1s}", "changes: {poll: 1s, cursor: updated_at, overlap: 1s, full: 5s}\n  timeout: 2s\n"+
			"  writeBack: UPDATE apps SET state = $state, message = $message WHERE id = $id AND NOT (state <=> $state AND message <=> $message)",
		"SELECT id, name, data FROM", "SELECT id, name, data, updated_at FROM", "data: {{ .row.data }}", "data: {{ fromJson .row.data }}").
		Replace(fill(rowsConfig, ns, name))
	logged := &logText{}
	startWith(t, testkit.Config(t), logged.to, conf).ready()
	waitApps(t, ns, name, 1, 4)
	states := func(want string) {
		t.Helper()
		waitText(t, want, func() string { return server.Text("SELECT concat(id, '=', coalesce(state, '')) FROM apps ORDER BY id") })
	}
	states("1=Ready,2=Ready,3=Ready,4=Ready,9=Failed")
	if message := server.Text("SELECT message FROM apps WHERE id = 9"); !strings.Contains(message, "'; DROP TABLE apps; -- \\") {
		t.Errorf("the message is %s", message)
	}
	server.Exec(`UPDATE apps SET data = '{"key": "two"}' WHERE id = 2`, "DELETE FROM apps WHERE id = 4")
	waitData(t, ns, app(2), "key", "two")
	waitGone(t, configMaps, ns, app(4))
	server.Exec("ALTER TABLE apps RENAME COLUMN data TO content")
	waitState(t, name, "SourceFailed")
	stayApps(t, ns, 1, 3)
	server.Exec("ALTER TABLE apps RENAME COLUMN content TO data")
	waitState(t, name, "Running")
	server.Kill()
	waitState(t, name, "SourceFailed")
	stayApps(t, ns, 1, 3)
	server.Start()
	add(5, 5)
	waitData(t, ns, app(5), "key", "one")
	states("1=Ready,2=Ready,3=Ready,5=Ready,9=Failed")
	waitState(t, name, "Running")
	for _, hidden := range []string{"first-password", "reader:", "tcp("} {
		if strings.Contains(logged.String(), hidden) {
			t.Errorf("%s is printed", hidden)
		}
	}
}
