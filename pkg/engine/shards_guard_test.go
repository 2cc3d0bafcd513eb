package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	leasesclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// TestShardsGuard: what guard allows each process alone, and not both together, waits in both.
func TestShardsGuard(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		const n = 4
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := guardedBy(fill(widgetConfig, ns, name), "")
		runReady(t, ns, conf).halt()
		changed := strings.Replace(conf, "data: {{ .spec.data }}", "data: {key: value, version: two}", 1)
		boards := boardsIn(t, ns)
		counts := boards(name)
		a, b := startMember(t, boards, n, changed), startMember(t, boards, n, changed)
		in := map[int]int{}
		for _, w := range testkit.List(t, widgets, ns, "") {
			in[a.ring.Of(string(w.GetUID()))]++
		}
		order := []int{0, 1, 2, 3}
		slices.SortFunc(order, func(x, y int) int { return in[y] - in[x] })
		a.give(t.Context(), order[:2]...)
		testkit.Eventually(t, patience, func() (bool, string) {
			lease, err := counts.Client.Get(t.Context(), counts.Name, metav1.GetOptions{})
			return err == nil && len(lease.Annotations) == 2, fmt.Sprint("the Lease is ", lease)
		})
		untouched(t, ns) // two shards are not counted yet
		// Nobody waits for one in quarantine. It is the one with the fewest objects: what is left is more than guard allows.
		a.quarantine(order[3])
		b.quarantine(order[3])
		b.give(t.Context(), order[2])
		if x, y := a.digest(), b.digest(); x != y {
			t.Errorf("one wants %s confirmed, the other %s", x, y)
		}
		untouched(t, ns)
	})
}

// failingLeases fails to get a Lease as often as failures says.
type failingLeases struct {
	leasesclient.LeaseInterface
	failures *atomic.Int64
}

// Get implements leasesclient.LeaseInterface.
func (f failingLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if f.failures.Add(-1) >= 0 {
		return nil, apierrors.NewServiceUnavailable("no")
	}
	return f.LeaseInterface.Get(ctx, name, o)
}

// TestShardsGuardLeaseDeleted: where a person deletes the Lease of counts, a process that starts waits no longer than
// until the others see it, though their first requests then fail.
func TestShardsGuardLeaseDeleted(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := guardedBy(fill(widgetConfig, ns, name), "")
		runReady(t, ns, conf).halt()
		var failures atomic.Int64
		leases := kubernetes.NewForConfigOrDie(testkit.Config(t)).CoordinationV1().Leases(ns)
		a, b := startMember(t, boardsIn(t, ns), 2, conf), startMember(t, func(operator string) shards.Board {
			b := boardsIn(t, ns)(operator)
			b.Client = failingLeases{leases, &failures}
			return b
		}, 2, conf)
		a.give(t.Context(), 0)
		b.give(t.Context(), 1)
		a.ready()
		b.ready()
		board := boardsIn(t, ns)(name)
		waitBoard(t, board, 2)
		if err := leases.Delete(t.Context(), board.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		a.halt()
		a = startMember(t, boardsIn(t, ns), 2, conf)
		a.give(t.Context(), 0)
		failures.Store(2)
		b.handler.MembersChanged()
		waitBoard(t, board, 2) // an edit before that counts
		allActedFor(t, ns)
	})
}

// TestShardsGuardQuarantineEnds: a process that starts waits for no count of a shard that was in quarantine when the
// others counted, and that one of them has taken since.
func TestShardsGuardQuarantineEnds(t *testing.T) {
	t.Parallel()
	for _, hasObjects := range []bool{true, false} {
		t.Run(fmt.Sprintf("it has objects: %t", hasObjects), spaced(func(t *testing.T, ns, name string) {
			shardsGuardQuarantineEnds(t, ns, name, hasObjects)
		}))
	}
}

func shardsGuardQuarantineEnds(t *testing.T, ns, name string, hasObjects bool) {
	const n = 32
	conf := guardedBy(fill(widgetConfig, ns, name), "")
	runReady(t, ns, conf).halt()
	a := startMember(t, boardsIn(t, ns), n, conf)
	used := map[int]bool{}
	for _, w := range testkit.List(t, widgets, ns, "") {
		used[a.ring.Of(string(w.GetUID()))] = true
	}
	var rest []int
	quarantined := -1
	for shard := range n {
		if quarantined < 0 && used[shard] == hasObjects {
			quarantined = shard
		} else {
			rest = append(rest, shard)
		}
	}
	a.quarantine(quarantined)
	a.give(t.Context(), rest...)
	a.ready()
	waitBoard(t, boardsIn(t, ns)(name), n-1)
	a.quarantine(-1)
	a.give(t.Context(), quarantined)
	b := startMember(t, boardsIn(t, ns), n, conf)
	a.take(rest[:n/2]...)
	b.give(t.Context(), rest[:n/2]...)
	allActedFor(t, ns)
}

// allActedFor waits until some process acts for each of the existing objects. One that waits for guard is ready, too.
func allActedFor(t *testing.T, ns string) {
	t.Helper()
	for i := range guardedWidgets {
		testkit.Apply(t, ns, widget(named(i), "{data: {key: new}}"))
	}
	waitMany(t, ns, guardedWidgets, "key", "new")
}

// TestShardsGuardBatch: a changed input waits in all processes if guard allows what each counts, and not what all
// count. What waits does so wherever its shard moves.
func TestShardsGuardBatch(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		t.Run(fmt.Sprintf("shards move: %t", moves), bubbled(func(t *testing.T) {
			const n, each = 4, 6
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := with(fill(widgetConfig, ns, name), dropKey) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, objectName: self.spec.anything.of, missing: Allow}]\n" +
				"guard: {maxDeleted: 20%, minimum: 4" + confirmKey(ns) + "}\n"
			conf = replaceOnce(t, conf, "data: {{ .spec.data }}", "data: {key: value}")
			a, b := startPair(t, boardsIn(t, ns), n, conf, 0, 1)
			var many []string // read one object, three in each process
			for i := range 2 * each {
				m, of := map[bool]member{true: a, false: b}[i < each], "none"
				if i%each < 3 {
					of = "many"
					many = append(many, named(i))
				} else if i%each == 3 {
					of = fmt.Sprintf("few-%d", i/each)
				}
				inShard(t, ns, named(i), "{data: {}, anything: {of: "+of+"}}", m)
			}
			for i := range 2 * each {
				waitCondition(t, widgets, ns, named(i), "Ready", "True")
			}
			drop := func(input string) {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+input+"}, data: {drop: 'yes'}}")
			}
			drop("few-0") // one object of twelve
			waitGone(t, configMaps, ns, named(3))
			held := func() {
				t.Helper()
				never(t, func() (bool, string) {
					for _, of := range many {
						if testkit.Find(t, configMaps, ns, of) == nil {
							return true, of + " is gone before anybody confirmed"
						}
					}
					return false, ""
				})
			}
			drop("many")
			digest := b.digest()
			if !moves && digest != a.digest() {
				t.Errorf("one wants %s confirmed, the other %s", a.digest(), digest)
			}
			held()
			if moves {
				a.take(0)
				b.give(t.Context(), 0)
				held()
				asks := []member{b}
				if slices.ContainsFunc(many, func(of string) bool { return a.Has(a.ring.Of(string(testkit.Get(t, widgets, ns, of).GetUID()))) }) {
					asks = append(asks, a)
				}
				testkit.Eventually(t, patience, func() (bool, string) {
					digest = b.digest()
					other := asks[len(asks)-1].digest()
					return other == digest, "one wants " + other + " confirmed, the other " + digest
				})
			}
			confirmGuarded(t, ns, digest)
			for _, of := range many {
				waitGone(t, configMaps, ns, of)
			}
			drop("few-1") // what was confirmed counts no more
			waitGone(t, configMaps, ns, named(each+3))
		}))
	}
}

// waitBoard waits until a board has as many entries.
func waitBoard(t *testing.T, board shards.Board, want int) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		entries, err := board.Update(t.Context(), func(map[string]string) bool { return false })
		return err == nil && len(entries) == want, fmt.Sprint("on the board are ", entries, err)
	})
}

// inShard makes a Widget in a shard of a member.
func inShard(t *testing.T, ns, name, spec string, m member) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		if u := testkit.Find(t, widgets, ns, name); u != nil {
			if u.GetDeletionTimestamp() == nil && m.Has(m.ring.Of(string(u.GetUID()))) {
				return true, ""
			}
			testkit.Delete(t, widgets, ns, name)
			return false, "it is in another shard"
		}
		testkit.Apply(t, ns, widget(name, spec))
		return false, "it was just made"
	})
}
