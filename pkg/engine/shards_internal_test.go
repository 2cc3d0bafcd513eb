package engine

import (
	"slices"
	"testing"
	"testing/synctest"

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
