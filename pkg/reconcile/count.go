package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// GuardCount is how many standing downstreams there are, how many of them would be changed or deleted, and how many of
// these deleted.
type GuardCount struct{ Standing, Changed, Deleted int }

// Add takes in what was counted elsewhere.
func (c *GuardCount) Add(other GuardCount) {
	c.Standing += other.Standing
	c.Changed += other.Changed
	c.Deleted += other.Deleted
}

// Counted is what a guard found about one upstream: how many of its standing downstreams would be changed or deleted, the
// first of those in words, and the digest of what would become of them.
type Counted struct {
	GuardCount
	First  string
	Digest drift.Sum
}

// Count looks at one upstream as Reconcile does, and counts in the place of acting; cleansUp: but for one that is being deleted.
// It returns what was counted and after how long to look again: at what no watch tells of, or, where failed is true, at what
// could not be counted, which guard waits for.
func (r *Reconciler) Count(ctx context.Context, ref pipeline.Ref, cleansUp bool) (c Counted, after time.Duration, failed bool) {
	l, err := r.begin(ctx, ref)
	if err != nil {
		return c, r.readFailed(ref, err), true
	}
	r.memory.found(ref)
	if l == nil {
		return c, 0, false
	}
	defer l.releaseSlot()
	switch {
	case l.upstream.GetDeletionTimestamp() == nil && r.deselected.some(ref): // its author took the label off, while a process ran
	case l.upstream.GetDeletionTimestamp() == nil:
		_, c = l.count(ctx, l.firstDecision(ctx))
		l.record.desired.Forget()
		if l.noSlot || ctx.Err() != nil {
			return c, noSlotDelay(), true
		}
		if !l.trustedUntil.IsZero() {
			return c, time.Duration(r.Pipeline.Config.Retry.MaxDelay), false
		}
	case cleansUp:
		return c, l.finalize(ctx), false
	}
	return c, 0, false
}

// heldByGuard tells whether a decision must wait for the rest of its batch, or for a confirmation. What its author has
// changed since it was counted does not.
func (r *reconciliation) heldByGuard(ctx context.Context, d pipeline.Decision) bool {
	before, ok := r.Host.Batched(r.ref)
	if !ok {
		return false
	}
	own := r.digest(false)
	c := r.countIn(r.withRecreations(ctx, d))
	restricted := c.Deleted > 0 || c.Changed > 0 && r.Pipeline.Config.Guard.MaxChanged != ""
	free := !restricted || before != drift.Sum{} && before != own
	return !r.Host.CountBatched(r.ref, c, own, free)
}

// firstDecision is what is decided before the API server is asked for anything but what the status says that stands.
func (r *reconciliation) firstDecision(ctx context.Context) pipeline.Decision {
	r.findUnseen(ctx)
	return r.Pipeline.Decide(r.gather(ctx))
}

// count finds out what would be changed or deleted of what stands, and returns the decision as it is with what was learned
// by that. It writes nothing: it reads what the caches do not show, and makes a dry run of each repair, which may be of
// nothing but the API server's own spelling.
func (r *reconciliation) count(ctx context.Context, d pipeline.Decision) (pipeline.Decision, Counted) {
	d = r.withRecreations(ctx, d)
	if r.Pipeline.Config.Guard.MaxChanged == "" { // deletions alone are counted
		return d, r.countIn(d)
	}
	if r.findStanding(ctx, d) {
		d = r.Pipeline.Decide(r.gather(ctx))
	}
	supposed, assumed := pipeline.Decision{Outcomes: slices.Clone(d.Outcomes), Leftovers: d.Leftovers}, false
	for i := range supposed.Outcomes {
		if o := &supposed.Outcomes[i]; r.isDoubtful(*o) && !r.wouldRepair(ctx, *o) {
			o.State, o.Action, assumed = pipeline.StateInSync, pipeline.ActionNone, true
		}
	}
	if assumed {
		d = r.Pipeline.Decide(r.gather(ctx))
	}
	return d, r.countIn(supposed)
}

// withRecreations is a decision that knows which updates delete their object: where updatePolicy is Recreate, a dry run of
// each update tells. What the upstream's author asks for is not counted, and not asked about.
func (r *reconciliation) withRecreations(ctx context.Context, d pipeline.Decision) pipeline.Decision {
	var in pipeline.Input
	found := false
	for _, o := range d.Outcomes {
		if o.State != pipeline.StateUpdate || r.Pipeline.EditedSince(r.upstream) {
			continue
		}
		if in.Facts == nil {
			in = r.gather(ctx)
		}
		if !r.mayRecreate(o, in) {
			continue
		}
		doc, err := r.document(in.Desired, o.Downstream, o.Live)
		if err != nil {
			continue // nothing is sent either
		}
		err = r.client.AcceptsApply(ctx, r.target(o.Downstream, o.Target), o.UID, doc)
		if err != nil && apply.Classify(err).Reason == apply.ReasonRejected && r.proveImmutable(ctx, o, doc, err) == nil {
			found = true
		}
	}
	if !found {
		return d
	}
	return r.Pipeline.Decide(r.gather(ctx))
}

// countIn counts what a decision changes or deletes of what stands. What is not ours counts where it is about to become
// so. What the upstream's author has changed since its status was written is what the author asks for, and counts as standing only.
func (r *reconciliation) countIn(d pipeline.Decision) Counted {
	var c Counted
	var changes []any
	note := func(o pipeline.Outcome, changed, deleted bool) {
		if c.Standing++; !changed {
			return
		}
		if c.Changed++; c.Changed == 1 {
			c.First = fmt.Sprintf("%s: %s", r.Pipeline.Downstreams[o.Downstream].Name, o.State)
		}
		if deleted {
			c.Deleted++
		}
		changes = append(changes, r.changeOf(o, deleted))
	}
	for _, o := range d.Outcomes {
		if o.Live != nil && !o.Live.Deleting && (!o.Theirs || rewrites(o)) {
			note(o, rewrites(o), o.State == pipeline.StateRecreate)
		}
	}
	for _, o := range d.Leftovers {
		if !o.Live.Deleting {
			goes := o.Action != pipeline.ActionNone || o.State == pipeline.StateSuperseded && replacesSuperseded(d.Outcomes[o.Downstream])
			note(o, goes, goes && r.Pipeline.Config.Downstreams[o.Downstream].DeletionPolicy != config.DeletionOrphan)
		}
	}
	if r.Pipeline.EditedSince(r.upstream) {
		return Counted{GuardCount: GuardCount{Standing: c.Standing}}
	}
	if len(changes) > 0 {
		c.Digest = drift.Digest(changes)
	}
	return c
}

// changeOf is what a confirmation is about, for one object: that very object, and what it would become of what it is.
func (r *reconciliation) changeOf(o pipeline.Outcome, deleted bool) []any {
	if deleted && o.State != pipeline.StateRecreate {
		return []any{string(o.Live.UID), "deleted"}
	}
	hash := ""
	if w := r.record.desired; w != nil && o.Downstream < len(w.Downstreams) {
		hash = w.Downstreams[o.Downstream].Hash
	}
	return []any{string(o.Live.UID), string(o.State), string(o.Live.P[:]), o.Live.Hash, hash}
}

// rewrites tells whether a standing object would be changed: since something else is wanted of it, since it is adopted, or
// since it is no longer as it was applied.
func rewrites(o pipeline.Outcome) bool {
	switch o.State {
	case pipeline.StateUpdate, pipeline.StateRecreate, pipeline.StateRepair:
		return o.Action != pipeline.ActionNone
	}
	return false
}

// isDoubtful tells of a repair that it may turn out to change nothing. One of an object that bears no hash or mark, one of
// another form, or nothing of our manager's, does for certain.
func (r *reconciliation) isDoubtful(o pipeline.Outcome) bool {
	return o.State == pipeline.StateRepair && o.Action == pipeline.ActionApply &&
		o.Live.Hash != "" && !drift.OtherForm(o.Live.Hash) && o.Live.Managed && !o.Live.NeedsTakeover && pipeline.Marked(o.Live, r.upstream.GetUID())
}

// wouldRepair tells whether a repair would change anything of ours, or take anything away. The answer is remembered as if
// the repair had been made, so that one which changes nothing costs no request later. Where it cannot be told, it would.
func (r *reconciliation) wouldRepair(ctx context.Context, o pipeline.Outcome) bool {
	i, live := o.Downstream, o.Live
	t, question := &r.record.targets[i], dryRunQuestionOf(live, r.record.desired.Downstreams[i].Hash)
	switch b := r.predecessorBaseline(i, live.UID); {
	case b != nil && *b == live.P && live.Hash == question.hash:
		t.dryRunAnswer = &dryRunAnswer{question, true}
	case t.dryRunAnswer == nil || t.dryRunAnswer.question != question:
		same, err := r.wouldStay(ctx, o)
		if err != nil {
			r.Log.Info("the dry run failed: counting this repair, which may change nothing", "upstream", r.ref.String(), "target", o.Target.String(), "error", err.Error())
			return true
		}
		t.dryRunAnswer = &dryRunAnswer{question, same}
	}
	if t.dryRunAnswer.same {
		sum := live.P
		r.record.setBaseline(i, live.UID, &sum, false)
	}
	return !t.dryRunAnswer.same
}

// wouldStay asks by dry runs whether an apply, and the removal of what others added to exclusive fields, would leave our
// fields as they are: the API server may spell them in its own way, or add keys of its own.
func (r *reconciliation) wouldStay(ctx context.Context, o pipeline.Outcome) (bool, error) {
	i, live := o.Downstream, o.Live
	at, view := r.target(i, o.Target), &r.Pipeline.Downstreams[i].View
	doc, err := r.document(r.record.desired, i, live)
	if err != nil {
		return false, err
	}
	resp, err := r.client.DryRunApply(ctx, at, live.UID, doc)
	if err != nil {
		return false, err
	}
	would, err := view.Live(resp)
	if err != nil || would.P != live.P || would.Hash != live.Hash {
		return false, err
	}
	extras := r.extras(i, would, resp, doc, false)
	if len(extras) == 0 {
		return true, nil
	}
	if resp, err = r.client.DryRunNull(ctx, at, live.UID, resp.GetResourceVersion(), extras); err != nil {
		return false, err
	}
	would, err = view.Live(resp)
	return err == nil && would.P == live.P, err
}

// findStanding reads what the caches do not show and what acting would find in its way. What the status says was made at a
// target may have lost the labels that are watched, as when the config's have changed; where the status records nothing,
// only reading the target tells, and so it does of what others made, which may be adopted. It tells whether something was
// found.
func (r *reconciliation) findStanding(ctx context.Context, d pipeline.Decision) bool {
	found, recorded, records := false, r.recorded(), r.Pipeline.TrustsStatus()
	for i, o := range d.Outcomes {
		downstream := r.Pipeline.Downstreams[i]
		rec, adopts := recordedAs(recorded, downstream.Name), downstream.Config.AdoptionPolicy == config.AdoptIfUnowned
		var uid types.UID
		switch {
		case o.State != pipeline.StateCreate:
			continue
		case rec != nil && rec.UID != "" && rec.Namespace == o.Target.Namespace && rec.ObjectName == o.Target.Name:
			uid = rec.UID
		case records && !adopts:
			continue
		}
		live, err := r.readLive(ctx, i, o.Target)
		switch {
		case err != nil:
			r.Log.Info("an object that may exist cannot be read and is not counted", "upstream", r.ref.String(), "target", o.Target.String(), "error", err.Error())
		case live != nil && (adopts || r.isOwn(live, uid)):
			r.record.remember(i, live, r.now)
			found = true
		case uid != "":
			r.record.forgetObject(uid, r.now)
		}
	}
	return found
}

// replacesSuperseded tells whether an outcome is about to give what it supersedes a successor.
func replacesSuperseded(o pipeline.Outcome) bool {
	return o.Action == pipeline.ActionCreate || o.Action == pipeline.ActionApply || o.State == pipeline.StateRecreate
}
