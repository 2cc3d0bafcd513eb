//go:build controlplane && databases

package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/internal/postgres"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// fillAll is fillTable for a table with more columns.
func fillAll(from, to int) string {
	return strings.Replace(fillTable(from, to), "INTO apps", "INTO apps (id, name, data)", 1)
}

// A transaction that is held open hides its changes until it commits, and they are found then, though the cursor is past them and nobody
// notifies. A table that it locks is a query that takes too long, which deletes nothing.
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

// A state that waits for a lock of the database holds up the others for no longer than the timeout, and is not written after the tenure
// has ended.
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
				testkit.Eventually(t, patience, func() (bool, string) {
					n := server.Exec(query)
					return n == want, n + " statements wait"
				})
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
