package rollout

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/staged"
	"github.com/corollary-dev/corollary/pkg/operator"
)

var seeds = flag.Int("seeds", 30, "schedules")

const upstreams = 200

// world is what a cluster shows of 200 upstreams while a config is rolled out, with a clock.
type world struct {
	random *rand.Rand
	now    time.Time
	config *staged.Rollout
	// bad says what is wrong with the changed config.
	bad     badness
	rollout *Rollout
	// marks are those of the objects, hashes the versions that they have; edited those that were edited meanwhile.
	marks  map[operator.Ref]string
	hashes map[operator.Ref]string
	edited map[operator.Ref]bool
	// readyAt is when one becomes Ready, failsAt when it fails after that.
	readyAt, failsAt map[operator.Ref]time.Time
}

type badness int

const (
	good badness = iota
	rendersNothing
	refused
	neverReady
	failsLater
	badnesses
)

func refOf(i int) operator.Ref { return operator.Ref{Namespace: "ns", Name: fmt.Sprintf("u-%03d", i)} }

func newWorld(seed uint64) *world {
	random := rand.New(rand.NewPCG(seed, 0))
	shares := []staged.Step{"1", "5%", "25%", "100%"}
	w := &world{random: random, now: time.Unix(1e9, 0), bad: badness(random.IntN(int(badnesses))),
		config: &staged.Rollout{Steps: shares[random.IntN(2):], Pause: common.Duration(time.Minute),
			ProgressDeadline: common.Duration(10 * time.Minute)},
		marks: map[operator.Ref]string{}, hashes: map[operator.Ref]string{}, edited: map[operator.Ref]bool{},
		readyAt: map[operator.Ref]time.Time{}, failsAt: map[operator.Ref]time.Time{}}
	for i := range upstreams {
		w.hashes[refOf(i)] = "one"
	}
	return w
}

// survey is what the cluster shows of one upstream.
func (w *world) survey(ref operator.Ref) Surveyed {
	s := Surveyed{Changes: w.hashes[ref] != "two", Edited: w.edited[ref] && w.hashes[ref] != "two" && w.bad != refused}
	if m := parseMark(w.marks[ref], w.now); m != (Mark{}) {
		s.marks = []Mark{m}
	}
	if w.bad == rendersNothing {
		s.Changes, s.Refuses = false, string(operator.StateRenderFailed)
	}
	o := w.outcome(ref)
	s.Ready, s.Said = o.Ready, o.Reason
	return s
}

// outcome is what the status of an upstream says.
func (w *world) outcome(ref operator.Ref) Outcome {
	switch {
	case w.hashes[ref] == "one":
		return Outcome{Ready: true, Reason: "Ready"}
	case !w.failsAt[ref].IsZero() && !w.now.Before(w.failsAt[ref]):
		return Outcome{Applied: true, Reason: "Failed"}
	case w.readyAt[ref].IsZero() || w.now.Before(w.readyAt[ref]):
		return Outcome{Applied: true, Reason: "Progressing"}
	}
	return Outcome{Applied: true, Ready: true, Reason: "Ready"}
}

// start is a process that starts, or takes over.
func (w *world) start(fresh bool) {
	w.rollout = New(w.config, "two", func() time.Time { return w.now })
	w.rollout.Begin()
	for i := range upstreams {
		w.rollout.Note(refOf(i), w.survey(refOf(i)), "")
	}
	w.rollout.Open(fresh)
}

// reconcile is what the operator does for one upstream.
func (w *world) reconcile(ref operator.Ref) {
	s := w.survey(ref)
	if w.rollout.MayHold(ref) && !w.rollout.Admit(ref, s) {
		return
	}
	switch {
	case !s.Changes:
	case w.bad == refused:
		w.rollout.Observe(ref, Outcome{Reason: "Rejected"})
		return
	default:
		w.hashes[ref], w.marks[ref] = "two", w.rollout.Mark(ref)
		if w.bad != neverReady {
			w.readyAt[ref] = w.now.Add(time.Duration(w.random.IntN(300)) * time.Second)
		}
		if w.bad == failsLater {
			w.failsAt[ref] = w.readyAt[ref].Add(time.Duration(w.random.IntN(50)) * time.Second)
		}
	}
	if w.bad == rendersNothing {
		return
	}
	w.rollout.Observe(ref, w.outcome(ref))
}

// changed counts the upstreams that the config has changed by its steps.
func (w *world) changed() (n int) {
	for ref, hash := range w.hashes {
		if hash == "two" && !w.edited[ref] {
			n++
		}
	}
	return n
}

// A config that is bad changes no more upstreams than the present step allows, but for those that people edit, whatever
// restarts in between; a good one reaches all.
func TestSchedules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*seeds) {
		w := newWorld(seed)
		w.start(true)
		highest, allowed := 0, 0 // of steps that were completely Ready; limits fall with the upstreams that people edit
		for range 500 {
			w.now = w.now.Add(time.Duration(w.random.IntN(60)) * time.Second)
			switch w.random.IntN(40) {
			case 0:
				w.start(false)
			case 1:
				if ref := refOf(w.random.IntN(upstreams)); w.bad != refused && w.bad != rendersNothing {
					w.edited[ref] = w.edited[ref] || w.hashes[ref] == "one"
					w.reconcile(ref)
				}
			}
			move, p, _ := w.rollout.step("", "")
			for _, ref := range move {
				w.reconcile(ref)
			}
			for i := range upstreams {
				if ref := refOf(i); w.hashes[ref] == "two" {
					w.rollout.Observe(ref, w.outcome(ref))
				}
			}
			if p.State == "" {
				break
			}
			limits := Limits(w.config, p.All)
			for highest < len(limits)-1 && w.allReady(limits[highest]) {
				highest++
			}
			if allowed = max(allowed, limits[highest]); w.changed() > allowed {
				t.Fatalf("seed %d: a config (%d) has changed %d upstreams in step %d, which allows %d (%v)", seed, w.bad, w.changed(),
					highest+1, allowed, p)
			}
		}
		for ref, hash := range w.hashes {
			if w.bad == good && hash != "two" {
				t.Fatalf("seed %d: a good config has not reached %s", seed, ref)
			}
		}
	}
}

// allReady reports whether that many upstreams were moved by steps, and all that is moved is Ready, or was once.
func (w *world) allReady(limit int) bool {
	for ref, hash := range w.hashes {
		if hash == "two" && (w.readyAt[ref].IsZero() || w.now.Before(w.readyAt[ref])) {
			return false
		}
	}
	return w.changed() >= limit
}

// A decision is read as it was written. One that cannot be read moves nothing and says so; one about another config is
// none; and what cannot be watched is said beside what the rollout waits for.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for _, c := range []Control{{Config: "two", Paused: true, At: 7}, {Config: "two", Reverts: true, At: 7}, {Config: "two", At: 7},
		{Config: "two", At: 7, Promoted: 3}} {
		if read, ok := parseControl(c.String()); !ok || read != c {
			t.Errorf("%q is read as %+v, %t", c, read, ok)
		}
	}
	for _, test := range []struct {
		reason, decision, problem string
		moved                     int
		why                       string
	}{
		{"nothing is decided", "", "", 1, ""},
		{"an unknown verb", "two bogus 1", "", 0, `"two bogus 1" under the key of rollout.control cannot be read`},
		{"no number of steps", "two promote 9999999999", "", 0, "cannot be read"},
		{"another config", "one pause 1", "", 1, ""},
		{"the ConfigMap cannot be watched", "", " (but it is forbidden)", 1, "(but it is forbidden)"},
	} {
		w := newWorld(1)
		w.bad, w.config.Steps = good, []staged.Step{"1", "100%"}
		w.start(true)
		move, p, _ := w.rollout.step(test.decision, test.problem)
		if len(move) != test.moved || !strings.Contains(p.Why, test.why) {
			t.Errorf("%s: %d are moved, and it says %q", test.reason, len(move), p.Why)
		}
	}
}
