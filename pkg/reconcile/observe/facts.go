package observe

import (
	"fmt"
	"time"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Facts gathers what is known of object k of the desired state.
func (st *State) Facts(k int, recorded []status.Recorded) operator.Facts {
	t, i := st.Memory.Object(k), st.Memory.Desired().Objects[k].Downstream
	f := operator.Facts{WantedSince: t.Since, HasKeptValues: len(t.Unusual.Get().Generated) > 0}
	rec := st.RecordedAs(recorded, k)
	at, hash, ok := st.Locate(k, rec)
	if !ok {
		return f
	}
	live, until := st.LatestAt(k, at)
	f.Live = st.Memory.Notes.Get().WithMark(live)
	if !until.IsZero() && !isHiddenByPause(st, f.Live) && st.Cache.Live(i, at) == nil {
		st.TrustUntil(until)
	}
	if f.Verdict.Sibling, f.Verdict.Foreign = st.ofSibling(i, f.Live, rec); f.Verdict.Foreign != "" {
		f.Live = nil
	}
	if rec != nil {
		f.Finished, f.Failed = rec.Done(), rec.State == status.StateFailed
		f.RecordedAt, f.RecordedUID = operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, rec.UID
	}
	writes := t.Contest.Get()
	f.Spaced = writes.Wait(st.Memory.Cause(), hash, memory.SpacingOf(st.Pipeline.Config.Retry), st.Began)
	if f.Spaced > 0 && hash != writes.Written {
		f.Feedback = st.Pipeline.Feedback(i, st.ownInputs())
	}
	if f.Live == nil {
		f.Verdict.Contenders = t.Unusual.Get().ChangedBy
		if wait := st.waitForItems(i); wait > f.Spaced {
			f.Spaced, f.Feedback = wait, st.Pipeline.Feedback(i, st.ownInputs())
		}
		return f
	}
	if rec != nil && rec.UID == f.Live.UID {
		f.RecordedHash = rec.Hash
	}
	// It does not matter which downstream it is recorded for: two may have swapped their names.
	if IsRecorded(st.Pipeline.Settings, recorded, f.Live.UID) && marks.Marked(f.Live, st.Upstream.GetUID()) {
		t.SetUID(f.Live.UID, at)
	}
	f.Trusted = st.IsTrusted(k, f.Live.UID, recorded)
	if t.UID == f.Live.UID {
		f.AppliedHash = writes.Written
	}
	f.Baseline = st.BaselineOf(k, f.Live, rec)
	f.Verdict = t.Verdict(f.Live, hash)
	f.Verdict.Contenders = t.Unusual.Get().ChangedBy
	f.Unverified, f.Verdict.Stale = st.VerifiedAs(k, f.Live, rec)
	f.Verdict.Differences, _ = t.Compared(f.Live, hash)
	return f
}

// isHiddenByPause reports whether the watch shows an object only after a pause, as it lacks the labels until then.
func isHiddenByPause(st *State, live *drift.Live) bool {
	return live != nil && live.Unselected && st.Pipeline.Paused(st.Upstream)
}

// ofSibling says of an object at the place of downstream i that it is another downstream's, as knownBy says; empty if
// it is not. rec is what the status records for downstream i.
func (st *State) ofSibling(i int, live *drift.Live, rec *status.Recorded) (sibling, why string) {
	if live == nil || rec != nil && rec.UID == live.UID || st.Memory.Has(live.UID, i) {
		return "", ""
	}
	sibling = decide.SiblingAt(st.Pipeline.Settings, st.Memory.Desired(), i, live,
		st.knownBy(st.Pipeline.EverRecorded(st.Upstream)))
	if sibling == "" {
		return "", ""
	}
	at := operator.Ref{Namespace: live.Namespace, Name: live.Name}
	return sibling, fmt.Sprintf(
		"%s exists and is of downstream %s: what it keeps does not change hands with a name, so use a free one in between",
		at, sibling)
}

// VerifiedAs says whether object k of the desired state, live, must be verified, and in which fields it stays stale. An
// update that was not verified stays so, whatever is decided next. After a restart, the upstream's status says it: it
// records another hash if the process ended between the update and its report, and StateUpdate until the object is
// verified.
func (st *State) VerifiedAs(k int, live *drift.Live, rec *status.Recorded) (unverified bool, stale string) {
	t, d := st.Memory.Object(k), st.DownstreamOf(k)
	v := t.Unusual.Get().Verified
	switch {
	case d.OwnsFields() || d.Config.UpdatePolicy == config.UpdateCreateOnly:
		return false, ""
	case v.UID == live.UID && (v.IsPending || v.Hash == st.Memory.Desired().Objects[k].Hash):
		return v.IsPending, v.Stale
	case rec == nil || rec.UID != live.UID || t.UID == live.UID && t.Contest.Get().Written != "":
		return false, ""
	}
	isComplete := rec.State != string(operator.StateStale) && rec.State != string(operator.StateUpdate)
	return !isComplete || rec.Hash != "" && rec.Hash != live.Hash, ""
}

// waitForItems is how long the creation of one of several objects must wait.
func (st *State) waitForItems(downstream int) time.Duration {
	if !st.Pipeline.Downstreams[downstream].Several() {
		return 0
	}
	return st.Memory.Items(downstream).Wait(st.Memory.Cause(), memory.SpacingOf(st.Pipeline.Config.Retry), st.Began)
}

// ownInputs are the inputs, by index, that are downstreams of this upstream, or were until just now.
func (st *State) ownInputs() []int {
	var own []int
	uids := st.ownUIDs()
	for i, found := range st.inputs {
		if !st.Pipeline.MayBeDownstream(i) {
			continue
		}
		at := st.Memory.Inputs().Refs[i].At
		gone := found.one == nil && at.Name != "" && st.Memory.HadAt(at)
		for _, o := range found.objects() {
			gone = gone || uids[o.GetUID()]
		}
		if gone {
			own = append(own, i)
		}
	}
	return own
}
