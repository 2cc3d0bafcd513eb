//go:build controlplane && databases

package clusters

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/corollary-dev/corollary/internal/postgres"
	"github.com/corollary-dev/corollary/pkg/activation"
)

const rowsConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: apps}
source:
  postgres: {dsnFrom: {file: DSN}}
  query: SELECT id, bad FROM apps
  key: id
  changes: {poll: 1s}
  writeBack: UPDATE apps SET state = $state, message = $message WHERE id = $id
validate: [{rule: "!has(self.row.bad)", messageExpression: "'bad ' + string(self.row.bad)"}]
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "row-{{ .row.id }}", namespace: NS}
    targetNamespaces: {from: List, names: [NS]}
conventions:
  fieldManager: apps
  labels: {tools.example.com/managed-by: apps}
  hash: {annotation: tools.example.com/hash}
  owner: {annotation: tools.example.com/row}
guard: {confirm: {namespace: NS, configMap: confirmations, key: apps}}
retry: {minDelay: 1s, maxDelay: 2s}
`

// Two clusters follow one table, and write states back to it: only the active one does, whatever happens to the lock
// and the processes, even if a statement waits in the database while its process is frozen. Each state is written in
// the end, and is not written again.
func TestPostgresWriteBack(t *testing.T) {
	t.Parallel()
	server := postgres.New(t)
	server.Exec("CREATE TABLE apps (id int PRIMARY KEY, bad int, state text, message text)",
		"INSERT INTO apps SELECT g FROM generate_series(1, 10) g",
		"CREATE TABLE writes (at timestamptz, cluster text, id int, message text)",
		`CREATE FUNCTION written() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.id = 1 THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
			INSERT INTO writes VALUES (clock_timestamp(), current_setting('application_name'), NEW.id, NEW.message); RETURN NEW; END $$`,
		"CREATE TRIGGER written BEFORE UPDATE OF state ON apps FOR EACH ROW EXECUTE FUNCTION written()")
	w := newWorld(t, startEtcdWith(t, "http"), *seed, func(ns, cluster string) string {
		dsn := filepath.Join(t.TempDir(), "dsn")
		write(t, filepath.Dir(dsn), "dsn", server.DSN()+"&application_name="+cluster)
		return strings.NewReplacer("DSN", dsn, "NS", ns).Replace(rowsConfig)
	})
	defer func() {
		if t.Failed() {
			t.Log(w.log.Text())
		}
	}()
	exec, held := connect(t, server), connect(t, server)
	value := 0
	change := func() { // the state of each row, so that the next active cluster has something to write
		t.Helper()
		value++
		exec(fmt.Sprintf("UPDATE apps SET bad = %d", value))
	}
	w.active()
	written(t, server, value)
	for _, f := range faults {
		switch f.name {
		case "the active process is killed", "the active process is frozen past the lease", "the active cluster cannot reach the lock",
			"the active cluster is asked to hand over":
		default:
			continue
		}
		held("SELECT pg_advisory_lock(1)")
		change()
		active, _ := w.active()
		eventually(t, "no state waits for the lock of its row", func() bool {
			const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = "
			return server.Exec(waiting+"'"+active.name+"'") == "1"
		})
		frozen := strings.Contains(f.name, "frozen")
		if frozen { // the row is free once the other cluster is active, while this process is still frozen
			f.do = func(w *world, active, standby *cluster) {
				active.signal(syscall.SIGSTOP)
				w.becomesActive(standby)
				held("SELECT pg_advisory_unlock(1)")
				<-time.After(retryPeriod)
				active.signal(syscall.SIGCONT)
			}
		}
		w.inject(f)
		if !frozen {
			held("SELECT pg_advisory_unlock(1)")
		}
		written(t, server, value)
	}
	checkHolds(t, server, w.watch.all())
	writes := server.Exec("SELECT count(*) FROM writes")
	for end := time.Now().Add(2 * leaseDuration); time.Now().Before(end); {
		if n := server.Exec("SELECT count(*) FROM writes"); n != writes {
			t.Fatalf("%s writes have become %s, though no state has changed", writes, n)
		}
	}
}

// connect returns what executes statements on one connection.
func connect(t *testing.T, server *postgres.Server) func(statements string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.DSN())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return func(statements string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
			t.Fatal(statements, err)
		}
	}
}

// written waits until the states of all rows are those of a value.
func written(t *testing.T, server *postgres.Server, value int) {
	t.Helper()
	want := "state = 'Ready'"
	if value > 0 {
		want = fmt.Sprintf("state = 'Failed' AND message LIKE '%%: bad %d'", value)
	}
	eventually(t, "not all states are written", func() bool {
		return server.Exec("SELECT count(*) FROM apps WHERE "+want) == "10"
	})
}

// checkHolds fails if a cluster has written while another one held the lock.
func checkHolds(t *testing.T, server *postgres.Server, holds []*activation.State) {
	t.Helper()
	const all = "SELECT extract(epoch FROM at) * 1000000, cluster, id, message FROM writes ORDER BY at"
	for _, line := range strings.Split(server.Exec(all), "\n") {
		fields := strings.Split(line, "|")
		var micros float64
		if _, err := fmt.Sscan(fields[0], &micros); err != nil {
			t.Fatal(line, err)
		}
		at := time.UnixMicro(int64(micros))
		var active string
		for _, h := range holds {
			if h.Since.Before(at) {
				active = h.Identity
			}
		}
		if fields[1] != active {
			t.Errorf("%s has written while %s was active: %s", fields[1], active, line)
		}
	}
}
