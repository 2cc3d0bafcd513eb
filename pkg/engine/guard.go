package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/informers"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// countUpstream counts one upstream, while the session counts instead of acting.
func (s *session) countUpstream(ctx context.Context, ref pipeline.Ref) (after time.Duration) {
	var c reconcile.Counted
	failed, uid := false, s.cache.UpstreamUID(ref)
	defer func() {
		tally := s.pool.tally.Load()
		if !failed { // also after a panic: what cannot be counted is not acted on either
			tally.note(ref, c)
		}
		if !s.shards.mayEnter(uid) { // its shard may have been dropped before that
			tally.note(ref, reconcile.Counted{})
		}
	}()
	c, after, failed = s.reconciler.Count(ctx, ref, s.cleansUp())
	return after
}

// tally is what guard has counted.
type tally struct {
	mu      sync.Mutex
	pending map[pipeline.Ref]struct{} // not counted yet
	counted map[pipeline.Ref]reconcile.Counted
	total   reconcile.GuardCount
	refs    int
	// version changes with what is counted.
	version int
}

// sum is what a tally has counted so far, and how many upstreams are left. Of two with the same tally and version, what is counted is
// the same, one by one.
type sum struct {
	reconcile.GuardCount
	left    int
	of      *tally
	version int
}

func newTally(refs []pipeline.Ref) *tally {
	t := &tally{pending: make(map[pipeline.Ref]struct{}, len(refs)), counted: map[pipeline.Ref]reconcile.Counted{}, refs: len(refs)}
	for _, ref := range refs {
		t.pending[ref] = struct{}{}
	}
	return t
}

// expect adds upstreams that are to be counted, again or for the first time.
func (t *tally) expect(refs []pipeline.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range refs {
		t.pending[ref] = struct{}{}
	}
}

// note records the count of an upstream, in place of the one before.
func (t *tally) note(ref pipeline.Ref, c reconcile.Counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending = without(t.pending, ref)
	if c == t.counted[ref] {
		return
	}
	t.version++
	t.total = difference(t.total, t.counted[ref].GuardCount)
	t.total.Add(c.GuardCount)
	if c == (reconcile.Counted{}) {
		delete(t.counted, ref)
		return
	}
	t.counted[ref] = c
}

// without deletes a key. An empty map is replaced: one that was large stays large.
func without[K comparable, V any](m map[K]V, key K) map[K]V {
	if delete(m, key); len(m) == 0 {
		return map[K]V{}
	}
	return m
}

// drop removes upstreams that others count.
func (t *tally) drop(lost func(ref pipeline.Ref) bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.pending, func(ref pipeline.Ref, _ struct{}) bool { return lost(ref) })
	maps.DeleteFunc(t.counted, func(ref pipeline.Ref, c reconcile.Counted) bool {
		is := lost(ref)
		if is {
			t.version++
			t.total = difference(t.total, c.GuardCount)
		}
		return is
	})
}

func (t *tally) sum() sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sum{GuardCount: t.total, left: len(t.pending), of: t, version: t.version}
}

// difference is a without b.
func difference(a, b reconcile.GuardCount) reconcile.GuardCount {
	return reconcile.GuardCount{Existing: a.Existing - b.Existing, Changed: a.Changed - b.Changed, Deleted: a.Deleted - b.Deleted, Failing: a.Failing - b.Failing}
}

// of is the count of an upstream.
func (t *tally) of(ref pipeline.Ref) reconcile.Counted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counted[ref]
}

// changes has, by upstream, the digest of what would be changed or deleted.
func (t *tally) changes() map[pipeline.Ref]drift.Sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	set := map[pipeline.Ref]drift.Sum{}
	for ref, c := range t.counted {
		if c.Any() {
			set[ref] = c.Digest
		}
	}
	return set
}

// forget removes the changes in the set from the count.
func (t *tally) forget(set map[pipeline.Ref]drift.Sum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, found := range t.counted {
		if sum, ok := set[ref]; ok && sum == found.Digest {
			t.version++
			t.total = difference(t.total, found.GuardCount)
			delete(t.counted, ref)
		}
	}
}

// common counts what would be changed or deleted and is in the set.
func (t *tally) common(set map[pipeline.Ref]drift.Sum) (c reconcile.GuardCount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, found := range t.counted {
		if sum, ok := set[ref]; ok && found.Any() && sum == found.Digest {
			c.Add(found.GuardCount)
		}
	}
	return c
}

// changeDigest identifies a set of changes. Whoever confirms it confirms these, and no others that the config may cause later.
func changeDigest(set map[pipeline.Ref]drift.Sum) string {
	h := sha256.New()
	for _, ref := range sortedRefs(set) {
		sum := set[ref]
		fmt.Fprintf(h, "%q %x\n", ref.String(), sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func sortedRefs(set map[pipeline.Ref]drift.Sum) []pipeline.Ref {
	return slices.SortedFunc(maps.Keys(set), pipeline.Ref.Compare)
}

// examples names the first few upstreams of a set.
func (t *tally) examples(set map[pipeline.Ref]drift.Sum) string {
	const few = 3
	refs := sortedRefs(set)
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(refs, func(a, b pipeline.Ref) int { return t.counted[b].Failing - t.counted[a].Failing }) // an error says most
	var parts []string
	for _, ref := range refs[:min(few, len(refs))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", ref, t.counted[ref].First))
	}
	if more := len(refs) - few; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// passGuard counts what the config would change, and waits while that is more than guard allows, unless it is confirmed.
// Nothing is written meanwhile, except that upstreams which are being deleted are finalized if no other session does. Once it
// has passed, nothing is reconciled until work begins. It returns false when live is done.
func (s *session) passGuard(live context.Context) bool {
	guard := s.pipeline.Config.Guard
	if guard == nil || s.pipeline.Observing() {
		return true
	}
	s.batch.open(s.pipeline.HasRows()) // changes from now on may come too late to be counted below
	board := s.newCountBoard(startCountKey)
	if board == nil && guard.MaxChanged == "" && s.operator.activeReconciler(s) == nil && guardNeverHolds(s.pipeline.Config, s.cache.CountDownstreams()) {
		return true
	}
	s.beginCounting()
	s.startWorkers(live)
	w := &guardWait{session: s, guard: guard, tally: s.pool.tally.Load(), board: board, doubt: func() string { return "" }}
	defer w.end()
	for cleans := false; ; {
		if now := s.cleansUp(); now != cleans { // those that are being deleted were passed over so far
			cleans = now
			s.Add(informers.PriorityBulk, 0, s.cache.Upstreams()...)
		}
		if refs, _ := s.shards.takeLoaded(w.tally.expect); len(refs) > 0 { // shards that were gained meanwhile
			s.Add(informers.PriorityBulk, 0, refs...)
		}
		c := w.tally.sum()
		if c.left > 0 && w.reported == "" {
			w.session.setReason(reasonSyncing, fmt.Sprintf("counting what would change: %d of %d upstreams are left", c.left, w.tally.refs))
		} else if waiting := w.countAll(live, &c); waiting != "" {
			w.session.setReason(reasonStandby, waiting)
		} else if text := w.waitsFor(c); text == "" {
			break
		} else {
			w.session.setReason(reasonGuardWaiting, text)
		}
		if pause(live, syncPoll); live.Err() != nil {
			return false
		}
	}
	if w.confirmed != nil {
		s.batch.noteConfirmed(w.confirmed) // it needs no second confirmation
	}
	board.end(live, allowed)
	s.pool.pass(interrupted, nil)
	return true
}

// guardWait is one wait for guard.
type guardWait struct {
	session      *session
	guard        *config.Guard
	tally        *tally
	board        *countBoard // nil if no other process counts
	confirmation *confirmation
	// doubt is why what is to be deleted may still be wanted; it gives "" if there is none.
	doubt func() string
	// present is what would be changed now, according to counted.
	present waitingChange
	counted sum
	// asked is the change that was last reported, accepted the digests that confirm it: those of all messages since.
	asked    waitingChange
	accepted map[string]bool
	// shown are the counts that text, the message, was made of; reported is the digest that was last logged.
	shown          reconcile.GuardCount
	text, reported string
	// confirmed are the changes that were confirmed; nil for none.
	confirmed map[pipeline.Ref]drift.Sum
	// existing is how many downstreams there were at countedAt.
	existing  int
	countedAt time.Time
}

// countExisting counts the downstreams, which takes long if they are many, at most once a second.
func (w *guardWait) countExisting() int {
	if time.Since(w.countedAt) >= time.Second {
		w.existing, w.countedAt = w.session.cache.CountDownstreams(), time.Now()
	}
	return w.existing
}

// waitingChange is a set of changes that waits for confirmation.
type waitingChange struct {
	changes map[pipeline.Ref]drift.Sum // of this process
	// count is of all processes that share shards, own of this one.
	count, own reconcile.GuardCount
	digest     string
}

// countAll adds the counts of the other processes to a count. It returns what they still lack; empty if they are complete.
func (w *guardWait) countAll(ctx context.Context, c *sum) string {
	if w.board == nil {
		return ""
	}
	w.board.refresh(ctx, *c, w.session.shardCounts(w.tally, w.board.config))
	c.GuardCount = w.board.total
	return w.board.waiting
}

// countBatch is countAll for a batch. settled is false while other processes may still count theirs, unless guard would allow that each
// shard changes like those of this process.
func (w *guardWait) countBatch(ctx context.Context, c *sum) (waiting string, settled bool) {
	if w.board == nil || c.Changed == 0 {
		return "", true
	}
	mine := w.session.shardCounts(w.tally, w.board.config)
	held := slices.Sorted(maps.Keys(mine))
	for i, shard := range held {
		of := mine[shard]
		of.Existing = c.Existing*(i+1)/len(held) - c.Existing*i/len(held)
		mine[shard] = of
	}
	if len(held) == 0 {
		return "", true // what is left is of shards that were lost
	}
	scaled := func(n int) int { return n * w.board.owned.Ring().N / len(held) }
	alike := reconcile.GuardCount{Existing: scaled(c.Existing), Changed: scaled(c.Changed), Deleted: scaled(c.Deleted)}
	w.board.refreshBatch(ctx, *c, mine)
	c.GuardCount = w.board.total
	return w.board.waiting, w.exceeds(alike) == "" || time.Since(w.board.since) > batchSettles
}

// waitsFor says what exceeds guard, and how to confirm it; it is empty if nothing does, or if it is confirmed. Further changes
// need a new confirmation if guard would not allow them by themselves.
func (w *guardWait) waitsFor(c sum) string {
	w.confirmed = nil
	exceeded := w.exceeds(c.GuardCount)
	if exceeded == "" {
		w.reportEnd("guard allows the rest")
		return ""
	}
	w.update(c)
	if w.confirmation == nil {
		w.confirmation = w.session.openConfirmation()
	}
	if w.confirmed = w.findConfirmed(); w.confirmed != nil {
		w.reportEnd("it is confirmed")
		return ""
	}
	if w.shown != c.GuardCount || w.text == "" {
		w.shown, w.text = c.GuardCount, w.message(exceeded)
		setGuard(w.session.operator.name, c.GuardCount)
	}
	w.reportWaiting()
	return w.text + w.confirmation.problem()
}

// update learns what would be changed now. It needs another confirmation if it differs from what was reported by more than guard
// allows, in either direction: a confirmation must not allow much that its message did not contain.
func (w *guardWait) update(c sum) {
	if w.counted.of == c.of && w.counted.version == c.version && (w.board == nil || w.board.digest == w.present.digest) {
		return
	}
	set := w.tally.changes()
	digest := changeDigest(set)
	if w.board != nil {
		digest = w.board.digest
	}
	w.counted, w.present, w.text = c, waitingChange{changes: set, count: c.GuardCount, own: w.tally.sum().GuardCount, digest: digest}, ""
	if len(w.accepted) == 0 || len(w.accepted) == maxAccepted || w.differs(c.GuardCount) {
		w.asked, w.accepted = w.present, map[string]bool{}
	}
	w.accepted[w.present.digest] = true
}

// maxAccepted bounds the digests that confirm one change.
const maxAccepted = 1000

// differs reports whether what would be changed now is so different from what was reported that guard would not allow the
// difference by itself.
func (w *guardWait) differs(now reconcile.GuardCount) bool {
	common, own := w.tally.common(w.asked.changes), w.tally.sum().GuardCount
	others := difference(difference(now, own), difference(w.asked.count, w.asked.own))
	added, dropped := difference(own, common), difference(w.asked.own, common)
	added.Changed, added.Deleted, added.Failing = added.Changed+max(others.Changed, 0), added.Deleted+max(others.Deleted, 0), added.Failing+max(others.Failing, 0)
	dropped.Changed, dropped.Deleted = dropped.Changed+max(-others.Changed, 0), dropped.Deleted+max(-others.Deleted, 0)
	dropped.Failing = 0 // that fewer fail needs no other confirmation
	added.Existing, dropped.Existing = now.Existing, now.Existing
	return w.exceeds(added) != "" || w.exceeds(dropped) != ""
}

// findConfirmed returns the changes that are confirmed; nil for none.
func (w *guardWait) findConfirmed() map[pipeline.Ref]drift.Sum {
	for _, digest := range []string{w.session.generation.confirmedDigest(), w.confirmation.digest()} {
		switch {
		case digest == w.present.digest:
			return w.present.changes
		case w.accepted[digest]:
			return w.asked.changes
		}
	}
	return nil
}

// exceeds says what of a count needs confirmation; it is empty if nothing does.
func (w *guardWait) exceeds(c reconcile.GuardCount) string { return w.exceedsIn(w.doubt(), c) }

// exceedsIn is exceeds where rows that the last result lacks may exist, because of doubt; empty for none.
func (w *guardWait) exceedsIn(doubt string, c reconcile.GuardCount) string {
	if doubt != "" && c.Deleted > 0 {
		return fmt.Sprintf("%d of %d existing downstreams would be deleted, but %s, so that none is", c.Deleted, c.Existing, doubt)
	}
	return GuardExceeded(w.session.pipeline.Config, c)
}

// message says what would be changed, and how to confirm it.
func (w *guardWait) message(exceeded string) string {
	within := ""
	if w.board != nil { // the number is that of all processes
		within = "in this process "
	}
	text := fmt.Sprintf("%s without confirmation: %s%s. ", exceeded, within, w.tally.examples(w.present.changes))
	if at := w.guard.Confirm; at != nil {
		return text + fmt.Sprintf("If this is intended, run corollary confirm -c CONFIG %s --digest %s, or write %s under the key %s of ConfigMap %s/%s",
			w.session.operator.name, w.present.digest, w.present.digest, at.Key, at.Namespace, at.ConfigMap)
	}
	return text + "If this is intended, set guard.confirmed to " + w.present.digest
}

// reportWaiting reports what waits: at first, and whenever it needs another confirmation.
func (w *guardWait) reportWaiting() {
	if w.reported == w.asked.digest {
		return
	}
	what := "a change waits for confirmation"
	if w.reported != "" {
		what = "another change waits for confirmation now"
	}
	w.reported = w.asked.digest
	logging.Warn(w.session.operator.log, what, "reason", string(reasonGuardWaiting), "digest", w.asked.digest, "change", w.text)
	w.session.operator.event(w.session.generation.file.Events, true, EventGuardWaiting, "Guard", w.text)
}

func (w *guardWait) reportEnd(why string) {
	if w.reported != "" {
		w.session.operator.log.Info("a change that waited for confirmation continues", "digest", w.reported, "because", why)
	}
}

// reportNothing reports that nothing is left of what waited.
func (w *guardWait) reportNothing() {
	if w.reported != "" {
		w.session.operator.log.Info("no change waits for confirmation any more", "digest", w.reported)
	}
}

func (w *guardWait) end() {
	w.confirmation.close()
	forgetGuard(w.session.operator.name)
}

// confirmedDigest is guard.confirmed of the config; empty for none.
func (g *generation) confirmedDigest() string {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	return g.confirmedFor
}

// setConfirmed takes over guard.confirmed of a config that is otherwise equal.
func (g *generation) setConfirmed(f *config.File) { g.confirmedFor = confirmationIn(f) }

func confirmationIn(f *config.File) string {
	if f.Guard == nil {
		return ""
	}
	return f.Guard.Confirmed
}

// cleansUp reports whether this session must finalize upstreams while it counts: no other one works, here or in another
// process or cluster.
func (s *session) cleansUp() bool {
	select {
	case <-s.engine.elected:
	default:
		return false
	}
	if !s.isActive() {
		return false
	}
	s.operator.mu.Lock()
	defer s.operator.mu.Unlock()
	return s.operator.current == s.generation
}
