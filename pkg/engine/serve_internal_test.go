package engine

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/shards"
)

func refNamed(name string) operator.Ref { return operator.Ref{Name: name} }

// TestReconciledOnce: what was queued once is handed to a worker once, however its turn and the queue meet.
func TestReconciledOnce(t *testing.T) {
	t.Parallel()
	const upstreams, workers = 20_000, 10
	s := &session{queue: priorityqueue.New[operator.Ref]("")}
	slots, began, handed := make(chan struct{}, workers), map[operator.Ref]int{}, 0
	var working sync.WaitGroup
	go func() {
		for i := range upstreams {
			s.Add(informers.PriorityReaders, 0, refNamed(fmt.Sprint(i)))
		}
	}()
	for len(began) < upstreams || s.queue.Len() > 0 {
		slots <- struct{}{}
		ref, _ := s.next()
		began[ref]++
		handed++
		working.Go(func() {
			defer func() { <-slots }()
			runtime.Gosched()
			s.queue.Done(ref)
		})
	}
	working.Wait()
	s.queue.ShutDown()
	if handed != upstreams {
		t.Errorf("%d upstreams were handed to a worker %d times", upstreams, handed)
	}
}

// A mistake of this program in one reconciliation ends that look and nothing else.
func TestPanicIsSurvived(t *testing.T) {
	s := &session{operator: &runner{name: t.Name(), log: logr.Discard()}, reconciler: &reconcile.Reconciler{}} // without a pipeline every reconciliation fails
	if after := s.reconcileRecovering(t.Context(), operator.Ref{Name: "a"}); after != afterPanic {
		t.Errorf("it is looked at again after %s, not %s", after, afterPanic)
	}
}

// held are shards that a process holds.
type held struct {
	shards.Owned
	has map[int]bool
}

func (held) Ring() shards.Ring        { return shards.Ring{N: 2} }
func (held) Subscribe(shards.Handler) {}
func (h held) Has(shard int) bool     { return h.has[shard] }

// TestShardIsInOneSet: a shard that is lost and gained again while others are gathered with it is loaded once.
func TestShardIsInOneSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owned := held{has: map[int]bool{0: true, 1: true}}
		e := &Engine{}
		e.options.Shards = owned
		l := newShardLoader(e)
		first := l.gather(0)
		l.gather(1)
		l.Lost(0)
		<-first.opened // it is held again, and its gathering is about to begin
		second := l.gather(0)
		<-second.opened
		if of := slices.Concat(first.set.Shards(), second.set.Shards()); !slices.Equal(of, []int{1, 0}) {
			t.Errorf("the sets have %v, %v", first.set.Shards(), second.set.Shards())
		}
	})
}

// TestShardsAreHeldOnceTheyAreCounted: guard learns of the upstreams of a shard before it takes the shard for one of this process: else it
// would add up what the others count without them, and let go what it holds.
func TestShardsAreHeldOnceTheyAreCounted(t *testing.T) {
	t.Parallel()
	s := &sessionShards{
		loaded:     func(*informers.ShardSet) bool { return true },
		candidates: func(*informers.ShardSet) []operator.Ref { return []operator.Ref{{Name: "a"}, {Name: "b"}} },
		acts:       func() bool { return false },
		ready:      map[int]bool{},
	}
	s.loading = []*informers.ShardSet{informers.NewShardSet(shards.Ring{N: 2}, 1)}
	var joined []operator.Ref
	s.takeLoaded(func(refs []operator.Ref) {
		if joined = refs; s.ready[1] {
			t.Error("the shard is held before its upstreams are known")
		}
	})
	if len(joined) != 2 || !s.ready[1] {
		t.Errorf("%v are joined, the shard is held: %t", joined, s.ready[1])
	}
}
