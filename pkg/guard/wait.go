package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// Host is what guard holds: one operator with one config.
type Host struct {
	Name   string
	Config *config.Operator
	// Processes are those that share its shards; nil if no other process counts.
	Processes *Processes
	// Existing counts the downstreams, Confirmed is guard.confirmed.
	Existing  func() int
	Confirmed func() string
	// Confirm begins to watch the ConfigMap that confirms a change.
	Confirm func() Confirmation
	Log     logr.Logger
	// Warn sends an event, Show sets the metric of what waits; nil: nothing waits.
	Warn func(text string)
	Show func(waits *Count)
}

// Confirmation is a ConfigMap that confirms a change.
type Confirmation interface {
	// Digest is what it confirms; empty for nothing. Problem says why it cannot be read; empty if it can.
	Digest() string
	Problem() string
	Close()
}

// pollPeriod is how often the counts are looked at.
const pollPeriod = 50 * time.Millisecond

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pollPeriod):
	}
}

// Wait is one wait for guard.
type Wait struct {
	*Host
	tally        *Tally
	board        *countBoard  // nil if no other process counts
	confirmation Confirmation // nil before anything exceeds a limit
	// doubt is why what is to be deleted may still be wanted; it gives "" if there is none.
	doubt func() string
	// present is what would be changed now, according to counted.
	present waitingChange
	counted Sum
	// asked is the change that was last reported, accepted the digests that confirm it: those of all messages since.
	asked    waitingChange
	accepted map[string]bool
	// shown are the counts that text, the message, was made of; reported is the digest that was last logged.
	shown          Count
	text, reported string
	// confirmed are the changes that were confirmed; nil for none.
	confirmed map[operator.Ref]canonical.Sum
	// existing is how many downstreams there were at countedAt.
	existing  int
	countedAt time.Time
}

// countExisting counts the downstreams, which takes long if they are many, at most once a second.
func (w *Wait) countExisting() int {
	if time.Since(w.countedAt) >= time.Second {
		w.existing, w.countedAt = w.Existing(), time.Now()
	}
	return w.existing
}

// waitingChange is a set of changes that waits for confirmation.
type waitingChange struct {
	changes map[operator.Ref]canonical.Sum // of this process
	// count is of all processes that share shards, own of this one.
	count, own Count
	digest     string
}

// countAll adds the counts of the other processes to a count. It returns what they still lack; empty if they are
// complete.
func (w *Wait) countAll(ctx context.Context, c *Sum) string {
	if w.board == nil {
		return ""
	}
	w.board.refresh(ctx, *c, w.board.count(w.tally))
	c.Count = w.board.total
	return w.board.waiting
}

// countBatch is countAll for a batch. settled is false while other processes may still count theirs, unless guard would
// allow that each shard changes like those of this process.
func (w *Wait) countBatch(ctx context.Context, c *Sum) (waiting string, settled bool) {
	if w.board == nil || c.Changed == 0 {
		return "", true
	}
	mine := w.board.count(w.tally)
	held := slices.Sorted(maps.Keys(mine))
	for i, shard := range held {
		count := mine[shard]
		count.Existing = c.Existing*(i+1)/len(held) - c.Existing*i/len(held)
		mine[shard] = count
	}
	if len(held) == 0 {
		return "", true // what is left is of shards that were lost
	}
	scaled := func(n int) int { return n * w.board.owned.Ring().N / len(held) }
	alike := Count{Existing: scaled(c.Existing), Changed: scaled(c.Changed), Deleted: scaled(c.Deleted)}
	w.board.refreshBatch(ctx, *c, mine)
	c.Count = w.board.total
	return w.board.waiting, w.exceeds(alike) == "" || time.Since(w.board.since) > batchSettles
}

// waitsFor says what exceeds guard, and how to confirm it; it is empty if nothing does, or if it is confirmed. Further
// changes need a new confirmation if guard would not allow them by themselves.
func (w *Wait) waitsFor(c Sum) string {
	w.confirmed = nil
	exceeded := w.exceeds(c.Count)
	if exceeded == "" {
		w.reportEnd("guard allows the rest")
		return ""
	}
	w.update(c)
	if w.confirmation == nil {
		w.confirmation = w.Confirm()
	}
	if w.confirmed = w.findConfirmed(); w.confirmed != nil {
		w.reportEnd("it is confirmed")
		return ""
	}
	if w.shown != c.Count || w.text == "" {
		w.shown, w.text = c.Count, w.message(exceeded)
		w.Show(&c.Count)
	}
	w.reportWaiting()
	return w.text + w.confirmation.Problem()
}

// update learns what would be changed now. It needs another confirmation if it differs from what was reported by more
// than guard allows, in either direction: a confirmation must not allow much that its message did not contain.
func (w *Wait) update(c Sum) {
	if w.counted.tally == c.tally && w.counted.version == c.version &&
		(w.board == nil || w.board.digest == w.present.digest) {
		return
	}
	set := w.tally.changes()
	digest := changeDigest(set)
	if w.board != nil {
		digest = w.board.digest
	}
	w.counted, w.present, w.text = c, waitingChange{changes: set, count: c.Count,
		own: w.tally.Sum().Count, digest: digest}, ""
	if len(w.accepted) == 0 || len(w.accepted) == maxAccepted || w.differs(c.Count) {
		w.asked, w.accepted = w.present, map[string]bool{}
	}
	w.accepted[w.present.digest] = true
}

// maxAccepted bounds the digests that confirm one change.
const maxAccepted = 1000

// differs reports whether what would be changed now is so different from what was reported that guard would not allow
// the difference by itself.
func (w *Wait) differs(now Count) bool {
	common, own := w.tally.common(w.asked.changes), w.tally.Sum().Count
	others := difference(difference(now, own), difference(w.asked.count, w.asked.own))
	added, dropped := difference(own, common), difference(w.asked.own, common)
	added.Changed, added.Deleted, added.Failing = added.Changed+max(others.Changed, 0), added.Deleted+max(others.Deleted,
		0), added.Failing+max(others.Failing, 0)
	dropped.Changed, dropped.Deleted = dropped.Changed+max(-others.Changed, 0), dropped.Deleted+max(-others.Deleted, 0)
	dropped.Failing = 0 // that fewer fail needs no other confirmation
	added.Existing, dropped.Existing = now.Existing, now.Existing
	return w.exceeds(added) != "" || w.exceeds(dropped) != ""
}

// findConfirmed returns the changes that are confirmed; nil for none.
func (w *Wait) findConfirmed() map[operator.Ref]canonical.Sum {
	for _, digest := range []string{w.Confirmed(), w.confirmation.Digest()} {
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
func (w *Wait) exceeds(c Count) string { return w.exceedsIn(w.doubt(), c) }

// exceedsIn is exceeds where rows that the last result lacks may exist, because of doubt; empty for none.
func (w *Wait) exceedsIn(doubt string, c Count) string {
	if doubt != "" && c.Deleted > 0 {
		return fmt.Sprintf("%d of %d existing downstreams would be deleted, but %s, so that none is",
			c.Deleted, c.Existing, doubt)
	}
	return Exceeded(w.Config, c)
}

// message says what would be changed, and how to confirm it.
func (w *Wait) message(exceeded string) string {
	within := ""
	if w.board != nil { // the number is that of all processes
		within = "in this process "
	}
	text := fmt.Sprintf("%s without confirmation: %s%s. ", exceeded, within, w.tally.examples(w.present.changes))
	if at := w.Config.Guard.Confirm; at != nil {
		return text + fmt.Sprintf(
			"If this is intended, run corollary confirm -c CONFIG %s --digest %s, or write %s under the key %s of ConfigMap "+
				"%s/%s",
			w.Name, w.present.digest, w.present.digest, at.Key, at.Namespace, at.ConfigMap)
	}
	return text + "If this is intended, set guard.confirmed to " + w.present.digest
}

// reportWaiting reports what waits: at first, and whenever it needs another confirmation.
func (w *Wait) reportWaiting() {
	if w.reported == w.asked.digest {
		return
	}
	what := "a change waits for confirmation"
	if w.reported != "" {
		what = "another change waits for confirmation now"
	}
	w.reported = w.asked.digest
	logging.Warn(w.Log, what, "reason", "GuardWaiting", "digest", w.asked.digest, "change", w.text)
	w.Warn(w.text)
}

func (w *Wait) reportEnd(why string) {
	if w.reported != "" {
		w.Log.Info("a change that waited for confirmation continues", "digest", w.reported, "because", why)
	}
}

// reportNothing reports that nothing is left of what waited.
func (w *Wait) reportNothing() {
	if w.reported != "" {
		w.Log.Info("no change waits for confirmation any more", "digest", w.reported)
	}
}

func (w *Wait) end() {
	if w.confirmation != nil {
		w.confirmation.Close()
	}
	w.Show(nil)
}

// State is what a start waits for.
type State int

// The states.
const (
	Passed   State = iota // for nothing
	Counting              // until every upstream is counted
	Missing               // until the other processes have counted theirs
	Waiting               // for a confirmation
)

func newWait(host *Host, t *Tally, doubt func() string, key string) *Wait {
	return &Wait{Host: host, tally: t, board: host.Processes.board(key), doubt: doubt}
}

// NewStart returns the wait of a start, or of a changed config. It is to be ended by End.
func NewStart(host *Host, t *Tally) *Wait {
	return newWait(host, t, func() string { return "" }, startKey)
}

// Look says what the start waits for now, in words.
func (w *Wait) Look(ctx context.Context) (state State, text string) {
	c := w.tally.Sum()
	if c.left > 0 && w.reported == "" {
		return Counting, fmt.Sprintf("counting what would change: %d of %d upstreams are left", c.left, w.tally.refs)
	}
	if text = w.countAll(ctx, &c); text != "" {
		return Missing, text
	}
	if text = w.waitsFor(c); text != "" {
		return Waiting, text
	}
	return Passed, ""
}

// End ends the wait. If it has passed, what was confirmed is returned, which needs no second confirmation; nil for
// nothing.
func (w *Wait) End(ctx context.Context, passed bool) (confirmed map[operator.Ref]canonical.Sum) {
	if w.end(); !passed {
		return nil
	}
	w.board.end(ctx, allowed)
	return w.confirmed
}

// how is what has become of a batch that is released.
func (w *Wait) how(counted Sum) ended {
	switch {
	case w.confirmed != nil:
		return confirmed
	case counted.Changed == 0:
		return withdrawn
	}
	return allowed
}
