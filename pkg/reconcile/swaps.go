package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Board is where the processes that share shards find upstreams that swap their names: see shards.Board.
type Board interface {
	Update(ctx context.Context, change func(entries map[string]string) bool) (map[string]string, error)
}

// Swaps are the upstreams whose superseded objects wait for names, of all processes that share shards.
type Swaps struct {
	Board Board
	// Config is the digest of the config: what was decided by another one does not count.
	Config string

	reading sync.Mutex // by one goroutine
	mu      sync.Mutex
	// read are the shards of this process whose entries are in own, by the keys of the upstreams. lost counts shards that were lost.
	read map[int]bool
	own  map[string]int
	lost int
}

// boardEntry is an upstream on a board. Its key is boardKey of its uid.
type boardEntry struct {
	UID       types.UID                 `json:"uid"`
	Namespace string                    `json:"namespace,omitempty"`
	Name      string                    `json:"name"`
	Config    string                    `json:"config"`
	Digest    string                    `json:"digest"`
	Blockers  map[types.UID][]types.UID `json:"blockers"`
	GivesWay  []types.UID               `json:"givesWay,omitempty"`
}

func (e boardEntry) ref() pipeline.Ref { return pipeline.Ref{Namespace: e.Namespace, Name: e.Name} }

// boardKey is a name that an annotation may have, also for rows, whose uid is any text.
func boardKey(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return hex.EncodeToString(sum[:16])
}

const (
	// maxBoardEntry and maxBoard bound one upstream and all of them, in bytes: an object has room for 256 KiB of annotations.
	maxBoardEntry = 4 << 10
	maxBoard      = 192 << 10
	// boardTimeout bounds the requests for one change of a board.
	boardTimeout = 10 * time.Second
)

// noteOnBoard is circles.note where circles may lead through other processes. On an error, only those within this process are found.
func (r *reconciliation) noteOnBoard(ctx context.Context, w waitingUpstream, isCached func(pipeline.Ref, drift.Sum) bool) (closed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	listed, err := r.isOnBoard(ctx)
	if err == nil && (listed || len(w.blockers) > 0) {
		var agreed waitingUpstream
		if agreed, err = r.agreeOnSwaps(ctx, w); err == nil {
			return r.circles.take(r.ref, agreed), nil
		}
	}
	return r.circles.note(r.ref, w, isCached), err
}

// isOnBoard reports whether this upstream is on the board, where this process or the one before may have put it.
func (r *reconciliation) isOnBoard(ctx context.Context) (bool, error) {
	s, uid := r.Swaps, r.upstream.GetUID()
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	isRead, lost := s.read[r.Shards.Of(uid)], s.lost
	s.mu.Unlock()
	if !isRead {
		held := append(r.Shards.Held(), r.Shards.Of(uid))
		entries, err := s.Board.Update(ctx, func(map[string]string) bool { return false })
		if err != nil {
			return false, err
		}
		s.noteRead(entries, held, lost, r.Shards.Of)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, listed := s.own[boardKey(uid)]
	return listed, nil
}

// noteRead notes what is on the board for shards that were held before it was read, unless one was lost meanwhile.
func (s *Swaps) noteRead(entries map[string]string, held []int, lost int, shardOf func(types.UID) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		s.read, s.own = map[int]bool{}, map[string]int{}
	}
	for key, text := range entries {
		var e boardEntry
		if json.Unmarshal([]byte(text), &e) == nil && slices.Contains(held, shardOf(e.UID)) {
			s.own[key] = shardOf(e.UID)
		}
	}
	for _, shard := range held {
		s.read[shard] = lost == s.lost
	}
}

// forgetShard forgets what is on the board for a shard that is lost.
func (s *Swaps) forgetShard(shard int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	delete(s.read, shard)
	maps.DeleteFunc(s.own, func(_ string, of int) bool { return of == shard })
}

// agreeOnSwaps publishes that this upstream waits, and returns which of its objects give way by what is on the board: the write that
// closes a circle is one that saw all others of it.
func (r *reconciliation) agreeOnSwaps(ctx context.Context, w waitingUpstream) (waitingUpstream, error) {
	me := boardEntry{UID: r.upstream.GetUID(), Namespace: r.ref.Namespace, Name: r.ref.Name, Config: r.Swaps.Config}
	read, fits := &upstreamReader{reconciliation: r, ctx: ctx, known: map[pipeline.Ref]drift.Sum{}}, true
	entries, err := r.Swaps.Board.Update(ctx, func(entries map[string]string) bool {
		before := maps.Clone(entries)
		fits = w.publish(entries, me, read)
		return read.err == nil && !maps.Equal(before, entries)
	})
	switch {
	case err != nil:
		return w, err
	case read.err != nil:
		return w, read.err
	}
	r.Swaps.noteOwn(entries, boardKey(me.UID), r.Shards.Of(me.UID))
	if !fits {
		return w, fmt.Errorf("there is no room for it: %d bytes for one upstream, and %d for all", maxBoardEntry, maxBoard)
	}
	return w, nil
}

// noteOwn notes whether an upstream of this process is on the board.
func (s *Swaps) noteOwn(entries map[string]string, key string, shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, listed := entries[key]; listed {
		s.own[key] = shard
	} else {
		delete(s.own, key)
	}
}

// otherUpstreams says what upstreams on a board are by now.
type otherUpstreams interface {
	// isCurrent reports whether an upstream has that digest.
	isCurrent(at pipeline.Ref, digest drift.Sum) bool
	// isGone reports whether an upstream is known not to exist.
	isGone(at pipeline.Ref, uid types.UID) bool
}

// publish puts an upstream on a board, or takes it away if it does not wait, and decides which of its objects give way. Upstreams that are
// gone are deleted from the board. It reports whether there is room.
func (w *waitingUpstream) publish(entries map[string]string, me boardEntry, others otherUpstreams) (fits bool) {
	all := waits{}
	for key, text := range entries {
		var e boardEntry
		if json.Unmarshal([]byte(text), &e) != nil {
			continue // not ours
		}
		digest, ok := drift.ParseSum(e.Digest)
		switch {
		case !ok, key != boardKey(e.UID), e.ref() == me.ref(), others.isGone(e.ref(), e.UID):
			delete(entries, key)
		case e.Config == me.Config:
			all.set(e.ref(), waitingUpstream{digest: digest, blockers: e.Blockers, givesWay: setOf(e.GivesWay)})
		}
	}
	all.set(me.ref(), *w)
	all.settle(me.ref(), others.isCurrent)
	w.givesWay = all.upstreams[me.ref()].givesWay
	if len(w.blockers) == 0 {
		return true
	}
	me.Digest, me.Blockers, me.GivesWay = w.digest.Text(), w.blockers, slices.Sorted(maps.Keys(w.givesWay))
	text, err := json.Marshal(me)
	size := len(text)
	for key, other := range entries {
		size += len(key) + len(other)
	}
	if err != nil || len(text) > maxBoardEntry || size > maxBoard {
		w.givesWay = nil
		return false
	}
	entries[boardKey(me.UID)] = string(text)
	return true
}

func setOf(list []types.UID) map[types.UID]bool {
	set := map[types.UID]bool{}
	for _, object := range list {
		set[object] = true
	}
	return set
}

// upstreamReader reads upstreams that are on a board. It implements otherUpstreams.
type upstreamReader struct {
	*reconciliation
	ctx   context.Context
	known map[pipeline.Ref]drift.Sum
	err   error
}

// isGone implements otherUpstreams, for those in shards of this process.
func (u *upstreamReader) isGone(at pipeline.Ref, uid types.UID) bool {
	_, leave, held := u.Shards.Enter(u.ctx, u.Shards.Of(uid))
	defer leave()
	return held && u.Cache.UpstreamUID(at) != uid
}

// isCurrent implements otherUpstreams. Each process has all rows in its cache.
func (u *upstreamReader) isCurrent(at pipeline.Ref, digest drift.Sum) bool {
	if is := u.isCached(u.ctx, at, digest); is || u.Pipeline.HasRows() {
		return is
	}
	have, isRead := u.known[at]
	if !isRead {
		if u.err != nil || len(u.known) >= maxRead {
			return false
		}
		up, err := u.ReadUpstream(u.ctx, at)
		switch {
		case err == nil:
			have = u.digestOf(u.ctx, up)
		case !errors.Is(err, apply.ErrGone):
			u.err = err
			return false
		}
		u.known[at] = have
	}
	return have == digest
}
