package engine_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// writeBackTo adds a writeBack to a config.
func writeBackTo(conf string) string {
	return strings.Replace(conf, "  key: id\n", "  key: id\n  writeBack: UPDATE apps SET state = $state, message = $reason || ':' || $message WHERE id = $id\n", 1)
}

// withStates adds the columns that writeBackTo writes, and counts the writes of each row.
func (d *database) withStates() *database {
	d.exec("ALTER TABLE apps ADD COLUMN state TEXT")
	d.exec("ALTER TABLE apps ADD COLUMN message TEXT")
	d.exec("ALTER TABLE apps ADD COLUMN updated INTEGER")
	d.exec("CREATE TABLE writes (id)")
	d.exec("CREATE TRIGGER written AFTER UPDATE OF state ON apps BEGIN INSERT INTO writes VALUES (NEW.id); " +
		"UPDATE apps SET updated = (SELECT count(*) FROM writes) WHERE id = NEW.id; END")
	return d
}

func (d *database) insert(i int, data string) {
	d.t.Helper()
	d.exec("INSERT INTO apps (id, name, data) VALUES (?, ?, ?)", i, app(i), data)
}

// text is the only value that a query returns.
func (d *database) text(query string) (value string) {
	d.t.Helper()
	if err := d.db.QueryRow(query).Scan(&value); err != nil {
		d.t.Fatal(query, err)
	}
	return value
}

func (d *database) wait(query, want string) {
	d.t.Helper()
	waitText(d.t, want, func() string { return d.text(query) })
}

// stayWritten fails if another write to the rows comes.
func (d *database) stayWritten(t *testing.T, want string) {
	t.Helper()
	never(t, func() (bool, string) {
		n := d.text("SELECT count(*) FROM writes")
		return n != want, n + " writes"
	})
}

const states = "SELECT group_concat(id || '=' || coalesce(state, '') || '(' || coalesce(message, '') || ')', ' ') FROM (SELECT * FROM apps ORDER BY id)"

// The state of a row is written when it changes, and not again: whatever that changes in the row, even what the
// template reads.
func TestWriteBack(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t).withStates()
		db.insert(1, `{"key": "one"}`)
		db.insert(2, `{"key": "bad"}`)
		conf := writeBackTo(db.config(ns, name))
		conf = strings.Replace(conf, "SELECT id, name, data FROM", "SELECT id, name, data, state, message, updated FROM", 1)
		conf = strings.Replace(conf, "      data: {{ .row.data }}", "      data:\n        key: {{ .row.data.key }}\n        updated: v{{ .row.updated | default 0 }}", 1)
		conf = strings.Replace(conf, "downstreams:", "validate: [{rule: self.row.data.key != 'bad', message: it is bad}]\ndownstreams:", 1)
		r := start(t, testkit.Config(t), conf).ready()
		db.wait(states, "1=Ready(Ready:) 2=Failed(Invalid:Invalid value: it is bad)")
		waitData(t, ns, app(1), "updated", "v"+db.text("SELECT updated FROM apps WHERE id = 1"))
		db.stayWritten(t, "2")
		db.exec(`UPDATE apps SET data = '{"key": "two"}' WHERE id = 2`)
		db.wait(states, "1=Ready(Ready:) 2=Ready(Ready:)")
		r.changeTo(name, strings.Replace(conf, "key: {{", "more: x\n        key: {{", 1))
		waitData(t, ns, app(1), "more", "x")
		db.stayWritten(t, "3") // nothing is written again because of a reload
		db.exec("DELETE FROM apps WHERE id = 1")
		waitGone(t, configMaps, ns, app(1))
		db.stayWritten(t, "3")
	})
}

// A write that fails is reported and repeated, and nothing else waits for it.
func TestWriteBackFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, fail, fix, wants string }{
		{"a column is missing", "ALTER TABLE apps RENAME COLUMN state TO condition", "ALTER TABLE apps RENAME COLUMN condition TO state",
			"no such column: state"},
		{"a row is refused", "CREATE TRIGGER refuse BEFORE UPDATE OF state ON apps WHEN NEW.id = 1 BEGIN SELECT RAISE(ABORT, 'not this one'); END",
			"DROP TRIGGER refuse", "a trigger refused it"},
	} {
		t.Run(c.reason, spaced(func(t *testing.T, ns, name string) {
			db := newDatabase(t).withStates()
			db.insert(1, `{"key": "one"}`)
			db.insert(2, `{"key": "one"}`)
			db.exec("DROP TRIGGER written")
			db.exec(c.fail)
			logged := &logText{}
			r := startWith(t, testkit.Config(t), logged.to, writeBackTo(db.config(ns, name))).ready()
			waitApps(t, ns, name, 1, 2)
			waitState(t, name, "WriteBackFailed")
			for _, want := range []string{" cannot be written: executing source.writeBack: ", c.wants} {
				if !strings.Contains(logged.String(), want) {
					t.Errorf("the log does not say %s", want)
				}
			}
			r.mustBeReady()
			db.insert(3, `{"key": "one"}`)
			waitApps(t, ns, name, 1, 3)
			if metric(t, "corollary_source_write_backs_total", name, "result", "Failed") == 0 {
				t.Error("no failure is counted")
			}
			db.exec(c.fix)
			db.wait(states, "1=Ready(Ready:) 2=Ready(Ready:) 3=Ready(Ready:)")
			waitState(t, name, "Running")
			waitMetric(t, 0, "corollary_source_write_backs_pending", name)
		}))
	}
}

// maxLogLevel is the most that the command logs: beyond it client-go writes whole requests into the log.
const maxLogLevel = 7

// logText collects what is logged.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) to(_ *config.Operator, o *engine.Options) {
	o.Log = funcr.New(func(prefix, args string) { fmt.Fprintln(l, prefix, args) }, funcr.Options{Verbosity: maxLogLevel})
}

// startLogged runs a config and returns what gives all that it logs.
func startLogged(t *testing.T, conf string) func() string {
	t.Helper()
	log := &logText{}
	startWith(t, testkit.Config(t), log.to, conf).ready()
	return log.String
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Nothing is written outside of the tenure of the election.
func TestWriteBackNeedsTheLead(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t).withStates()
		db.insert(1, `{"key": "one"}`)
		tenure := leadership.NewTenure("Lease test", time.Hour, logr.Discard())
		startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) { o.Tenure = tenure }, writeBackTo(db.config(ns, name))).ready()
		waitApps(t, ns, name, 1, 1)
		db.stayWritten(t, "0")
		tenure.Renew(leadership.Now())
		db.wait(states, "1=Ready(Ready:)")
		tenure.End(fmt.Errorf("lost"))
		db.insert(2, `{"key": "one"}`)
		waitApps(t, ns, name, 1, 2)
		db.stayWritten(t, "1")
	})
}
