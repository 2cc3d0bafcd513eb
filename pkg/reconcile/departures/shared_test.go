package departures

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestSharedUpstreams: the metric says how many there are now, however many, and of one session at a time.
func TestSharedUpstreams(t *testing.T) {
	t.Parallel()
	const operator = "test-shared-upstreams"
	object := func(i int) types.UID { return types.UID(fmt.Sprint("object-", i)) }
	var before, h Shared
	before.Begin(operator)
	before.Note(operator, "old", "a/old")
	h.Note(operator, "x", "a/x")
	wantShared(t, operator, 1, "the one that is not at work yet says nothing")
	h.Begin(operator)
	wantShared(t, operator, 1, "now it is the other session's")
	h.Drop(operator, "x")
	wantShared(t, operator, 0, "its object is gone")
	for i := range 1500 {
		if h.Note(operator, object(2*i), fmt.Sprint("a/", i)) {
			t.Fatal("it is told once more")
		}
		h.Note(operator, object(2*i+1), fmt.Sprint("a/", i))
	}
	wantShared(t, operator, 1500, "each upstream counts once, and all of them")
	h.Drop(operator, object(0))
	wantShared(t, operator, 1500, "its other object is there")
	h.Drop(operator, object(1))
	h.Drop(operator, object(1))
	wantShared(t, operator, 1499, "both are gone")
	h.Note(operator, object(2), "a/2")
	wantShared(t, operator, 1499, "an object changes its owner")
	h.Forget(operator, "a/1")
	wantShared(t, operator, 1498, "an upstream is ours now")
	h.Forget(operator, "a/1")
	wantShared(t, operator, 1498, "once")
}

func wantShared(t *testing.T, operator string, want int, why string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "corollary_shared_upstreams" && m.GetLabel()[0].GetValue() == operator {
				have = int(m.GetGauge().GetValue())
			}
		}
	}
	if have != want {
		t.Errorf("%d upstreams are shared, want %d: %s", have, want, why)
	}
}
