package shards

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/sharding"
)

// Ring says which of N virtual shards an object belongs to: the 64-bit FNV-1a hash of its uid falls into one of N equal
// ranges. The API server's shardRange uses the same hash. Of namespaces it would not do: of names that differ in their
// last characters the hashes are nearly the same.
type Ring struct{ N int }

// byUID is the field whose hash says where an object belongs, as the API server's shardRange calls it.
const byUID = "object.metadata.uid"

// Of is the shard, from 0 to N-1, of an object with that uid.
func (r Ring) Of(uid string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // it never fails
	shard, _ := bits.Mul64(h.Sum64(), uint64(r.N))
	return int(shard)
}

// Selector selects the objects of some shards: a value of ListOptions.ShardSelector. Ranges that touch
// are one. It is empty, and so selects everything, if all shards are given; without any it is not to be called.
func (r Ring) Selector(shards []int) string {
	shards = slices.Compact(slices.Sorted(slices.Values(shards)))
	if len(shards) == r.N {
		return sharding.Everything().String()
	}
	var ranges []sharding.ShardRangeRequirement
	for i, shard := range shards {
		if i > 0 && shards[i-1] == shard-1 {
			ranges[len(ranges)-1].End = r.start(shard + 1)
			continue
		}
		ranges = append(ranges, sharding.ShardRangeRequirement{Key: byUID, Start: r.start(shard), End: r.start(shard + 1)})
	}
	return sharding.NewSelector(ranges...).String()
}

// start is the least hash of a shard; for N, the one after the last.
func (r Ring) start(shard int) string {
	if shard == r.N {
		return "0x10000000000000000"
	}
	least, rest := bits.Div64(uint64(shard), 0, uint64(r.N))
	if rest > 0 {
		least++
	}
	return fmt.Sprintf("0x%016x", least)
}

// Owned is what this process may act for now.
type Owned interface {
	// Ring says which shard an object belongs to.
	Ring() Ring
	// Has reports whether the shard is held, and not being drained: whether a reconcile of it may begin.
	Has(shard int) bool
	// Quarantined reports whether the shard is in quarantine, so that no process acts for it.
	Quarantined(shard int) bool
	// Within returns a context for the writes of a reconcile of the shard. It ends, and what is under way with it, when
	// the shard is lost; it has ended already if the shard is not held. That nothing is written past a renew deadline is
	// not its concern: the fenced configuration of the client sees to that for all shards.
	Within(ctx context.Context, shard int) (context.Context, context.CancelFunc)
	// Subscribe has h called for each shard that is held, and for each one from then on. It is called before the process
	// runs.
	Subscribe(h Handler)
}

// Handler is called when the shards of this process change: by a goroutine for each shard, and never twice at a time
// for one.
type Handler interface {
	// Gained is called once the shard is held. It returns when its objects have been loaded and reconciled once, or when
	// ctx is done: it is then to be drained. Until it returns, a death of this process counts against the shard.
	Gained(ctx context.Context, shard int)
	// Lost is called, after Gained has returned, when the shard is to be given up: Has is false by then. It returns when
	// no reconcile of it runs. The shard is released after that; or it is lost already, and Within has ended.
	Lost(shard int)
	// MembersChanged is called, by a goroutine of its own, when another process has joined the set, or left it.
	MembersChanged()
}
