package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// ChangeDigest names what a confirmation is about: the config as it was loaded, and the form in which this program hashes.
// A new form changes every object, as a new template does, so it needs a confirmation of its own.
func ChangeDigest(f *config.File) string { return drift.HashVersion + f.Digest() }

// counted is what a guard found about one upstream: its standing downstreams, how many of them would be changed or
// deleted, and the first of those in words.
type counted struct {
	standing, changed int
	first             string
}

// tally is what a guard has counted.
type tally struct {
	mu    sync.Mutex
	left  map[pipeline.Ref]struct{} // not looked at yet
	found map[pipeline.Ref]counted
	total counted
	refs  int
}

func newTally(refs []pipeline.Ref) *tally {
	t := &tally{left: make(map[pipeline.Ref]struct{}, len(refs)), found: map[pipeline.Ref]counted{}, refs: len(refs)}
	for _, ref := range refs {
		t.left[ref] = struct{}{}
	}
	return t
}

// note takes in what was found about an upstream, in the place of what was found before.
func (t *tally) note(ref pipeline.Ref, c counted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.left, ref)
	before := t.found[ref]
	t.total.standing += c.standing - before.standing
	t.total.changed += c.changed - before.changed
	if c == (counted{}) {
		delete(t.found, ref)
		return
	}
	t.found[ref] = c
}

// sum returns the counts, and how many upstreams have not been looked at yet.
func (t *tally) sum() (c counted, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total, len(t.left)
}

// examples names the first few upstreams that are concerned.
func (t *tally) examples() string {
	const few = 3
	t.mu.Lock()
	defer t.mu.Unlock()
	var refs []pipeline.Ref
	for ref, c := range t.found {
		if c.changed > 0 {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b pipeline.Ref) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var parts []string
	for _, ref := range refs[:min(few, len(refs))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", ref, t.found[ref].first))
	}
	if more := len(refs) - few; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// GuardAllows is how many of the standing downstreams may be changed or deleted without confirmation.
func GuardAllows(g *config.Guard, standing int) int {
	percent, _ := strconv.Atoi(strings.TrimSuffix(g.MaxChanged, "%")) // held to its form when it was loaded
	limit := standing * percent / 100
	if g.Minimum != nil {
		limit = max(limit, *g.Minimum)
	}
	return limit
}

// passGuard counts what the config would change and waits as long as that is more than it allows, unless it is confirmed.
// Nothing is written meanwhile, but that upstreams which are being deleted are cleaned up after, where nobody else does.
// Once it is passed nothing is looked at until work begins. It returns false when live is done.
func (s *session) passGuard(live context.Context) bool {
	guard := s.pipeline.Config.Guard
	if guard == nil || s.pipeline.Observing() || s.confirmed() {
		return true
	}
	s.beginCounting()
	s.hire(live)
	w := &guardWait{session: s, guard: guard}
	defer w.end()
	for cleans := false; ; {
		if now := s.cleansUp(); now != cleans { // those that are being deleted were passed over so far
			cleans = now
			s.enqueue(priorityBulk, s.upstreams.keys()...)
		}
		if w.mayGoOn() {
			break
		}
		if pause(live, syncPoll); live.Err() != nil {
			return false
		}
	}
	s.rest()
	return true
}

// guardWait is one wait for what a guard lets through.
type guardWait struct {
	*session
	guard        *config.Guard
	confirmation *confirmation
	told         bool
	// shown is what text, the message, was made of: it is asked for many times a second.
	shown counted
	text  string
}

// mayGoOn tells whether the change may be made, and says why not.
func (w *guardWait) mayGoOn() bool {
	c, left := w.tally.sum()
	switch limit := GuardAllows(w.guard, c.standing); {
	case w.session.confirmed() || w.confirmation.says(ChangeDigest(w.file)):
		w.tellGoesOn("it is confirmed")
		return true
	case left > 0 && !w.told:
		w.say(reasonSyncing, fmt.Sprintf("counting what would change: %d of %d upstreams are left", left, w.tally.refs))
		return false
	case c.changed <= limit:
		w.tellGoesOn("it changes no more than guard allows")
		return true
	default:
		if w.confirmation == nil {
			w.confirmation = w.openConfirmation()
		}
		if w.shown != c {
			w.shown, w.text = c, w.message(c, limit)
			setGuard(w.name, c.changed, c.standing)
		}
		w.say(reasonGuardWaiting, w.text+w.confirmation.trouble())
		w.tellWaits(w.text)
		return false
	}
}

// message tells what would be changed, and how to have it changed.
func (w *guardWait) message(c counted, limit int) string {
	digest := ChangeDigest(w.file)
	text := fmt.Sprintf("%d of %d standing downstreams would be changed or deleted, and guard allows %d without confirmation: %s. ",
		c.changed, c.standing, limit, w.tally.examples())
	if at := w.guard.Confirm; at != nil {
		return text + fmt.Sprintf("If that is meant, run corollary confirm -c CONFIG %s, or write %s under the key %s of ConfigMap %s/%s",
			w.name, digest, at.Key, at.Namespace, at.ConfigMap)
	}
	return text + "If that is meant, set guard.confirmed to " + digest
}

func (w *guardWait) tellWaits(message string) {
	if w.told {
		return
	}
	w.told = true
	w.log.Info("a change waits for confirmation", "reason", string(reasonGuardWaiting), "change", message)
	w.operator.event(w.file.Events, true, EventGuardWaiting, "Guard", message)
}

func (w *guardWait) tellGoesOn(why string) {
	if w.told {
		w.log.Info("a change that waited for confirmation goes on", "because", why)
	}
}

func (w *guardWait) end() {
	w.confirmation.close()
	forgetGuard(w.name)
}

// confirmed tells whether the config itself holds the confirmation.
func (g *generation) confirmed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.confirmedFor == ChangeDigest(g.file)
}

// confirm takes the confirmation from a config that says the same otherwise.
func (g *generation) confirm(f *config.File) { g.confirmedFor = confirmationIn(f) }

func confirmationIn(f *config.File) string {
	if f.Guard == nil {
		return ""
	}
	return f.Guard.Confirmed
}

// cleansUp tells whether it is up to this session to clean up after upstreams while it counts: no other one works, here
// or in another process.
func (s *session) cleansUp() bool {
	select {
	case <-s.engine.elected:
	default:
		return false
	}
	s.operator.mu.Lock()
	defer s.operator.mu.Unlock()
	return s.operator.current == s.generation
}
