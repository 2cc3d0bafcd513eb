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
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// countUpstream counts one upstream, while the session counts instead of acting.
func (s *session) countUpstream(ctx context.Context, ref pipeline.Ref) (after time.Duration) {
	var c reconcile.Counted
	failed := false
	defer func() {
		if !failed { // also after a panic: what cannot be counted is not acted on either
			s.pool.tally.note(ref, c)
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
	delete(t.pending, ref)
	before := t.counted[ref].GuardCount
	t.total.Add(c.GuardCount)
	t.total.Add(reconcile.GuardCount{Existing: -before.Existing, Changed: -before.Changed, Deleted: -before.Deleted})
	if c == (reconcile.Counted{}) {
		delete(t.counted, ref)
		return
	}
	t.counted[ref] = c
}

// sum returns the counts, and how many upstreams have not been counted yet.
func (t *tally) sum() (c reconcile.GuardCount, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, len(t.pending)
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
		if c.Changed > 0 {
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
			t.total.Add(reconcile.GuardCount{Existing: -found.Existing, Changed: -found.Changed, Deleted: -found.Deleted})
			delete(t.counted, ref)
		}
	}
}

// beyond counts what would be changed or deleted and is not in the set.
func (t *tally) beyond(set map[pipeline.Ref]drift.Sum, standing int) reconcile.GuardCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := reconcile.GuardCount{Existing: standing}
	for ref, found := range t.counted {
		if found.Changed > 0 && set[ref] != found.Digest {
			c.Add(reconcile.GuardCount{Changed: found.Changed, Deleted: found.Deleted})
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
	s.batch.open() // changes from now on may come too late to be counted below
	if guard.MaxChanged == "" && guardNeverHolds(s.pipeline.Config, s.cache.CountDownstreams()) {
		return true
	}
	s.beginCounting()
	s.startWorkers(live)
	w := &guardWait{session: s, guard: guard, tally: s.pool.tally, doubt: func() string { return "" }}
	defer w.end()
	for cleans := false; ; {
		if now := s.cleansUp(); now != cleans { // those that are being deleted were passed over so far
			cleans = now
			s.Add(informers.PriorityBulk, 0, s.cache.Upstreams()...)
		}
		c, left := w.tally.sum()
		if left > 0 && !w.reported {
			w.session.setReason(reasonSyncing, fmt.Sprintf("counting what would change: %d of %d upstreams are left", left, w.tally.refs))
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
	s.pauseWorkers()
	return true
}

// guardWait is one wait for guard.
type guardWait struct {
	session      *session
	guard        *config.Guard
	tally        *tally
	confirmation *confirmation
	// doubt is why what is to be deleted may still be wanted; it gives "" if there is none.
	doubt    func() string
	reported bool
	// changes are what is to be confirmed, digest identifies them, shown are the counts that text, the message, was made of.
	changes map[pipeline.Ref]drift.Sum
	digest  string
	shown   reconcile.GuardCount
	text    string
	// confirmed are the changes that were confirmed; nil for none.
	confirmed map[pipeline.Ref]drift.Sum
}

// waitsFor says what exceeds guard, and how to confirm it; it is empty if nothing does, or if it is confirmed. Further changes
// need a new confirmation if guard would not allow them by themselves.
func (w *guardWait) waitsFor(c reconcile.GuardCount) string {
	exceeded := w.exceeds(c)
	if exceeded == "" {
		w.reportEnd("guard allows the rest")
		return ""
	}
	if w.changes == nil || w.shown != c && w.exceeds(w.tally.beyond(w.changes, c.Existing)) != "" {
		w.changes = w.tally.changes()
		w.digest, w.text = changeDigest(w.changes), ""
	}
	if w.confirmation == nil {
		w.confirmation = w.session.openConfirmation()
	}
	if w.session.generation.confirmed(w.digest) || w.confirmation.confirms(w.digest) {
		w.confirmed = w.changes
		w.reportEnd("it is confirmed")
		return ""
	}
	if w.shown != c || w.text == "" {
		w.shown, w.text = c, w.message(exceeded)
		setGuard(w.session.operator.name, c)
	}
	w.reportWaiting(w.text)
	return w.text + w.confirmation.problem()
}

// exceeds says what of a count needs confirmation; it is empty if nothing does.
func (w *guardWait) exceeds(c reconcile.GuardCount) string {
	if doubt := w.doubt(); doubt != "" && c.Deleted > 0 {
		return fmt.Sprintf("%d of %d existing downstreams would be deleted, but %s, so that none is", c.Deleted, c.Existing, doubt)
	}
	return GuardExceeded(w.session.pipeline.Config, c)
}

// message says what would be changed, and how to confirm it.
func (w *guardWait) message(exceeded string) string {
	text := fmt.Sprintf("%s without confirmation: %s. ", exceeded, w.tally.examples(w.tally.changes()))
	if at := w.guard.Confirm; at != nil {
		return text + fmt.Sprintf("If this is intended, run corollary confirm -c CONFIG %s --digest %s, or write %s under the key %s of ConfigMap %s/%s",
			w.session.operator.name, w.digest, w.digest, at.Key, at.Namespace, at.ConfigMap)
	}
	return text + "If this is intended, set guard.confirmed to " + w.digest
}

func (w *guardWait) reportWaiting(message string) {
	if w.reported {
		return
	}
	w.reported = true
	w.session.operator.log.Info("a change waits for confirmation", "reason", string(reasonGuardWaiting), "change", message)
	w.session.operator.event(w.session.generation.file.Events, true, EventGuardWaiting, "Guard", message)
}

func (w *guardWait) reportEnd(why string) {
	if w.reported {
		w.session.operator.log.Info("a change that waited for confirmation continues", "because", why)
	}
}

func (w *guardWait) end() {
	w.confirmation.close()
	forgetGuard(w.session.operator.name)
}

// confirmed reports whether the config itself confirms that change.
func (g *generation) confirmed(digest string) bool {
	g.operator.mu.Lock()
	defer g.operator.mu.Unlock()
	return g.confirmedFor == digest
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
