//go:build controlplane && databases

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/internal/mariadb"
	"github.com/corollary-dev/corollary/internal/postgres"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

const appsTable = "CREATE TABLE apps (id bigint PRIMARY KEY, name text, data jsonb)"

// fillTable is a statement that inserts rows named app-FROM to app-TO.
func fillTable(from, to int) string {
	return fmt.Sprintf(`INSERT INTO apps SELECT g, 'app-' || g, '{"key": "one"}' FROM generate_series(%d, %d) g`, from, to)
}

// postgresConfig is rowsConfig for a PostgreSQL database, with a connection string somewhere.
func postgresConfig(ns, name, dsnFrom string) string {
	return strings.Replace(fill(rowsConfig, ns, name), "sqlite: {path: DB}", "postgres: {dsnFrom: "+dsnFrom+"}", 1)
}

// dsnFile is a file with a connection string.
func dsnFile(t *testing.T, dsn string) (path string, change func(dsn string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "dsn")
	change = func(dsn string) {
		if err := os.WriteFile(path, []byte(dsn+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(dsn)
	return path, change
}

// Of ten thousand rows, one that changes costs one execution of the query and one apply.
func TestPostgresManyRows(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	server.Exec(appsTable, fillTable(1, 10000))
	file, _ := dsnFile(t, server.DSN())
	conf := with(postgresConfig(ns, name, "{file: "+file+"}"), `when: self.row.id <= 10 || self.row.id == 5000`)
	conf = strings.Replace(conf, "changes: {poll: 1s}", "timeout: 1h\n  changes: {listen: apps, poll: 1h}", 1) // so none is executed twice
	_, counts := startCounted(t, conf)
	waitData(t, ns, app(5000), "key", "one")
	testkit.Eventually(t, patience, func() (bool, string) {
		n := metric(t, "corollary_queue", name)
		return n == 0 && metric(t, "corollary_upstreams", name) == 10000, fmt.Sprintf("%v are queued", n)
	})
	scans := func() string { return server.Exec("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'apps'") }
	writes := func() int { return counts.Mutating(func(r testkit.Request) bool { return r.Resource != "events" }) }
	made := writes()
	server.Exec("SET enable_seqscan = off", `UPDATE apps SET data = '{"key": "two"}' WHERE id = 5000`, "NOTIFY apps")
	waitData(t, ns, app(5000), "key", "two")
	if n := writes() - made; n != 1 {
		t.Errorf("a changed row costs %d writes", n)
	}
	executed := func() (bool, string) { // the server counts within ten seconds; the first scan is for the primary key
		n := scans()
		return n == "3", n + " scans"
	}
	testkit.Eventually(t, patience, executed)
	never(t, func() (bool, string) {
		same, n := executed()
		return !same, n
	})
}

// What happens to a database loses nothing, and passes. Nobody sends the notifications that the operator listens for.
func TestPostgresTroubles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason       string
		begin, after func(s *postgres.Server)
		state        string // in between
	}{
		{"a restart while the query is executed", func(s *postgres.Server) {
			s.Exec("ALTER TABLE apps RENAME TO slow", "CREATE VIEW apps AS SELECT slow.* FROM slow, pg_sleep(1)")
			s.Kill()
		}, (*postgres.Server).Start, "SourceFailed"},
		{"notifications that are missed", func(*postgres.Server) {}, nil, ""},
		{"a lost connection", func(s *postgres.Server) {
			s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		}, nil, ""},
		{"a query that becomes slow", func(s *postgres.Server) {
			s.Exec("ALTER TABLE apps RENAME TO locked", "CREATE VIEW apps AS SELECT locked.* FROM locked, pg_sleep(600)")
		},
			func(s *postgres.Server) { s.Exec("DROP VIEW apps", "ALTER TABLE locked RENAME TO apps") }, "SourceFailed"},
		{"a renamed column", func(s *postgres.Server) { s.Exec("ALTER TABLE apps RENAME COLUMN data TO content") },
			func(s *postgres.Server) { s.Exec("ALTER TABLE apps RENAME COLUMN content TO data") }, "SourceFailed"},
		{"a right that is taken away", func(s *postgres.Server) { s.Exec("REVOKE SELECT ON apps FROM reader") },
			func(s *postgres.Server) { s.Exec("GRANT SELECT ON apps TO reader") }, "SourceFailed"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
			server.Exec(appsTable, fillTable(1, 3), "CREATE ROLE reader LOGIN PASSWORD 'unprivileged'", "GRANT SELECT ON apps TO reader",
				"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader")
			file, _ := dsnFile(t, server.DSNOf("reader", "unprivileged"))
			conf := strings.Replace(postgresConfig(ns, name, "{file: "+file+"}"), "  key: id\n  changes: {poll: 1s}\n",
				"  key: id\n  timeout: 2s\n  changes: {listen: apps, poll: 2s}\n", 1)
			start(t, testkit.Config(t), conf).ready()
			waitApps(t, ns, name, 1, 3)
			c.begin(server)
			if c.state != "" {
				waitState(t, name, c.state)
			}
			stayApps(t, ns, 1, 3)
			if c.after != nil {
				c.after(server)
			}
			table := "apps"
			if strings.Contains(c.reason, "restart") {
				table = "slow"
			}
			server.Exec(strings.Replace(fillTable(4, 4), "apps", table, 1))
			waitApps(t, ns, name, 1, 4)
			waitState(t, name, "Running")
		})
	}
}

// After a failover to a standby that had not seen a row, its objects wait for a confirmation, also over a reload.
func TestPostgresFailover(t *testing.T) {
	t.Parallel()
	ns, name, primary := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	primary.Exec(appsTable, fillTable(1, 3))
	standby := primary.Standby()
	file, change := dsnFile(t, primary.DSN())
	conf := postgresConfig(ns, name, "{file: "+file+"}")
	r := start(t, testkit.Config(t), conf).ready()
	waitApps(t, ns, name, 1, 3)
	standby.Exec("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	waitText(t, "0", func() string { return standby.Exec("SELECT count(*) FROM pg_stat_wal_receiver") })
	primary.Exec(fillTable(4, 4))
	waitApps(t, ns, name, 1, 4)
	primary.Kill()
	change(standby.DSN())
	waitMetric(t, 1, "corollary_operator_state", name, "reason", "SourceFailed")
	stayApps(t, ns, 1, 4)
	standby.Promote()
	r.waitSays("1 of ", "a standby became the primary")
	standby.Exec(fillTable(5, 5))
	waitData(t, ns, app(5), "key", "one")
	stayApps(t, ns, 1, 5)
	r.changeTo(name, strings.Replace(conf, "data: {{ .row.data }}", "data: {key: two}", 1))
	waitData(t, ns, app(5), "key", "two")
	r.waitSays("1 of ", "a standby became the primary")
	stayApps(t, ns, 1, 5)
	confirmWith(t, ns, "rows", r.digest())
	waitGone(t, configMaps, ns, app(4))
	stayApps(t, ns, 5, 5)
	standby.Exec("DELETE FROM apps WHERE id = 5") // what this primary has shown is not in doubt
	waitGone(t, configMaps, ns, app(5))
}

// The connection string comes from a Secret, which may change, and is printed nowhere.
func TestPostgresSecret(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	server.Exec(appsTable, fillTable(1, 1), "CREATE ROLE reader LOGIN PASSWORD 'first-password'", "GRANT SELECT ON apps TO reader")
	secret := func(password string) {
		testkit.Apply(t, ns, "apiVersion: v1\nkind: Secret\nmetadata: {name: database}\nstringData: {url: '"+server.DSNOf("reader", password)+"'}\n")
	}
	secret("first-password")
	logged := &logText{}
	r := startWith(t, testkit.Config(t), logged.to, postgresConfig(ns, name, "{secret: {namespace: "+ns+", name: database, key: url}}")).ready()
	waitApps(t, ns, name, 1, 1)
	server.Exec("ALTER ROLE reader PASSWORD 'second-password'",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
	testkit.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(logged.String(), "password authentication failed"), "the log does not say that the password is wrong"
	})
	waitState(t, name, "SourceFailed")
	texts := text(r.Reloaded(nil))
	secret("second-password")
	waitState(t, name, "Running")
	server.Exec(fillTable(2, 2))
	waitApps(t, ns, name, 1, 2)
	for _, e := range testkit.List(t, events, "default", "") {
		texts += fmt.Sprint(e.Object)
	}
	texts += logged.String()
	for _, hidden := range []string{"first-password", "second-password", server.Address()} {
		if strings.Contains(texts, hidden) {
			t.Errorf("%s is printed", hidden)
		}
	}
}

// Two operators on one table: the second has conflicts, and none deletes what the other one made.
func TestPostgresTwoOperators(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	other := testkit.Unique(t)
	server.Exec(appsTable, fillTable(1, 4))
	file, _ := dsnFile(t, server.DSN())
	first := strings.Replace(postgresConfig(ns, name, "{file: "+file+"}"), "FROM apps", "FROM apps WHERE id <= 3", 1)
	second := strings.Replace(postgresConfig(ns, other, "{file: "+file+"}"), "FROM apps", "FROM apps WHERE id >= 3", 1)
	second = strings.NewReplacer("key: rows", "key: others", // the same marks, as where a conventionsFile is shared
		other+".example.com", name+".example.com").Replace(second)
	start(t, testkit.Config(t), first).ready()
	waitApps(t, ns, name, 1, 3)
	start(t, testkit.Config(t), second).ready()
	waitApps(t, ns, name, 1, 4)
	waitEvent(t, "default", other, "Conflict", "row 3: config: "+ns+"/app-3 exists and belongs to another 3 (uid "+name+":3, ours is "+other+":3)")
	server.Exec("DELETE FROM apps WHERE id = 4")
	waitGone(t, configMaps, ns, app(4))
	stayApps(t, ns, 1, 3)
}

// States are written by a role of their own. A trigger that sets a time and notifies wakes nothing twice, and what
// happens to the database loses no state.
func TestPostgresWriteBack(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	server.Exec(appsTable, "ALTER TABLE apps ADD COLUMN state varchar(20), ADD COLUMN message text, ADD COLUMN updated_at timestamptz",
		"CREATE TABLE writes (id bigint)",
		`CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
			NEW.updated_at = clock_timestamp(); INSERT INTO writes VALUES (NEW.id); NOTIFY apps; RETURN NEW; END $$`,
		"CREATE TRIGGER touched BEFORE UPDATE ON apps FOR EACH ROW EXECUTE FUNCTION touch()",
		"CREATE ROLE reader LOGIN PASSWORD 'unprivileged'", "GRANT SELECT ON apps TO reader",
		"CREATE ROLE writer LOGIN PASSWORD 'unprivileged'", "GRANT SELECT (id), UPDATE (state, message) ON apps TO writer",
		fillTable(1, 2), `INSERT INTO apps (id, name, data) VALUES (3, 'Not a name''; DROP TABLE apps; --', '{"key": "one"}')`)
	reader, _ := dsnFile(t, server.DSNOf("reader", "unprivileged"))
	writer, change := dsnFile(t, server.DSNOf("writer", "wrong"))
	conf := postgresConfig(ns, name, "{file: "+reader+"}")
	conf = strings.NewReplacer("changes: {poll: 1s}", "changes: {listen: apps, poll: 1h}",
		"SELECT id, name, data FROM", "SELECT id, name, data, updated_at FROM",
		"  key: id\n", "  key: id\n  writeDSNFrom: {file: "+writer+"}\n  writeBack: UPDATE apps SET state = $state, message = $message WHERE id = $id\n",
		"      data: {{ .row.data }}", "      data: {key: '{{ .row.data.key }}', at: '{{ .row.updated_at | default \"never\" }}'}").Replace(conf)
	start(t, testkit.Config(t), conf).ready()
	waitData(t, ns, app(1), "key", "one")
	waitState(t, name, "WriteBackFailed")
	change(server.DSNOf("writer", "unprivileged"))
	query := "SELECT string_agg(id || '=' || coalesce(state, ''), ' ' ORDER BY id) FROM apps"
	wait := func(want string) {
		t.Helper()
		waitText(t, want, func() string { return server.Exec(query) })
	}
	wait("1=Ready 2=Ready 3=Failed")
	waitState(t, name, "Running")
	if message := server.Exec("SELECT message FROM apps WHERE id = 3"); !strings.Contains(message, "'; DROP TABLE apps; --") {
		t.Errorf("the message is %s", message)
	}
	writes := server.Exec("SELECT count(*) FROM writes WHERE id < 3")
	never(t, func() (bool, string) {
		n := server.Exec("SELECT count(*) FROM writes WHERE id < 3")
		return n != writes || n != "2", n + " writes of states that do not change"
	})
	server.Kill()
	server.Start()
	server.Exec(fillTable(4, 4), "NOTIFY apps")
	wait("1=Ready 2=Ready 3=Failed 4=Ready")
	waitState(t, name, "Running")
}

// fillAll is fillTable for a table with more columns.
func fillAll(from, to int) string {
	return strings.Replace(fillTable(from, to), "INTO apps", "INTO apps (id, name, data)", 1)
}

// A transaction that is held open hides its changes until it commits, and they are found then, though the cursor is
// past them and nobody notifies. A table that it locks is a query that takes too long, which deletes nothing.
func TestPostgresHeldTransactions(t *testing.T) {
	t.Parallel()
	ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
	server.Exec(appsTable, "ALTER TABLE apps ADD COLUMN updated_at timestamptz DEFAULT clock_timestamp()",
		fillAll(1, 4))
	file, _ := dsnFile(t, server.DSN())
	conf := strings.NewReplacer("changes: {poll: 1s}", "timeout: 2s\n  changes: {listen: apps, poll: 1s, cursor: updated_at, overlap: 1s, full: 8s}",
		"SELECT id, name, data FROM", "SELECT id, name, data, updated_at FROM").Replace(postgresConfig(ns, name, "{file: "+file+"}"))
	start(t, testkit.Config(t), conf).ready()
	waitApps(t, ns, name, 1, 4)
	set := func(value, id string) string {
		return `UPDATE apps SET data = '{"key": "` + value + `"}', updated_at = clock_timestamp() WHERE id = ` + id
	}
	end := server.Hold(t, set("late", "1"), "DELETE FROM apps WHERE id = 4")
	for _, value := range []string{"two", "three"} { // the cursor passes that of the transaction
		server.Exec(set(value, "2"), "SELECT pg_sleep(1.1)")
		waitData(t, ns, app(2), "key", value)
	}
	waitData(t, ns, app(1), "key", "one")
	stayApps(t, ns, 1, 4)
	end()
	waitData(t, ns, app(1), "key", "late")
	waitGone(t, configMaps, ns, app(4))
	end = server.Hold(t, "LOCK TABLE apps IN ACCESS EXCLUSIVE MODE", "DELETE FROM apps WHERE id = 3")
	waitState(t, name, "SourceFailed")
	stayApps(t, ns, 1, 3)
	end()
	waitGone(t, configMaps, ns, app(3))
	waitState(t, name, "Running")
	stayApps(t, ns, 1, 2)
}

// A state that waits for a lock of the database holds up the others for no longer than the timeout, and is not written
// after the tenure has ended.
func TestPostgresWriteBackWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, timeout, then string }{
		{"the timeout ends first", "2s", "1=Ready 2=Ready"},
		{"the tenure ends first", "10m", "1= 2="},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			ns, name, server := testkit.Namespace(t), testkit.Unique(t), postgres.New(t)
			server.Exec(appsTable, "ALTER TABLE apps ADD COLUMN state text", fillAll(1, 2))
			file, _ := dsnFile(t, server.DSN())
			conf := strings.Replace(postgresConfig(ns, name, "{file: "+file+"}"), "  key: id\n",
				"  key: id\n  timeout: "+c.timeout+"\n  writeBack: UPDATE apps SET state = $state WHERE id = $id\n", 1)
			waiting := func(want string) {
				t.Helper()
				const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE apps SET state%'"
				waitText(t, want, func() string { return server.Exec(query) })
			}
			tenure := leadership.NewTenure("Lease test", time.Hour, logr.Discard())
			tenure.Renew(leadership.Now())
			end := server.Hold(t, "SELECT * FROM apps FOR UPDATE")
			startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) { o.Tenure = tenure }, conf).ready()
			waitApps(t, ns, name, 1, 2)
			waiting("1")
			if c.timeout == "2s" {
				waitState(t, name, "WriteBackFailed")
				end()
				waitState(t, name, "Running")
			} else {
				tenure.End(errors.New("lost"))
				waiting("0") // the server has given it up, though the lock is still held
				end()
			}
			states := func() (bool, string) {
				have := server.Exec("SELECT string_agg(id || '=' || coalesce(state, ''), ' ' ORDER BY id) FROM apps")
				return have == c.then, have
			}
			testkit.Eventually(t, patience, states)
			never(t, func() (bool, string) { same, have := states(); return !same, have })
		})
	}
}

// Rows of a MySQL database are as those of others: followed, never deleted because of a failure, and their state is
// written back. The connection string comes from a Secret, and is printed nowhere.
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
