package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// gather gathers what the decision depends on. It sends no request, but for upstreams that the watch may hide: see findOthers.
func (r *reconciliation) gather(ctx context.Context) operator.Input {
	r.updateDesired(ctx) // our own write to the upstream may have brought somebody else's change with it
	r.trustedUntil = time.Time{}
	r.trustTerminating()
	r.record.ConfirmCreated(func(m memory.Place) bool { return r.Cache.Live(m.Downstream, m.At) != nil })
	finalizers := r.record.Contests.Get().Finalizers
	in := operator.Input{Upstream: r.upstream, Desired: r.record.Desired(), Health: r.Pipeline.Health(r.upstream, r.record.Desired(), r.inputsRead), Selected: r.selected, HasFinalizer: r.hasFinalizer(), HasPreviousFinalizer: marks.HasPreviousFinalizer(r.Pipeline.Settings, r.upstream),
		FinalizerSpaced: finalizers.Wait(r.record.Cause(), r.finalizerChange(), r.spacing(), r.now), Now: r.now, Unread: r.unread}
	recorded := r.recorded()
	if !r.selected {
		in.SelectionErr = r.Pipeline.Match(r.upstream).Err
		in.Leftovers = r.withUnseen(r.findLeftovers(nil, r.ownedByDownstream()))
		in.Others = findOthers(ctx, r, in.Leftovers)
		return in
	}
	in.Facts = make([]operator.Facts, len(in.Desired.Objects))
	for k := range in.Desired.Objects {
		in.Facts[k] = r.facts(k, recorded)
	}
	in.Leftovers = r.withUnseen(r.findLeftovers(r.record.Desired(), r.ownedByDownstream()))
	in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own operator.Owned) bool {
		return slices.ContainsFunc(in.Facts, func(f operator.Facts) bool { return f.Live != nil && f.Live.UID == own.Live.UID })
	})
	in.Others, in.Unrecorded = findOthers(ctx, r, in.Leftovers), unrecorded(r)
	return in
}

// withUnseen adds the objects that were read and are not in the cache, as long as they exist.
func (r *reconciliation) withUnseen(left []operator.Owned) []operator.Owned {
	for i := range left {
		left[i].Spaced = r.removals.Wait(memory.At(left[i].Downstream, operator.RefOf(left[i].Live)), r.spacing(), r.now)
	}
	for _, own := range r.unseen {
		shown := slices.ContainsFunc(left, func(o operator.Owned) bool { return o.Live.UID == own.Live.UID })
		if !shown && !r.record.IsNotOurs(own.Live.UID, r.now) {
			left = append(left, own)
		}
	}
	return left
}

// facts gathers what is known of object k of the desired state.
func (r *reconciliation) facts(k int, recorded []status.Recorded) operator.Facts {
	t, i := r.record.Object(k), r.record.Desired().Objects[k].Downstream
	f := operator.Facts{WantedSince: t.Since, HasKeptValues: len(t.Unusual.Get().Generated) > 0}
	rec := r.recordedAs(recorded, k)
	at, hash, ok := r.locate(k, rec)
	if !ok {
		return f
	}
	live, until := r.latest(k, at)
	if f.Live = r.record.Notes.Get().WithMark(live); !until.IsZero() && r.Cache.Live(i, at) == nil {
		r.trustUntil(until)
	}
	if f.Verdict.Sibling, f.Verdict.Foreign = r.ofSibling(i, f.Live, rec); f.Verdict.Foreign != "" {
		f.Live = nil
	}
	if rec != nil {
		f.Finished, f.Failed = rec.Done(), rec.State == status.StateFailed
		f.RecordedAt, f.RecordedUID = operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, rec.UID
	}
	writes := t.Contest.Get()
	if f.Spaced = writes.Wait(r.record.Cause(), hash, r.spacing(), r.now); f.Spaced > 0 && hash != writes.Written {
		f.Feedback = r.Pipeline.Feedback(i, r.ownInputs())
	}
	if f.Live == nil {
		if wait := r.waitForItems(i); wait > f.Spaced {
			f.Spaced, f.Feedback = wait, r.Pipeline.Feedback(i, r.ownInputs())
		}
		return f
	}
	if rec != nil && rec.UID == f.Live.UID {
		f.RecordedHash = rec.Hash
	}
	// It does not matter which downstream it is recorded for: two may have swapped their names.
	if isRecorded(r.Pipeline.Settings, recorded, f.Live.UID) && marks.Marked(f.Live, r.upstream.GetUID()) {
		t.SetUID(f.Live.UID, at)
	}
	f.Trusted = r.isTrusted(k, f.Live.UID, recorded)
	if t.UID == f.Live.UID {
		f.AppliedHash = writes.Written
	}
	f.Baseline = r.baseline(k, f.Live, rec)
	f.Verdict = t.Verdict(f.Live, hash)
	f.Verdict.Contenders = t.Unusual.Get().ChangedBy
	f.Unverified, f.Verdict.Stale = r.verifiedAs(k, f.Live, rec)
	f.Verdict.Differences, _ = t.Compared(f.Live, hash)
	return f
}

// ofSibling says of an object at the place of downstream i that it is another downstream's, as knownBy says; empty if it is not.
// rec is what the status records for downstream i.
func (r *reconciliation) ofSibling(i int, live *drift.Live, rec *status.Recorded) (sibling, why string) {
	if live == nil || rec != nil && rec.UID == live.UID || r.record.Has(live.UID, i) {
		return "", ""
	}
	sibling = decide.SiblingAt(r.Pipeline.Settings, r.record.Desired(), i, live, knownBy(r, r.Pipeline.EverRecorded(r.upstream)))
	if sibling == "" {
		return "", ""
	}
	at := operator.Ref{Namespace: live.Namespace, Name: live.Name}
	return sibling, fmt.Sprintf("%s exists and is of downstream %s: what it keeps does not change hands with a name, so use a free one in between", at, sibling)
}

// knownBy says of which downstream each object is: what a status records for certain, of downstreams of the config first; what it says itself,
// which it keeps while its downstream is renamed; what only this process knows; and at last what the status only guesses.
func knownBy(r *reconciliation, recorded []status.Recorded) (list []status.Recorded) {
	s, has := r.Pipeline.Settings, map[types.UID]bool{}
	add := func(rec status.Recorded) {
		if rec.UID == "" || !has[rec.UID] {
			has[rec.UID], list = true, append(list, rec)
		}
	}
	for _, rec := range recorded {
		if !rec.Guessed && s.IndexOf(rec.Name) >= 0 {
			add(rec)
		}
	}
	eachNamed(r, func(_ int, rec status.Recorded) { add(rec) })
	for _, rec := range recorded {
		if !rec.Guessed {
			add(rec)
		}
	}
	for _, w := range r.witnesses(nil) {
		if !w.Guessed {
			add(s.RecordAt(s.Downstreams[w.Downstream], w.At, w.UID, "", ""))
		}
	}
	for _, rec := range recorded {
		if rec.Guessed {
			add(rec)
		}
	}
	return list
}

// isTrusted is Facts.Trusted of object k of the desired state.
func (r *reconciliation) isTrusted(k int, uid types.UID, recorded []status.Recorded) bool {
	return r.record.Object(k).UID == uid || isRecorded(r.Pipeline.Settings, recorded, uid)
}

// latest is the object k of the desired state at a place, as the cache or a response shows it, and until when that response counts.
func (r *reconciliation) latest(k int, at operator.Ref) (*drift.Live, time.Time) {
	i := r.record.Desired().Objects[k].Downstream
	return r.record.Latest(k, at, func() *drift.Live { return r.Cache.Live(i, at) }, r.now)
}

// isRecorded reports whether the status records the uid as that of an object that we created, and can be trusted. StateDrifted of one that is
// only created says that it was not known to be ours.
func isRecorded(s *operator.Settings, recorded []status.Recorded, uid types.UID) bool {
	return s.TrustsStatus() && slices.ContainsFunc(recorded, func(one status.Recorded) bool {
		return one.UID == uid && (one.State != string(operator.StateDrifted) || !slices.ContainsFunc(s.Downstreams, func(d *operator.Downstream) bool {
			return d.Name == one.Name && d.Config.UpdatePolicy == config.UpdateCreateOnly
		}))
	})
}

// baseline is the projection that our last apply of live returned: as this process remembers it, else as the upstream's status
// records it; nil if it is what was sent, or unknown.
func (r *reconciliation) baseline(k int, live *drift.Live, rec *status.Recorded) *canonical.Sum {
	if sum, known := r.record.Baseline(r.record.Desired().Objects[k].Downstream, live.UID); known {
		return sum
	}
	// A status that is written like any other field of the upstream is not believed.
	if rec == nil || !r.Pipeline.TrustsStatus() || rec.Hash == "" || rec.UID != live.UID || rec.Hash != live.Hash {
		return nil
	}
	if sum, ok := canonical.ParseSum(rec.Baseline); ok {
		return &sum
	}
	return nil
}

// trustUntil sets until when a response counts for an object that the cache does not show: if the cache never shows it, only
// another reconciliation finds that out.
func (r *reconciliation) trustUntil(until time.Time) {
	if r.trustedUntil.IsZero() || until.Before(r.trustedUntil) {
		r.trustedUntil = until
	}
}

// locate returns the place of an object: its target or, if that is unknown, the place that the status records.
func (r *reconciliation) locate(k int, rec *status.Recorded) (at operator.Ref, hash string, ok bool) {
	w := r.record.Desired()
	if o := &w.Objects[k]; len(w.Invalid) == 0 && o.Err == nil {
		return o.Target, o.Hash, o.Wanted
	}
	if rec == nil {
		return operator.Ref{}, "", false
	}
	return operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, "", true
}

// recordedAs returns what the status records of object k of the desired state; nil for nothing.
func (r *reconciliation) recordedAs(list []status.Recorded, k int) *status.Recorded {
	return r.Pipeline.RecordedOf(list, &r.record.Desired().Objects[k])
}

// downstream is the downstream that object k of the desired state is of.
func (r *reconciliation) downstream(k int) *desired.Downstream {
	return r.Pipeline.Downstreams[r.record.Desired().Objects[k].Downstream]
}

// ownedByDownstream lists the objects with the upstream's owner mark that the cache or a newer response shows, and those that a witness
// knows, without those of downstreams that the config does not have any more: removing one from the config deletes nothing.
func (r *reconciliation) ownedByDownstream() [][]*drift.Live {
	uid, cached := r.upstream.GetUID(), func(at memory.Place) *drift.Live { return r.Cache.Live(at.Downstream, at.At) }
	owned := r.record.Unshown(len(r.Pipeline.Downstreams), cached, r.now)
	for i := range owned {
		owned[i] = slices.DeleteFunc(owned[i], func(live *drift.Live) bool { return !marks.Marked(live, uid) })
		for _, live := range r.Cache.OwnedBy(i, uid) {
			isShown := slices.ContainsFunc(owned[i], func(o *drift.Live) bool { return o.UID == live.UID })
			if marks.Marked(live, uid) && !isShown && !r.record.HasLeft(live, r.now) {
				owned[i] = append(owned[i], live)
			}
		}
	}
	owned, forgotten := r.withWitnessed(owned), r.Pipeline.Forgotten(r.upstream)
	for i := range owned {
		owned[i] = slices.DeleteFunc(owned[i], func(live *drift.Live) bool {
			return isForgotten(r.Pipeline.Settings, i, live.Downstream) && !isRecordedFor(r.recorded(), live.UID) ||
				slices.ContainsFunc(forgotten, func(recorded status.Recorded) bool { return recorded.UID == live.UID })
		})
	}
	return owned
}

// eachNamed calls use with what is to be recorded of each object of the upstream that says itself of which downstream it is; i is one of its
// kind.
func eachNamed(r *reconciliation, use func(i int, rec status.Recorded)) {
	s := r.Pipeline.Settings
	if s.NameKey() == "" {
		return
	}
	for i, d := range s.Downstreams {
		for _, live := range r.Cache.OwnedBy(i, r.upstream.GetUID()) {
			if live.Downstream != "" && !marks.IsBeforeObject(live) && marks.Marked(live, r.upstream.GetUID()) {
				rec := s.RecordAt(d, operator.RefOf(live), live.UID, "", "")
				rec.Name = live.Downstream
				use(i, rec)
			}
		}
	}
}

// isRecordedFor reports whether an object is recorded for certain.
func isRecordedFor(recorded []status.Recorded, uid types.UID) bool {
	return slices.ContainsFunc(recorded, func(rec status.Recorded) bool { return rec.UID == uid && !rec.Guessed })
}

// unrecorded is Input.Unrecorded.
func unrecorded(r *reconciliation) (list []status.Recorded) {
	if r.Pipeline.NameKey() == "" {
		return nil
	}
	recorded := r.Pipeline.EverRecorded(r.upstream)
	eachNamed(r, func(i int, rec status.Recorded) {
		same := func(other status.Recorded) bool { return other.UID == rec.UID }
		if isForgotten(r.Pipeline.Settings, i, rec.Name) && !slices.ContainsFunc(recorded, same) && !slices.ContainsFunc(list, same) {
			list = append(list, rec)
		}
	})
	return list
}

// isForgotten reports whether an object of the kind of downstream i says that it is of one that the config no longer has, or has with another kind.
func isForgotten(s *operator.Settings, i int, name string) bool {
	home := s.IndexOf(name)
	return name != "" && (home < 0 || s.Downstreams[home].GVK().GroupKind() != s.Downstreams[i].GVK().GroupKind())
}

// owned lists every live object of the upstream.
func (r *reconciliation) owned() []*drift.Live {
	var all []*drift.Live
	seen := map[types.UID]bool{}
	for _, list := range r.ownedByDownstream() {
		for _, live := range list {
			if !seen[live.UID] {
				seen[live.UID] = true
				all = append(all, live)
			}
		}
	}
	return all
}

func labelsOf(u *unstructured.Unstructured) labels.Set { return u.GetLabels() }

// UpstreamTarget is the target of requests for an upstream.
func (r *Reconciler) UpstreamTarget(ref operator.Ref) apply.Target {
	return apply.Target{GVR: r.Pipeline.Upstream.GVR, Namespace: ref.Namespace, Name: ref.Name}
}

// ReadUpstream reads an upstream from the API server. It returns apply.ErrGone if there is none, also for a name that none can have: the marks
// of an object may name anything, and the API server's answer to such a name is not that it does not exist.
func (r *Reconciler) ReadUpstream(ctx context.Context, ref operator.Ref) (*unstructured.Unstructured, error) {
	if !canExist(r.Pipeline.Settings, ref) {
		return nil, apply.ErrGone
	}
	return r.Client.Get(ctx, r.UpstreamTarget(ref))
}

func canExist(s *operator.Settings, ref operator.Ref) bool {
	return len(content.IsPathSegmentName(ref.Name)) == 0 && len(content.IsPathSegmentName(ref.Namespace)) == 0 &&
		(ref.Namespace != "") == s.Upstream.Namespaced
}

// recorded reads the identifiers of downstreams in the upstream's status.
func (r *reconciliation) recorded() []status.Recorded { return r.Pipeline.Recorded(r.upstream) }

// hasFinalizer reports whether the upstream has the config's finalizer, current or previous.
func (r *reconciliation) hasFinalizer() bool {
	return marks.HasFinalizer(r.Pipeline.Settings, r.upstream)
}

// verifiedAs says whether object k of the desired state, live, must be verified, and in which fields it stays stale. An update that was not
// verified stays so, whatever is decided next. After a restart, the upstream's status says it: it records another hash if the process ended
// between the update and its report, and StateUpdate until the object is verified.
func (r *reconciliation) verifiedAs(k int, live *drift.Live, rec *status.Recorded) (unverified bool, stale string) {
	t, d := r.record.Object(k), r.downstream(k)
	v := t.Unusual.Get().Verified
	switch {
	case d.OwnsFields() || d.Config.UpdatePolicy == config.UpdateCreateOnly:
		return false, ""
	case v.UID == live.UID && (v.IsPending || v.Hash == r.record.Desired().Objects[k].Hash):
		return v.IsPending, v.Stale
	case rec == nil || rec.UID != live.UID || t.UID == live.UID && t.Contest.Get().Written != "":
		return false, ""
	}
	isComplete := rec.State != string(operator.StateStale) && rec.State != string(operator.StateUpdate)
	return !isComplete || rec.Hash != "" && rec.Hash != live.Hash, ""
}
