package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// gather puts together what the decision depends on. It sends no request.
func (l *reconciliation) gather(ctx context.Context) pipeline.Input {
	l.updateDesired(ctx) // our own write to the upstream may have brought somebody else's change with it
	l.trustedUntil = time.Time{}
	l.record.confirm(func(m madeAt) bool { return l.Cache.Live(m.downstream, m.at) != nil })
	in := pipeline.Input{Upstream: l.upstream, Desired: l.record.desired, Selected: l.selected, HasFinalizer: l.hasFinalizer(), HasPreviousFinalizer: l.hasPreviousFinalizer(),
		FinalizerSpaced: l.record.finalizerContest.wait(l.record.asked, l.finalizerChange(), l.spacing(), l.now), Now: l.now}
	recorded := l.recorded()
	if !l.selected {
		in.Leftovers = l.withUnseen(l.Pipeline.Leftovers(l.upstream.GetUID(), nil, l.ownedByDownstream(), recorded))
		return in
	}
	in.Facts = make([]pipeline.Facts, len(l.Pipeline.Downstreams))
	for i, d := range l.Pipeline.Downstreams {
		in.Facts[i] = l.facts(i, d, recorded)
	}
	in.Leftovers = l.withUnseen(l.Pipeline.Leftovers(l.upstream.GetUID(), l.record.desired, l.ownedByDownstream(), recorded))
	in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own pipeline.Owned) bool {
		return slices.ContainsFunc(in.Facts, func(f pipeline.Facts) bool { return f.Live != nil && f.Live.UID == own.Live.UID })
	})
	return in
}

// withUnseen adds what was read and is not in the cache, as long as it stands.
func (l *reconciliation) withUnseen(left []pipeline.Owned) []pipeline.Owned {
	for i := range left {
		left[i].Spaced = l.removals.wait(madeAt{left[i].Downstream, pipeline.Ref{Namespace: left[i].Live.Namespace, Name: left[i].Live.Name}}, l.spacing(), l.now)
	}
	for _, own := range l.unseen {
		shown := slices.ContainsFunc(left, func(o pipeline.Owned) bool { return o.Live.UID == own.Live.UID })
		if !shown && !l.record.isGone(own.Live, l.now) {
			left = append(left, own)
		}
	}
	return left
}

func (l *reconciliation) facts(i int, d *pipeline.Downstream, recorded []status.Recorded) pipeline.Facts {
	t := &l.record.targets[i]
	var f pipeline.Facts
	rec := recordedAs(recorded, d.Name)
	at, hash, ok := l.whereabouts(i, rec)
	if !ok {
		return f
	}
	f.Live = l.record.latest(i, at, func() *drift.Live { return l.Cache.Live(i, at) }, l.now)
	if f.Live != nil && l.Cache.Live(i, at) == nil {
		l.trustUntil(l.record.freshUntil(i))
	}
	if rec != nil {
		f.Finished, f.Failed = rec.Done(), rec.State == status.StateFailed
		f.RecordedAt = pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}
	}
	if f.Spaced = t.contest.wait(l.record.asked, hash, l.spacing(), l.now); f.Spaced > 0 && hash != t.contest.wrote {
		f.Feedback = l.Pipeline.Feedback(i, l.ownInputs())
	}
	if f.Live == nil {
		return f
	}
	if rec != nil && rec.UID == f.Live.UID {
		f.RecordedHash = rec.Hash
	}
	// Which of the downstreams it is recorded for does not matter: two may have changed names.
	if l.isRecorded(recorded, f.Live.UID) && pipeline.Marked(f.Live, l.upstream.GetUID()) {
		t.knows(f.Live.UID, at)
	}
	f.Trusted = t.uid == f.Live.UID || l.isRecorded(recorded, f.Live.UID)
	if t.uid == f.Live.UID {
		f.AppliedHash = t.contest.wrote
	}
	f.Baseline = l.baseline(i, f.Live, rec)
	f.Verdict = t.verdictOf(f.Live, hash)
	f.Verdict.Contenders = t.explained
	f.Verdict.Differences = t.compared.about(f.Live, hash)
	return f
}

// isRecorded tells whether a status that is a witness records the uid.
func (l *reconciliation) isRecorded(recorded []status.Recorded, uid types.UID) bool {
	return l.Pipeline.BelievesStatus() && slices.ContainsFunc(recorded, func(r status.Recorded) bool { return r.UID == uid })
}

// baseline is the projection that our last apply of live returned: as this process remembers it, or else as the upstream's
// status records it; nil where it is what was sent, or not known.
func (l *reconciliation) baseline(i int, live *drift.Live, rec *status.Recorded) *drift.Sum {
	if sum, known := l.record.baseline(i, live.UID); known {
		return sum
	}
	return l.Pipeline.RecordedBaseline(rec, live)
}

// trustUntil notes until when an answer stands for what the cache does not show: if it never does, nothing but another reconciliation
// will tell.
func (l *reconciliation) trustUntil(until time.Time) {
	if l.trustedUntil.IsZero() || until.Before(l.trustedUntil) {
		l.trustedUntil = until
	}
}

// whereabouts is where a downstream stands: where the desired state wants it, or, while the desired state cannot be told, where the
// status says it was.
func (l *reconciliation) whereabouts(i int, rec *status.Recorded) (at pipeline.Ref, hash string, ok bool) {
	w := l.record.desired
	if len(w.Invalid) == 0 && w.Downstreams[i].Err == nil {
		return w.Downstreams[i].Target, w.Downstreams[i].Hash, w.Downstreams[i].Wanted
	}
	if rec == nil {
		return pipeline.Ref{}, "", false
	}
	return pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, "", true
}

// recorded reads the identifiers that the upstream's status has of its downstreams.
func (l *reconciliation) recorded() []status.Recorded {
	return l.Pipeline.Recorded(l.upstream)
}

func recordedAs(list []status.Recorded, name string) *status.Recorded {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// ownedByDownstream lists the objects that bear the upstream's mark, without those that are known to be gone, and those of
// downstreams that the config has no more: removing one from the config deletes nothing.
func (l *reconciliation) ownedByDownstream() [][]*drift.Live {
	owned, forgotten := l.shownByDownstream(), l.Pipeline.Forgotten(l.upstream)
	for i := range owned {
		owned[i] = slices.DeleteFunc(owned[i], func(live *drift.Live) bool {
			return l.record.isGone(live, l.now) || slices.ContainsFunc(forgotten, func(r status.Recorded) bool { return r.UID == live.UID })
		})
	}
	return owned
}

// shownByDownstream lists the objects that bear the upstream's mark, as the cache shows them.
func (l *reconciliation) shownByDownstream() [][]*drift.Live {
	owned := make([][]*drift.Live, len(l.Pipeline.Downstreams))
	for i := range owned {
		for _, live := range l.Cache.OwnedBy(i, l.upstream.GetUID()) {
			if pipeline.Marked(live, l.upstream.GetUID()) {
				owned[i] = append(owned[i], live)
			}
		}
	}
	return owned
}

// owned lists every live object that bears the upstream's mark.
func (l *reconciliation) owned() []*drift.Live {
	var all []*drift.Live
	seen := map[types.UID]bool{}
	for _, list := range l.ownedByDownstream() {
		for _, live := range list {
			if !seen[live.UID] {
				seen[live.UID] = true
				all = append(all, live)
			}
		}
	}
	return all
}

// hasFinalizer reports whether the upstream has the config's finalizer, current or previous.
func (l *reconciliation) hasFinalizer() bool {
	f := l.Pipeline.Config.Conventions.Finalizer
	return f != "" && slices.Contains(l.upstream.GetFinalizers(), f) || l.hasPreviousFinalizer()
}

func labelsOf(u *unstructured.Unstructured) labels.Set { return u.GetLabels() }

// UpstreamTarget is what requests for an upstream name.
func (s *Reconciler) UpstreamTarget(ref pipeline.Ref) apply.Target {
	return apply.Target{GVR: s.Pipeline.Upstream.GVR, Namespace: ref.Namespace, Name: ref.Name}
}

func (s *Reconciler) target(i int, ref pipeline.Ref) apply.Target {
	return apply.Target{GVR: s.Pipeline.Downstreams[i].Kind.GVR, Namespace: ref.Namespace, Name: ref.Name}
}
