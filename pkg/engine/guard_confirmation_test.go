package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// confirmRows writes a digest under the key of the ConfigMap that confirms changes of rows.
func confirmRows(t *testing.T, ns, digest string) {
	t.Helper()
	testkit.Apply(t, ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: confirmations}\ndata: {rows: \""+digest+"\"}\n")
}

// otherDigest waits until the digest that waits differs from the given one, and returns it.
func (r *running) otherDigest(digest string) string {
	r.t.Helper()
	other := ""
	testkit.Eventually(r.t, patience, func() (bool, string) {
		other = r.digest()
		return other != digest, "it is still " + digest
	})
	return other
}

// remove deletes rows, from and to included.
func (d *database) remove(from, to int) {
	d.t.Helper()
	d.exec("DELETE FROM apps WHERE id BETWEEN ? AND ?", from, to)
}

// TestConfirmationOfWhatWaits: what counts is whether the change that waits now is confirmed, whenever and in whatever order the
// confirmation was written.
func TestConfirmationOfWhatWaits(t *testing.T) {
	t.Parallel()
	const all, gone = 40, 10 // at most 5 go without confirmation
	for _, row := range []struct {
		reason string
		steps  func(t *testing.T, ns, name string, db *database, r *running, first string)
		stays  bool
	}{
		{"it was written while another change waited, and its own came back", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			db.remove(gone+1, all-1)
			r.otherDigest(first)
			confirmRows(t, ns, first)
			stayApps(t, ns, 1, all)
			db.add(gone+1, all-1)
		}, false},
		{"the larger change that it names never came back", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			db.remove(gone+1, all-1)
			larger := r.otherDigest(first)
			db.add(gone+1, all-1)
			testkit.Eventually(t, patience, func() (bool, string) { now := r.digest(); return now == first, now + " waits" })
			confirmRows(t, ns, larger)
		}, true},
		{"it names what waited before as many others were gone", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			back := fmt.Sprintf("DELETE FROM apps WHERE id BETWEEN %d AND %d;", gone+1, 2*gone)
			for i := 1; i <= gone; i++ {
				back += fmt.Sprintf(`INSERT INTO apps VALUES (%d, '%s', '{"key": "one"}');`, i, app(i))
			}
			db.exec("BEGIN;" + back + "COMMIT")
			r.otherDigest(first)
			confirmRows(t, ns, first)
		}, true},
		{"it was written before there was anything to confirm", func(t *testing.T, ns, name string, db *database, r *running, first string) {
			db.add(1, gone)
			waitState(t, name, "Running")
			confirmRows(t, ns, first)
			db.remove(1, gone)
		}, false},
		{"it was withdrawn before its change came back", func(t *testing.T, ns, _ string, db *database, r *running, first string) {
			db.remove(gone+1, all-1)
			r.otherDigest(first)
			confirmRows(t, ns, first)
			testkit.Delete(t, configMaps, ns, "confirmations")
			stayApps(t, ns, 1, all)
			db.add(gone+1, all-1)
			testkit.Eventually(t, patience, func() (bool, string) { now := r.digest(); return now == first, now + " waits" })
		}, true},
		{"it was written for more rows that guard would allow", func(t *testing.T, ns, name string, db *database, r *running, first string) {
			db.add(gone, gone)
			confirmRows(t, ns, first)
			waitApps(t, ns, name, gone, all)
			db.remove(gone, gone)
		}, false},
	} {
		t.Run(row.reason, bubbled(func(t *testing.T) {
			ns, name, db := testkit.Namespace(t), testkit.Unique(t), newDatabase(t)
			db.add(1, all)
			r := start(t, testkit.Config(t), db.config(ns, name)).ready()
			waitApps(t, ns, name, 1, all)
			db.remove(1, gone)
			waitState(t, name, "GuardWaiting")
			row.steps(t, ns, name, db, r, r.digest())
			if row.stays {
				stayApps(t, ns, 1, all)
				return
			}
			for i := 1; i <= gone; i++ {
				waitGone(t, configMaps, ns, app(i))
			}
			stayApps(t, ns, gone+1, all)
		}))
	}
}

// TestDigestsAreLogged: whoever reads the log finds the digest of what waits now, and that nothing waits any more.
func TestDigestsAreLogged(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name, db := testkit.Namespace(t), testkit.Unique(t), newDatabase(t)
		db.add(1, 40)
		logged := startLogged(t, db.config(ns, name))
		waitApps(t, ns, name, 1, 40)
		says := func(either ...string) {
			t.Helper()
			testkit.Eventually(t, patience, func() (bool, string) {
				said := slices.ContainsFunc(either, func(text string) bool { return strings.Contains(logged(), text) })
				return said, "the log does not say: " + strings.Join(either, " or ")
			})
		}
		db.remove(1, 10)
		says("10 of 40 existing downstreams would be deleted")
		db.remove(11, 30)
		says("30 of 40 existing downstreams would be deleted")
		db.add(1, 30)
		// Rows come back one by one: guard may allow the rest of what waited before the last one is back.
		says(`"no change waits for confirmation any more"`, `"because"="guard allows the rest"`)
		if digests := len(digestRE.FindAllString(logged(), -1)); digests < 2 {
			t.Errorf("the log has %d digests", digests)
		}
	})
}
