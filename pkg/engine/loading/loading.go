// Package loading loads the objects of shards that this process gains into the sessions of operators, and takes out
// those that it loses.
package loading

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/engine/work"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/shards"
)

// poll is how often it is checked whether shards are loaded.
const poll = 50 * time.Millisecond

// gatherShards is for how long shards that are gained are gathered, so that one list loads all of them.
const gatherShards = 200 * time.Millisecond

// Loader loads the shards that this process holds into the sessions. It implements shards.Handler. A nil one is for a
// process without shards.
type Loader struct {
	owned    shards.Owned
	drop     func(set *informers.ShardSet, shard int)
	starting func() map[string]bool

	mu sync.Mutex
	// sets are the sets of the shards that are loaded, by shard.
	sets map[int]*informers.ShardSet
	// gathering are the shards that were just gained, which are to be one set; nil for none.
	gathering *gathering
	sessions  map[*Shards]struct{}
}

// gathering are shards that are to be loaded together.
type gathering struct {
	shards []int
	opened chan struct{} // closed once the watches of set are opened
	set    *informers.ShardSet
}

// New returns a loader of the shards that are owned; nil if owned is. drop takes a shard out of a set, and starting
// lists the operators whose watches may not be open yet.
func New(owned shards.Owned, drop func(set *informers.ShardSet, shard int), starting func() map[string]bool) *Loader {
	if owned == nil {
		return nil
	}
	l := &Loader{owned: owned, drop: drop, starting: starting, sets: map[int]*informers.ShardSet{},
		sessions: map[*Shards]struct{}{}}
	owned.Subscribe(l)
	return l
}

// Gained implements shards.Handler.
func (l *Loader) Gained(ctx context.Context, shard int) {
	g := l.gather(shard)
	select {
	case <-ctx.Done():
		return
	case <-g.opened:
	}
	for begun := time.Now(); ctx.Err() == nil && !l.settled(g.set, time.Since(begun)); {
		work.Pause(ctx, poll)
	}
}

// maxLoadDelay is how long a shard counts as being loaded because of an operator that does not start, or whose lists
// fail: others must be able to take shards meanwhile.
const maxLoadDelay = 15 * time.Second

// gather adds a shard to those that are loaded next.
func (l *Loader) gather(shard int) *gathering {
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
func (l *Loader) open(g *gathering) {
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
		s.open(g.set)
	}
}

// settled reports whether the sessions have loaded a set, which takes that long already, and those that act have
// reconciled its upstreams once.
func (l *Loader) settled(set *informers.ShardSet, since time.Duration) bool {
	starting := l.starting()
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.sessions {
		if delete(starting, s.Operator); !s.settled(set) {
			return false
		}
	}
	return len(starting) == 0 || since >= maxLoadDelay
}

// Lost implements shards.Handler.
func (l *Loader) Lost(shard int) {
	for _, s := range l.all() {
		s.drain(shard)
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
	l.drop(set, shard)
	for s := range l.sessions {
		s.drop(shard)
		s.Forget(shard)
		if len(set.Shards()) == 0 {
			s.Close(set)
		}
	}
}

// MembersChanged implements shards.Handler. A process that has joined may wait for counts that are gone since a person
// deleted the Lease.
func (l *Loader) MembersChanged() {
	for _, s := range l.all() {
		select {
		case s.joined <- struct{}{}:
		default:
		}
	}
}

func (l *Loader) all() []*Shards {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.sessions))
}

// Join opens the watches of a session: open is called with the sets that are loaded, and the session gets all later
// ones. Leave ends that. Without shards, sets is nil.
func (l *Loader) Join(s *Shards, open func(sets []*informers.ShardSet) error) error {
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
	s.opened(sets...)
	return open(sets)
}

// Leave ends what Join has begun.
func (l *Loader) Leave(s *Shards) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.sessions, s)
	}
}

// Session is what shards are loaded into.
type Session struct {
	Operator string
	// Loaded reports whether the first lists of a set are in, Fails whether they cannot be had for that long; Candidates
	// are then what is to be reconciled.
	Loaded     func(set *informers.ShardSet) bool
	Fails      func(set *informers.ShardSet, since time.Duration) bool
	Candidates func(set *informers.ShardSet) []operator.Ref
	// Acts reports whether the session acts.
	Acts func() bool
	// Open opens the watches of a set, and Close closes them. If Open fails, End ends the session, so that the operator
	// starts over with all sets, and its state says why, as for the watches at its start.
	Open  func(set *informers.ShardSet) error
	Close func(set *informers.ShardSet)
	End   func(why error)
	// Forget forgets what belongs to a shard.
	Forget func(shard int)
}

// Shards are the shards of a session; a nil one has every upstream. It implements reconcile.Shards.
type Shards struct {
	Session
	owned shards.Owned
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

// ShardsOf returns the shards of a session, which Join opens; nil without shards.
func (l *Loader) ShardsOf(s Session) *Shards {
	if l == nil {
		return nil
	}
	set := &Shards{
		Session: s, owned: l.owned, changed: make(chan struct{}, 1), joined: make(chan struct{}, 1),
		ready: map[int]bool{}, underWay: map[int]int{},
		unsettled: map[*informers.ShardSet]map[operator.Ref]struct{}{},
	}
	set.idle.L = &set.mu
	return set
}

// Of implements reconcile.Shards.
func (s *Shards) Of(uid types.UID) int { return s.owned.Ring().Of(string(uid)) }

// Held implements reconcile.Shards.
func (s *Shards) Held() (list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard := range s.ready {
		list = append(list, shard)
	}
	slices.Sort(list)
	return list
}

// MayEnter reports whether a reconcile of the upstream may begin. One whose uid is not known is decided by Enter.
func (s *Shards) MayEnter(uid types.UID) bool {
	if s == nil || uid == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready[s.Of(uid)]
}

// Enter implements reconcile.Shards.
func (s *Shards) Enter(ctx context.Context, shard int) (acting context.Context, leave func(), ok bool) {
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
func (s *Shards) drain(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for delete(s.ready, shard); s.underWay[shard] > 0; {
		s.idle.Wait()
	}
}

// drop notes that a shard is no longer loaded.
func (s *Shards) drop(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, shard)
}

// opened notes that the watches of sets are opened.
func (s *Shards) opened(sets ...*informers.ShardSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = append(s.loading, sets...)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// TakeLoaded lets reconciles begin of the sets that have been loaded, and returns what they have to reconcile. left is
// true if others are still being loaded. before is called with those of each set before its shards are held, since
// guard must not add up without them; nil for nothing.
func (s *Shards) TakeLoaded(before func(refs []operator.Ref)) (refs []operator.Ref, left bool) {
	if s == nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = slices.DeleteFunc(s.loading, func(set *informers.ShardSet) bool {
		if !s.Loaded(set) {
			return false
		}
		found := s.Candidates(set)
		if before != nil && len(found) > 0 {
			before(found)
		}
		for _, shard := range set.Shards() {
			s.ready[shard] = true
		}
		if refs = append(refs, found...); s.Acts() && len(found) > 0 {
			s.unsettled[set] = map[operator.Ref]struct{}{}
			for _, ref := range found {
				s.unsettled[set][ref] = struct{}{}
			}
		}
		return true
	})
	return refs, len(s.loading) > 0
}

// Reconciled notes that an upstream was reconciled.
func (s *Shards) Reconciled(ref operator.Ref) {
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

// Settling reports whether upstreams of shards that this process has taken over wait for their first reconcile.
func (s *Shards) Settling() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsettled) > 0
}

// settled reports whether a set is loaded and, if the session acts, reconciled once, or whether it cannot be loaded at
// present.
func (s *Shards) settled(set *informers.ShardSet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Fails(set, maxLoadDelay) {
		return true
	}
	if !s.Acts() {
		return s.Loaded(set)
	}
	return !slices.Contains(s.loading, set) && s.unsettled[set] == nil
}

// open opens the watches of shards that this process has gained.
func (s *Shards) open(set *informers.ShardSet) {
	if err := s.Open(set); err != nil {
		s.End(fmt.Errorf("opening the watches of shards %v: %w", set.Shards(), err))
		return
	}
	s.opened(set)
}

// EnterFor is Enter for the shard of an object.
func (s *Shards) EnterFor(ctx context.Context, uid types.UID) (acting context.Context, leave func(), ok bool) {
	if s == nil {
		return ctx, func() {}, true
	}
	return s.Enter(ctx, s.Of(uid))
}

// Serve has the upstreams of shards reconciled once they are loaded, until acting is done: join is called with those of
// each set before its shards are held, and then add. publish publishes that nothing waits in the shards; it returns
// false if it has to be tried again.
func (s *Shards) Serve(
	acting context.Context, join, add func(refs []operator.Ref), publish func(ctx context.Context) bool,
) {
	if s == nil {
		return
	}
	for publishes := false; acting.Err() == nil; {
		refs, left := s.TakeLoaded(join)
		if len(refs) > 0 {
			add(refs)
		}
		if left {
			work.Pause(acting, poll)
			continue
		}
		if publishes = publishes && !publish(acting); publishes {
			work.Pause(acting, time.Second)
			continue
		}
		select { // who starts may wait for the counts of what was taken, or of all
		case <-acting.Done():
		case <-s.changed:
			publishes = true
		case <-s.joined:
			publishes = true
		}
	}
}
