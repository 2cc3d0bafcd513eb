package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Rows of a database are inputs like objects: one of them, or a list. A query that fails changes nothing.
func TestInputSQL(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name, db := testkit.Namespace(t), testkit.Unique(t), newDatabase(t)
		db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, team TEXT, name TEXT)")
		db.exec("CREATE TABLE prices (team TEXT PRIMARY KEY, price INTEGER)")
		db.exec("INSERT INTO users VALUES (2, 'a', 'ann'), (1, 'b', 'bob'), (10, 'a', 'al')")
		db.exec("INSERT INTO prices VALUES ('a', 5)")
		conf := strings.NewReplacer("downstreams:\n  - name", `inputs:
  - name: price
    sql: {sqlite: {path: DB}, query: "SELECT team, price FROM prices", key: team, changes: {poll: 1s}}
    objectName: self.metadata.name
  - name: users
    sql: {sqlite: {path: DB}, query: "SELECT id, team, name FROM users", key: id, changes: {poll: 1s}}
    list: {matching: object.row.team == self.metadata.name}
downstreams:
  - name`, "data: {{ .spec.data }}", `data:
        price: "{{ (input "price").row.price }}"
        users: "{{ range input "users" }}{{ .row.name }} {{ end }}"`).Replace(fill(widgetConfig, ns, name))
		conf = strings.ReplaceAll(conf, "DB", db.path)
		_, counter := startCounted(t, conf)
		testkit.Apply(t, ns, widget("a", "{}"))
		testkit.Apply(t, ns, widget("b", "{}"))
		waitData(t, ns, "a", "price", "5")
		waitData(t, ns, "a", "users", "ann al ")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitCondition(t, widgets, ns, "b", "Ready", "False") // there is no such row
		db.exec("INSERT INTO prices VALUES ('b', 7)")
		waitData(t, ns, "b", "price", "7")
		waitData(t, ns, "b", "users", "bob ")
		waitCondition(t, widgets, ns, "b", "Ready", "True")
		writes := func() int {
			return counter.Mutating(func(r testkit.Request) bool { return r.Resource == "configmaps" })
		}
		made := writes()
		db.exec("UPDATE users SET team = 'b' WHERE id = 10")
		waitData(t, ns, "a", "users", "ann ")
		waitData(t, ns, "b", "users", "bob al ")
		if n := writes() - made; n != 2 {
			t.Errorf("a row that moves from one list to another makes %d writes", n)
		}
		db.exec("ALTER TABLE users RENAME TO people")
		waitState(t, name, "SourceFailed")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data": {"users": "drifted"}}`)
		waitData(t, ns, "a", "users", "ann ")
		db.exec("UPDATE prices SET price = 6 WHERE team = 'a'")
		waitData(t, ns, "a", "price", "6")
		waitData(t, ns, "a", "users", "ann ")
		db.exec("ALTER TABLE people RENAME TO users")
		waitState(t, name, "Running")
		db.exec("DELETE FROM users")
		waitData(t, ns, "a", "users", "")
	})
}

// Without its first result, an operator does nothing: what it reads is not known to be empty.
func TestInputSQLThatCannotBeRead(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name, db := testkit.Namespace(t), testkit.Unique(t), newDatabase(t)
		conf := strings.NewReplacer("downstreams:\n  - name", `inputs:
  - {name: users, sql: {sqlite: {path: `+db.path+`}, query: SELECT id FROM users, key: id, changes: {poll: 1s}}, list: {}}
downstreams:
  - name`, "data: {{ .spec.data }}", `data: {users: "{{ len (input "users") }}"}`).Replace(fill(widgetConfig, ns, name))
		r := start(t, testkit.Config(t), conf)
		testkit.Apply(t, ns, widget("a", "{}"))
		testkit.Eventually(t, patience, func() (bool, string) {
			err := text(r.Ready(nil))
			return strings.Contains(err, "SourceFailed") && strings.Contains(err, "executing inputs[0].sql.query: "), err
		})
		mustBeAbsent(t, configMaps, ns, "a", "an object was made of a list that is not known")
		db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY)")
		r.ready()
		waitData(t, ns, "a", "users", "0")
	})
}

// Rows that are upstreams read lists of rows, too, although neither is in a namespace.
func TestRowsReadRows(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name, db := testkit.Namespace(t), testkit.Unique(t), newDatabase(t)
		db.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, app TEXT, name TEXT)")
		db.exec("INSERT INTO users VALUES (1, 'app-1', 'ann'), (2, 'app-2', 'bob')")
		db.add(1, 2)
		conf := strings.NewReplacer("downstreams:\n  - name", `inputs:
  - name: users
    sql: {sqlite: {path: DB}, query: "SELECT id, app, name FROM users", key: id, changes: {poll: 1s}}
    list: {matching: object.row.app == self.row.name}
  - name: size
    sql: {sqlite: {path: DB}, query: "SELECT name, length(data) AS size FROM apps", key: name, changes: {poll: 1s}}
    objectName: self.row.name
downstreams:
  - name`, "data: {{ .row.data }}", `data:
        users: "{{ range input "users" }}{{ .row.name }} {{ end }}"
        size: "{{ (input "size").row.size }}"`).Replace(rowsConfig)
		start(t, testkit.Config(t), strings.ReplaceAll(fill(conf, ns, name), "DB", db.path)).ready()
		waitData(t, ns, "app-1", "users", "ann ")
		waitData(t, ns, "app-2", "users", "bob ")
		waitData(t, ns, "app-1", "size", "14")
		db.exec("UPDATE users SET app = 'app-1'")
		waitData(t, ns, "app-1", "users", "ann bob ")
		waitData(t, ns, "app-2", "users", "")
	})
}
