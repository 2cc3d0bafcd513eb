package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// noInputs is a cache without inputs; nothing else of it is used.
type noInputs struct{ observe.Cache }

func (noInputs) Inputs(int, *desired.Listing) []observe.Input { return nil }

// lostShard is a shard that was lost.
type lostShard struct{}

func (lostShard) Of(types.UID) int { return 0 }
func (lostShard) Held() []int      { return nil }
func (lostShard) Enter(ctx context.Context, _ int) (context.Context, func(), bool) {
	return ctx, func() {}, false
}

// TestLostWhileAReconcileBegins: a shard may be forgotten while a reconcile reads its inputs and is about to enter it.
// The two do not race, and nothing is left of the upstream, whichever comes first.
func TestLostWhileAReconcileBegins(t *testing.T) {
	r := &Reconciler{Pipeline: listing(t, "object.data.team == self.spec.team"), Cache: noInputs{}, Shards: lostShard{}}
	ref := operator.Ref{Namespace: "a", Name: "red"}
	for i := range 200 {
		up := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"team": "red"}}}
		up.SetNamespace(ref.Namespace)
		up.SetName(ref.Name)
		up.SetUID("u")
		up.SetResourceVersion(fmt.Sprint(i + 1))
		l := r.newReconciliation(ref, up)
		var lost sync.WaitGroup
		lost.Go(func() { r.ForgetShard(0) })
		l.FindInputs(t.Context())
		l.Memory.SetRendered("", l.InputsDigest)
		if i%2 == 0 {
			lost.Wait()
		}
		if _, _, ok := l.enterShard(t.Context()); ok {
			t.Fatal("a lost shard was entered")
		}
		lost.Wait()
		if left := r.ReadersOf(0, []observe.Input{listedObject(r.Pipeline, ref.Namespace, "x", map[string]any{})}); len(left) > 0 {
			t.Fatalf("%d: an upstream of a lost shard still reads: %v", i, left)
		}
	}
}

// What the list of a shard has shown of a deletion is still known when the shard may be entered, though a reconcile
// began before.
func TestDeletionIsKnownOnceItsShardMayBeEntered(t *testing.T) {
	up := &unstructured.Unstructured{Object: map[string]any{}}
	up.SetNamespace("a")
	up.SetName("red")
	up.SetUID("u")
	ref := operator.Ref{Namespace: "a", Name: "red"}
	r := &Reconciler{Pipeline: listing(t, "object.data.team == self.spec.team"), Cache: shows{uid: up.GetUID()}, Shards: lostShard{}}
	r.Cascades.Note(up.GetUID(), nil)
	if _, _, ok := r.newReconciliation(ref, up).enterShard(t.Context()); ok {
		t.Fatal("the shard was entered")
	}
	if r.newReconciliation(ref, up).watchLagsDeletion() {
		t.Error("it waits for an event that came already")
	}
	if r.ForgetShard(0); r.Cascades.Number() > 0 {
		t.Error("the deletion is remembered though its shard was lost")
	}
}

// shows is a cache that shows one upstream.
type shows struct {
	noInputs
	uid types.UID
}

func (s shows) UpstreamUID(operator.Ref) types.UID { return s.uid }
