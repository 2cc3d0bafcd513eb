package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// gatherShards is for how long shards that are gained are gathered, so that one list loads all of them.
const gatherShards = 200 * time.Millisecond

// shardLoader loads the shards that this process holds into the sessions, and takes out those that it loses. It implements
// shards.Handler.
type shardLoader struct {
	engine *Engine
	owned  shards.Owned

	mu sync.Mutex
	// sets are the sets of the shards that are loaded, by shard.
	sets map[int]*informers.ShardSet
	// gathering are the shards that were just gained, which are to be one set; nil for none.
	gathering *gathering
	sessions  map[*session]struct{}
}

// gathering are shards that are to be loaded together.
type gathering struct {
	shards []int
	opened chan struct{} // closed once the watches of set are opened
	set    *informers.ShardSet
}

func newShardLoader(e *Engine) *shardLoader {
	if e.options.Shards == nil {
		return nil
	}
	l := &shardLoader{engine: e, owned: e.options.Shards, sets: map[int]*informers.ShardSet{}, sessions: map[*session]struct{}{}}
	l.owned.Subscribe(l)
	return l
}

// Gained implements shards.Handler.
func (l *shardLoader) Gained(ctx context.Context, shard int) {
	g := l.gather(shard)
	select {
	case <-ctx.Done():
		return
	case <-g.opened:
	}
	for begun := time.Now(); ctx.Err() == nil && !l.settled(g.set, time.Since(begun)); {
		work.Pause(ctx, syncPoll)
	}
}

// maxLoadDelay is how long a shard counts as being loaded because of an operator that does not start, or whose lists fail: others must be
// able to take shards meanwhile.
const maxLoadDelay = 15 * time.Second

// gather adds a shard to those that are loaded next.
func (l *shardLoader) gather(shard int) *gathering {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gathering == nil {
		g := &gathering{opened: make(chan struct{})}
		l.gathering = g
		time.AfterFunc(gatherShards, func() { l.open(g) })
	}
	l.gathering.shards = append(l.gathering.shards, shard)
	return l.gathering
}

// open opens the watches of the gathered shards that are still held.
func (l *shardLoader) open(g *gathering) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(g.opened)
	l.gathering = nil
	held := slices.DeleteFunc(g.shards, func(shard int) bool { return !l.owned.Has(shard) })
	if g.set = informers.NewShardSet(l.owned.Ring(), held...); len(held) == 0 {
		return
	}
	for _, shard := range held {
		l.sets[shard] = g.set
	}
	for s := range l.sessions {
		s.openShards(g.set)
	}
}

// settled reports whether the sessions have loaded a set, which takes that long already, and those that act have reconciled its upstreams
// once.
func (l *shardLoader) settled(set *informers.ShardSet, since time.Duration) bool {
	starting := l.engine.startingOperators()
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.sessions {
		if delete(starting, s.operator); !s.shards.settled(set) {
			return false
		}
	}
	return len(starting) == 0 || since >= maxLoadDelay
}

// startingOperators are those whose watches may not be open yet.
func (e *Engine) startingOperators() map[*runner]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	starting := map[*runner]bool{}
	for _, o := range e.operators {
		o.mu.Lock()
		switch o.current.condition.Reason {
		case state.ReasonStarting, state.ReasonUnavailable, state.ReasonSyncing:
			starting[o] = true
		}
		o.mu.Unlock()
	}
	return starting
}

// Lost implements shards.Handler.
func (l *shardLoader) Lost(shard int) {
	for _, s := range l.all() {
		s.shards.drain(shard)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.gathering; g != nil { // it may be gained again before these are loaded
		g.shards = slices.DeleteFunc(g.shards, func(k int) bool { return k == shard })
	}
	set := l.sets[shard]
	if set == nil { // it was lost before it was loaded
		return
	}
	delete(l.sets, shard)
	l.engine.informers.Drop(set, shard)
	for s := range l.sessions {
		s.shards.drop(shard)
		s.reconciler.ForgetShard(shard)
		s.dropLost()
		if len(set.Shards()) == 0 {
			s.cache.CloseShards(set)
		}
	}
}

// MembersChanged implements shards.Handler. A process that has joined may wait for counts that are gone since a person deleted the Lease.
func (l *shardLoader) MembersChanged() {
	for _, s := range l.all() {
		select {
		case s.shards.joined <- struct{}{}:
		default:
		}
	}
}

func (l *shardLoader) all() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.sessions))
}

// join opens the watches of a session: open is called with the sets that are loaded, and the session gets all later ones. leave
// ends that. Without shards, sets is nil.
func (l *shardLoader) join(s *session, open func(sets []*informers.ShardSet) error) error {
	if l == nil {
		return open(nil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sets := []*informers.ShardSet{}
	for _, set := range l.sets {
		if !slices.Contains(sets, set) {
			sets = append(sets, set)
		}
	}
	l.sessions[s] = struct{}{}
	s.shards.opened(sets...)
	return open(sets)
}

func (l *shardLoader) leave(s *session) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.sessions, s)
	}
}

// sessionShards are the shards of a session. It implements reconcile.Shards.
type sessionShards struct {
	owned shards.Owned
	// loaded reports whether the first lists of a set are in, fails whether they cannot be had; candidates are then what is to be reconciled.
	loaded     func(set *informers.ShardSet) bool
	fails      func(set *informers.ShardSet) bool
	candidates func(set *informers.ShardSet) []operator.Ref
	// acts reports whether the session acts.
	acts func() bool
	// changed signals that a set was opened, joined that a process has joined, or left.
	changed, joined chan struct{}

	mu sync.Mutex
	// loading are the sets that are opened and not yet ready.
	loading []*informers.ShardSet
	// ready are the shards of which reconciles may begin, underWay has how many have begun and not ended.
	ready    map[int]bool
	underWay map[int]int
	idle     sync.Cond
	// unsettled are the upstreams of a set that was loaded while the session acts and that were not reconciled since.
	unsettled map[*informers.ShardSet]map[operator.Ref]struct{}
}

func newSessionShards(s *session) *sessionShards {
	if s.engine.shards == nil {
		return nil
	}
	of := &sessionShards{
		owned: s.engine.shards.owned, loaded: s.cache.HasLoaded, changed: make(chan struct{}, 1), joined: make(chan struct{}, 1), ready: map[int]bool{}, underWay: map[int]int{},
		fails:      func(set *informers.ShardSet) bool { return s.cache.CannotLoad(set, maxLoadDelay) },
		candidates: func(set *informers.ShardSet) []operator.Ref { return s.cache.CandidatesIn(set, s.reconciler) },
		acts:       func() bool { return s.pool.Is(work.Acting) },
		unsettled:  map[*informers.ShardSet]map[operator.Ref]struct{}{},
	}
	of.idle.L = &of.mu
	return of
}

// Of implements reconcile.Shards.
func (s *sessionShards) Of(uid types.UID) int { return s.owned.Ring().Of(string(uid)) }

// Held implements reconcile.Shards.
func (s *sessionShards) Held() (list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard := range s.ready {
		list = append(list, shard)
	}
	slices.Sort(list)
	return list
}

// mayEnter reports whether a reconcile of the upstream may begin. One whose uid is not known is decided by Enter.
func (s *sessionShards) mayEnter(uid types.UID) bool {
	if s == nil || uid == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready[s.Of(uid)]
}

// Enter implements reconcile.Shards.
func (s *sessionShards) Enter(ctx context.Context, shard int) (acting context.Context, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready[shard] || !s.owned.Has(shard) {
		return ctx, func() {}, false
	}
	s.underWay[shard]++
	acting, cancel := s.owned.Within(ctx, shard)
	return acting, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.underWay[shard]--; s.underWay[shard] == 0 {
			delete(s.underWay, shard)
			s.idle.Broadcast()
		}
	}, true
}

// drain lets no reconcile of a shard begin, and waits for those that have.
func (s *sessionShards) drain(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for delete(s.ready, shard); s.underWay[shard] > 0; {
		s.idle.Wait()
	}
}

// drop notes that a shard is no longer loaded.
func (s *sessionShards) drop(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, shard)
}

// opened notes that the watches of sets are opened.
func (s *sessionShards) opened(sets ...*informers.ShardSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = append(s.loading, sets...)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// takeLoaded lets reconciles begin of the sets that have been loaded, and returns what they have to reconcile. left is true if
// others are still being loaded. before is called with those of each
// set before its shards are held, since guard must not add up without them; nil for nothing.
func (s *sessionShards) takeLoaded(before func(refs []operator.Ref)) (refs []operator.Ref, left bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = slices.DeleteFunc(s.loading, func(set *informers.ShardSet) bool {
		if !s.loaded(set) {
			return false
		}
		found := s.candidates(set)
		if before != nil && len(found) > 0 {
			before(found)
		}
		for _, shard := range set.Shards() {
			s.ready[shard] = true
		}
		if refs = append(refs, found...); s.acts() && len(found) > 0 {
			s.unsettled[set] = map[operator.Ref]struct{}{}
			for _, ref := range found {
				s.unsettled[set][ref] = struct{}{}
			}
		}
		return true
	})
	return refs, len(s.loading) > 0
}

// reconciled notes that an upstream was reconciled.
func (s *sessionShards) reconciled(ref operator.Ref) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for set, refs := range s.unsettled {
		if delete(refs, ref); len(refs) == 0 {
			delete(s.unsettled, set)
		}
	}
}

// settling reports whether upstreams of shards that this process has taken over wait for their first reconcile.
func (s *sessionShards) settling() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsettled) > 0
}

// settled reports whether a set is loaded and, if the session acts, reconciled once, or whether it cannot be loaded at present.
func (s *sessionShards) settled(set *informers.ShardSet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails(set) {
		return true
	}
	if !s.acts() {
		return s.loaded(set)
	}
	return !slices.Contains(s.loading, set) && s.unsettled[set] == nil
}

// openShards opens the watches of shards that this process has gained. If that fails, the operator starts over with all of them, and
// its state says why, as for the watches at its start.
func (s *session) openShards(set *informers.ShardSet) {
	if err := s.cache.OpenShards(set); err != nil {
		s.gone(fmt.Errorf("opening the watches of shards %v: %w", set.Shards(), err))
		return
	}
	s.shards.opened(set)
}

// loadShards has the upstreams of shards reconciled once they are loaded, until acting is done. Guard counts them first.
func (s *session) loadShards(acting context.Context) {
	if s.shards == nil {
		return
	}
	for publishes := false; acting.Err() == nil; {
		refs, left := s.shards.takeLoaded(s.batch.Join)
		if len(refs) > 0 {
			s.Add(informers.PriorityBulk, 0, refs...)
		}
		if left {
			work.Pause(acting, syncPoll)
			continue
		}
		if publishes = publishes && !s.publishPassed(acting); publishes {
			work.Pause(acting, time.Second)
			continue
		}
		select { // who starts may wait for the counts of what was taken, or of all
		case <-acting.Done():
		case <-s.shards.changed:
			publishes = true
		case <-s.shards.joined:
			publishes = true
		}
	}
}

// noteUnfiltered reports that the API server sends the upstreams of other shards, too.
func (s *session) noteUnfiltered(key informers.Key) {
	metrics.SetUnfiltered(s.operator.name)
	s.unfiltered.Do(func() {
		s.operator.log.Info("the API server does not filter by shard: objects of other shards are received and dropped; "+
			"its feature gate ShardedListAndWatch filters them", "resource", key.String())
	})
}

// passOver is for an upstream of a shard that is not loaded, or lost: guard does not wait for it.
func (s *session) passOver(ref operator.Ref) {
	if s.pool.Is(work.Counting) {
		s.tally.Load().Note(ref, guard.Counted{})
		return
	}
	s.batch.Note(ref, guard.Counted{}, true)
}

// enterShardOfRow is Enter for the shard of a row.
func (s *session) enterShardOfRow(ctx context.Context, ref operator.Ref) (acting context.Context, leave func(), ok bool) {
	if s.shards == nil {
		return ctx, func() {}, true
	}
	return s.shards.Enter(ctx, s.shards.Of(s.pipeline.Row(ref.Name, nil).GetUID()))
}
