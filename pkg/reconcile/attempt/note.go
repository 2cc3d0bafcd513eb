package attempt

import (
	"context"
	"math"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/reconcile/observe"
)

// Perform makes the requests for one outcome, and notes what came of them.
func (r *Attempt) Perform(ctx context.Context, o operator.Outcome, in operator.Input) act.Result {
	actor := r.Actor(in)
	res := note(r, actor.Do(ctx, o))
	if res.Verified != nil {
		verified := note(r, actor.Verify(ctx, res))
		if res.Err = verified.Err; verified.Stored != nil {
			res.Stored = verified.Stored
		}
	}
	if r.OnResult != nil {
		r.OnResult(res)
	}
	return res
}

// NeedsRecreation asks by dry runs whether an update would delete its object to create it again, and notes the answer.
func (r *Attempt) NeedsRecreation(ctx context.Context, o operator.Outcome, in operator.Input) bool {
	return note(r, r.Actor(in).NeedsRecreation(ctx, o)).Immutable != nil
}

// note remembers, counts and reports what came of an action. Nothing else does for objects of downstreams.
func note(r *Attempt, res act.Result) act.Result {
	n := &noting{r.State, res, r.Reporter(), memory.SpacingOf(r.Pipeline.Config.Retry)}
	n.findings()
	switch res.Did {
	case events.EventDeleted, events.EventReleased:
		n.removed()
	default:
		n.answer()
	}
	if n.Applied != nil && !r.API.Dry() {
		n.Cache.NoteReturned(n.Downstream, n.Answer)
	}
	n.tell()
	return res
}

// noting is a Result while it is noted.
type noting struct {
	*observe.State
	act.Result
	reporter events.Reporter
	spacing  memory.Spacing
}

func (n *noting) object() *memory.Object { return n.Memory.Object(n.Object) }

func (n *noting) place() memory.Place { return memory.At(n.Downstream, n.Target) }

// findings remembers what was found out beside the answer.
func (n *noting) findings() {
	for _, uid := range n.Gone {
		n.Memory.NoteGone(uid, n.Began)
	}
	switch {
	case n.MayExist == nil:
	case *n.MayExist:
		n.Memory.Notes.Edit().ExpectCreated(n.place())
	default:
		n.Memory.ConfirmCreated(func(p memory.Place) bool { return p == n.place() })
	}
	hash := n.Memory.Desired().Objects[n.Object].Hash
	if n.Immutable != nil {
		n.object().SetImmutable(*n.Immutable, n.Live, hash, n.Began)
	}
	if n.Same != nil {
		n.object().SetDryRun(n.Live, hash, *n.Same)
	}
	if n.Generated != nil {
		u := n.object().Unusual.Edit()
		u.Generated, u.GeneratedOf = n.Generated, n.UID
	}
}

// answer remembers an object as the API server returned it, and counts the write.
func (n *noting) answer() {
	t := n.object()
	switch {
	case n.Answer == nil:
	case n.Action == operator.ActionMarkOwner:
		if t.UID == n.UID { // else it is at no target
			n.countWrite(n.Written)
		} else {
			n.Removals.Write(n.place(), n.spacing, n.Began)
		}
		n.Memory.RememberUnplaced(n.Downstream, n.Answer, n.Began)
	default:
		if n.Applied != nil {
			n.Memory.NoteRegained(n.Answer.UID)
		}
		if n.Memory.Remember(n.Object, n.Answer, n.Began); n.Written != "" {
			n.written()
		}
	}
	if n.ChangedBy != nil {
		t.SetChangedBy(*n.ChangedBy)
	}
	if n.Applied != nil {
		t.SetRewritten(n.Applied.Rewritten)
		rec := n.RecordedAs(n.Recorded(), n.Object)
		n.Memory.SetBaseline(n.Object, n.Answer.UID, n.Applied.Baseline, rec != nil && rec.Baseline != "")
	}
	if n.Verified != nil {
		t.Unusual.Edit().Verified = *n.Verified
	}
}

func (n *noting) written() {
	if n.Action == operator.ActionReplaceMarks {
		n.object().SetUID(n.Answer.UID, n.Target)
	} else {
		n.object().Applied(n.Answer.UID, n.Target)
	}
	if n.countWrite(n.Written); n.Action == operator.ActionCreate {
		n.Removals.Forget(n.place())
	}
	switch writes := n.object().Contest.Edit(); {
	case n.Hidden:
		writes.Unsettled = futile
	case writes.Unsettled >= futile: // the last one was hidden, and this one is not
		writes.Unsettled = 0
		n.object().SetChangedBy("")
	}
}

// futile counts more writes that did not last than there can be: the next one waits as long as any.
const futile = math.MaxInt32

// removed is about an object that was deleted or released, which does not belong to the upstream from now on.
func (n *noting) removed() {
	n.Removals.Write(n.place(), n.spacing, n.Began)
	if t := n.object(); t.UID == n.UID {
		t.UID = "" // its absence is our own doing
		n.countWrite("")
	}
	n.countItems()
	switch {
	case n.Answer == nil:
	case n.Did == events.EventDeleted:
		n.Memory.NoteDeleting(n.Downstream, n.Answer, n.Began)
	default:
		n.Memory.NoteReleased(n.Downstream, n.Answer, n.Began)
	}
}

// countWrite counts a write with that hash; "" after a deletion.
func (n *noting) countWrite(hash string) {
	n.object().Contest.Edit().Write(n.Memory.Cause(), hash, n.spacing, n.Began)
	n.countItems()
}

// countItems counts that objects of a downstream are created or removed, once for each change of which they are.
func (n *noting) countItems() {
	if n.Pipeline.Downstreams[n.Downstream].Several() {
		n.Memory.Items(n.Downstream).Write(n.Memory.Cause(), n.spacing, n.Began)
	}
}

// tell reports what was done in the log, by events and in metrics.
func (n *noting) tell() {
	if n.Did == events.EventRepaired || n.Did == string(operator.StateDrifted) {
		counters.Drift(n.reporter.Name, n.Pipeline.Downstreams[n.Downstream].Name)
	}
	goesFirst := n.Did == events.EventCreated || n.Did == events.EventDeleted
	if goesFirst {
		n.reporter.Wrote(n.Did, n.Outcome, nil)
	}
	if n.ValuesLost {
		n.reporter.LostValues(n.Outcome)
	}
	n.reporter.LostFields(n.Outcome, n.Stay)
	switch {
	case n.Did == "" || goesFirst:
	case n.Did == string(operator.StateDrifted):
		n.reporter.Drifted(n.Outcome, n.object().Unusual.Get().ChangedBy)
	default:
		n.reporter.Wrote(n.Did, n.Outcome, n.Changed)
	}
}
