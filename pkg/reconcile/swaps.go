package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Board is where the processes that share shards find upstreams that swap their names: see shards.Board.
type Board interface {
	Update(ctx context.Context, change func(entries map[string]string) bool) (map[string]string, error)
}

// boardEntry is an upstream on a board, under its uid.
type boardEntry struct {
	Namespace string                    `json:"namespace,omitempty"`
	Name      string                    `json:"name"`
	Digest    string                    `json:"digest"`
	Blockers  map[types.UID][]types.UID `json:"blockers"`
	GivesWay  map[types.UID]bool        `json:"givesWay,omitempty"`
}

const (
	// maxBoardEntry and maxBoard bound one upstream and all of them, in bytes: an object has room for 256 KiB of annotations.
	maxBoardEntry = 4 << 10
	maxBoard      = 192 << 10
)

// agreeOnSwaps publishes that this upstream waits, and returns which of its objects give way by what is on the board: the write that
// closes a circle is one that saw all others of it.
func (r *reconciliation) agreeOnSwaps(ctx context.Context, w waitingUpstream) (waitingUpstream, error) {
	read, fits := &upstreamReader{reconciliation: r, ctx: ctx, known: map[pipeline.Ref]drift.Sum{}}, true
	_, err := r.Swaps.Update(ctx, func(entries map[string]string) bool {
		before := maps.Clone(entries)
		fits = w.publish(entries, r.ref, r.upstream.GetUID(), read)
		return read.err == nil && !maps.Equal(before, entries)
	})
	switch {
	case err != nil:
		return w, err
	case read.err != nil:
		return w, read.err
	case !fits:
		return w, fmt.Errorf("there is no room for it: %d bytes for one upstream, and %d for all", maxBoardEntry, maxBoard)
	}
	return w, nil
}

// otherUpstreams tells what has become of upstreams that are on a board.
type otherUpstreams interface {
	// isCurrent reports whether an upstream has that digest.
	isCurrent(at pipeline.Ref, digest drift.Sum) bool
	// isGone reports whether an upstream is known not to exist.
	isGone(at pipeline.Ref, uid types.UID) bool
}

// publish puts an upstream on a board, or takes it away if it does not wait, and decides which of its objects give way. Upstreams that are
// gone are deleted from the board. It reports whether there is room.
func (w *waitingUpstream) publish(entries map[string]string, ref pipeline.Ref, uid types.UID, others otherUpstreams) (fits bool) {
	all := waits{}
	for key, text := range entries {
		var e boardEntry
		if json.Unmarshal([]byte(text), &e) != nil {
			continue // not ours
		}
		at := pipeline.Ref{Namespace: e.Namespace, Name: e.Name}
		digest, ok := drift.ParseSum(e.Digest)
		if !ok || at == ref || others.isGone(at, types.UID(key)) {
			delete(entries, key)
			continue
		}
		all.set(at, waitingUpstream{digest: digest, blockers: e.Blockers, givesWay: e.GivesWay})
	}
	all.set(ref, *w)
	all.settle(ref, others.isCurrent)
	w.givesWay = all.upstreams[ref].givesWay
	if len(w.blockers) == 0 {
		return true
	}
	text, err := json.Marshal(boardEntry{Namespace: ref.Namespace, Name: ref.Name, Digest: w.digest.Text(), Blockers: w.blockers, GivesWay: w.givesWay})
	size := len(text)
	for key, other := range entries {
		size += len(key) + len(other)
	}
	if err != nil || len(text) > maxBoardEntry || size > maxBoard {
		w.givesWay = nil
		return false
	}
	entries[string(uid)] = string(text)
	return true
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

// isCurrent implements otherUpstreams.
func (u *upstreamReader) isCurrent(at pipeline.Ref, digest drift.Sum) bool {
	if u.isCached(at, digest) {
		return true
	}
	if u.Pipeline.HasRows() { // each process has all rows
		return false
	}
	have, isRead := u.known[at]
	if !isRead {
		if u.err != nil || len(u.known) >= maxRead {
			return false
		}
		up, err := u.Client.Get(u.ctx, u.UpstreamTarget(at))
		switch {
		case err == nil:
			have = u.digestOf(up)
		case !errors.Is(err, apply.ErrGone):
			u.err = err
			return false
		}
		u.known[at] = have
	}
	return have == digest
}
