package loading

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/shards"
)

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
		l := New(owned, nil, nil)
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

// TestShardsAreHeldOnceTheyAreCounted: guard learns of the upstreams of a shard before it takes the shard for one of
// this process: else it would add up what the others count without them, and let go what it holds.
func TestShardsAreHeldOnceTheyAreCounted(t *testing.T) {
	t.Parallel()
	s := &Shards{ready: map[int]bool{}, Session: Session{
		Loaded:     func(*informers.ShardSet) bool { return true },
		Candidates: func(*informers.ShardSet) []operator.Ref { return []operator.Ref{{Name: "a"}, {Name: "b"}} },
		Acts:       func() bool { return false },
	}}
	s.loading = []*informers.ShardSet{informers.NewShardSet(shards.Ring{N: 2}, 1)}
	var joined []operator.Ref
	s.TakeLoaded(func(refs []operator.Ref) {
		if joined = refs; s.ready[1] {
			t.Error("the shard is held before its upstreams are known")
		}
	})
	if len(joined) != 2 || !s.ready[1] {
		t.Errorf("%v are joined, the shard is held: %t", joined, s.ready[1])
	}
}
