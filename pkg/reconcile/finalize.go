package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

func (l *reconciliation) addFinalizer(ctx context.Context) bool {
	up, err := l.client.AddFinalizer(ctx, l.UpstreamTarget(l.ref), l.upstream, l.Pipeline.Config.Conventions.Finalizer)
	if err != nil {
		l.failUpstream("adding the finalizer", err)
		return false
	}
	l.wroteFinalizer()
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	return true
}

// finalizerChange is what can be done to the finalizer as the upstream is; wroteFinalizer counts that it was done.
func (l *reconciliation) finalizerChange() string {
	if l.hasFinalizer() {
		return "remove"
	}
	return "add"
}

func (l *reconciliation) wroteFinalizer() {
	l.record.finalizerContest.write(l.record.asked, l.finalizerChange(), l.spacing(), l.now)
}

// retireFinalizer takes the finalizer off an upstream that no longer needs it. What the status names and the cache does
// not show is read first: the cache may lag, and after this nothing would hold the upstream for it. What is found is left
// to the next round.
func (l *reconciliation) retireFinalizer(ctx context.Context, in pipeline.Input) bool {
	known := in.Leftovers
	for i, f := range in.Facts {
		if f.Live != nil {
			known = append(known, pipeline.Owned{Downstream: i, Live: f.Live})
		}
	}
	if l.findUnserved(ctx); len(l.failures) > 0 {
		return false
	}
	unseen, err := l.readRecorded(ctx, known)
	switch {
	case err != nil:
		l.failUpstream("reading what the status names", err)
		return false
	case len(unseen) > 0:
		l.unseen = append(l.unseen, unseen...)
		return true
	}
	return l.removeFinalizer(ctx)
}

// removeFinalizer takes the finalizer off, if it is there. An upstream that has gone meanwhile has no finalizer either.
func (l *reconciliation) removeFinalizer(ctx context.Context) bool {
	up, err := l.client.RemoveFinalizer(ctx, l.UpstreamTarget(l.ref), l.upstream, l.Pipeline.Config.Conventions.Finalizers()...)
	switch {
	case errors.Is(err, apply.ErrGone):
		return true
	case err != nil:
		l.failUpstream("removing the finalizer", err)
		return false
	}
	l.wroteFinalizer()
	l.upstream = withoutManagedFields(up)
	l.record.wrote(up, false)
	return true
}

// finalize is about an upstream that is being deleted: first deletion.before, where the config has one; then what bears the
// upstream's mark in the cache, and what its status names, is deleted or released; then the finalizer goes. For the
// downstreams it needs neither template nor rule.
func (l *reconciliation) finalize(ctx context.Context) time.Duration {
	deleting := status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonDeleting}
	if !l.hasFinalizer() || l.record.finalized || l.Pipeline.Observing() {
		l.record.unable = ""
		l.countVerdict(l.record, deleting)
		return 0
	}
	if l.awaitsDeletion() {
		return startOverAfter
	}
	if wait := l.record.retry.wait(l.record.asked, l.now); wait > 0 {
		return wait
	}
	l.record.unable = ""
	if r := l.Pipeline.RecordedBefore(l.upstream); r != nil {
		l.reportedBefore = r.State
	}
	var d pipeline.Decision
	for range maxRounds {
		in, err := l.gatherDeletion(ctx)
		switch {
		case errors.Is(err, apply.ErrGone):
			l.forget(l.ref)
			return 0
		case err != nil:
			l.failUpstream("reading what the status names", err)
			l.reportDeletion(ctx, pipeline.Decision{WaitsForBefore: true})
			l.countVerdict(l.record, deleting)
			return l.retryLater()
		}
		d = l.Pipeline.DecideDeletion(in)
		acted := l.actDeletion(ctx, &d, in)
		if l.finalized {
			return 0
		}
		if !acted {
			break
		}
	}
	return l.stillThere(ctx, d)
}

// gatherDeletion puts together what the decision about a deletion depends on. It reads what the status names and the
// cache does not have, once the downstreams' turn has come.
func (l *reconciliation) gatherDeletion(ctx context.Context) (pipeline.Input, error) {
	in := pipeline.Input{Upstream: l.upstream, HasFinalizer: true, Now: l.now, Cascade: l.cascade()}
	l.unwatched = false
	if l.Pipeline.Before != nil && !l.Pipeline.SkipsBefore(l.upstream, in.Cascade) {
		var err error
		if in.Before, err = l.gatherBefore(ctx); err != nil {
			return in, err
		}
		if in.Upstream = l.upstream; !l.Pipeline.BeforePassed(in.Before.Record) {
			return in, nil
		}
	}
	in.Leftovers = l.Pipeline.Leftovers(l.upstream.GetUID(), nil, l.shownByDownstream(), l.recorded())
	for i := range in.Leftovers {
		in.Leftovers[i].Asked = l.record.isGone(in.Leftovers[i].Live, l.now)
	}
	l.findUnserved(ctx)
	missing, err := l.readRecorded(ctx, in.Leftovers)
	if err != nil {
		return in, err
	}
	l.unwatched = l.unwatched || len(missing) > 0
	in.Leftovers = append(in.Leftovers, missing...)
	return in, nil
}

// actDeletion carries out what was decided, the finalizer last. It tells whether anything was done, so that deciding again
// may come to something new.
func (l *reconciliation) actDeletion(ctx context.Context, d *pipeline.Decision, in pipeline.Input) bool {
	if d.WaitsForBefore {
		return d.Before.Action != pipeline.ActionNone && l.actBefore(ctx, d, in)
	}
	acted := false
	for _, o := range d.Leftovers {
		if o.Action != pipeline.ActionNone && l.failures[o.Downstream] == nil {
			acted = l.carryOut(ctx, o, in) || acted
		}
	}
	if len(l.failures) > 0 || d.Finalizer != pipeline.FinalizerRemove {
		return acted && len(l.failures) == 0
	}
	if d.Before != nil && d.Before.Action != pipeline.ActionNone && !l.actBefore(ctx, d, in) {
		return false
	}
	if err := l.releaseBeforeOfOtherKind(ctx); err != nil {
		l.failUpstream("letting go of what an earlier deletion.before made", err)
		return false
	}
	if !l.removeFinalizer(ctx) {
		return false
	}
	// It is forgotten once the watch shows it gone: until then the cache may have it with its finalizer.
	l.Log.Info("cleaned up after an upstream", "upstream", l.ref.String(), "objects", len(d.Leftovers))
	l.finalized, l.record.finalized = true, true
	return true
}

// stillThere reports on an upstream that something keeps, and returns when to look again.
func (l *reconciliation) stillThere(ctx context.Context, d pipeline.Decision) time.Duration {
	l.countVerdict(l.record, l.reportDeletion(ctx, d))
	l.eventDeletion(d)
	if len(l.failures) > 0 || l.upstreamFailed {
		return l.retryLater()
	}
	var after time.Duration
	if h := d.Before; h != nil {
		m := &l.record.before
		l.countBefore(l.record, h.State)
		if (h.Theirs || h.Action != pipeline.ActionNone) && m.retry.wait(l.record.asked, l.now) == 0 {
			l.delay(&m.retry)
		}
		after = sooner(h.RequeueAfter, m.retry.wait(l.record.asked, l.now))
	}
	after = sooner(after, l.spaced)
	if !l.trustedUntil.IsZero() {
		after = sooner(after, l.trustedUntil.Sub(l.now))
	}
	if len(d.Leftovers) == 0 && !l.unwatched {
		return after
	}
	wait := l.record.waiting.wait(l.record.asked, l.now)
	if wait == 0 {
		wait = l.delay(&l.record.waiting)
	}
	return sooner(after, wait)
}

// reportDeletion writes the status of an upstream that is being deleted, where it says something new, and returns what
// Ready says.
func (l *reconciliation) reportDeletion(ctx context.Context, d pipeline.Decision) status.Verdict {
	failed := make(map[int]*pipeline.Failure, len(l.failures)+1)
	for i, f := range l.failures {
		failed[i] = f
	}
	if f := l.record.before.failureOf(d.Before); f != nil {
		failed[pipeline.BeforeIndex] = f
	}
	report := l.Pipeline.ReportDeletion(l.upstream, d, failed, metav1.NewTime(l.now))
	report, _ = l.writeReport(ctx, report, func() drift.Sum { return l.causeOfDeletion(report) })
	if report.Verdict.Reason == "" { // there is nothing left to report on but a request that failed
		return status.Verdict{Ready: metav1.ConditionFalse, Reason: status.ReasonDeleting}
	}
	return report.Verdict
}

// readRecorded reads the objects that the status names and the cache does not have: a cache may lag, and what is
// forgotten here is left behind for ever. Only an object that bears this upstream's mark is ours to clean up; one that
// somebody else made under the name has another uid.
func (l *reconciliation) readRecorded(ctx context.Context, known []pipeline.Owned) ([]pipeline.Owned, error) {
	var more []pipeline.Owned
	read := map[madeAt]*drift.Live{}
	for _, rec := range l.recorded() {
		i := slices.IndexFunc(l.Pipeline.Downstreams, func(d *pipeline.Downstream) bool { return d.Name == rec.Name })
		if i < 0 || rec.UID == "" || l.failures[i] != nil || slices.ContainsFunc(known, func(o pipeline.Owned) bool { return o.Live.UID == rec.UID }) {
			continue
		}
		at := pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}
		live, err := l.readLive(ctx, i, at)
		if err != nil {
			return nil, err
		}
		if read[madeAt{i, at}] = live; live != nil && (l.isOwn(live, rec.UID) || l.isOrphaned(live, rec.UID)) {
			more = append(more, pipeline.Owned{Downstream: i, Live: live, Certain: true})
		}
	}
	return l.readMade(ctx, known, more, read)
}

// readMade adds what this process made, or tried to, and neither the cache shows nor the status names. read has what was
// just read; nil where nothing stands.
func (l *reconciliation) readMade(ctx context.Context, known, more []pipeline.Owned, read map[madeAt]*drift.Live) ([]pipeline.Owned, error) {
	for _, m := range l.record.made {
		stands := func(o pipeline.Owned) bool {
			return o.Downstream == m.downstream && o.Live.Namespace == m.at.Namespace && o.Live.Name == m.at.Name
		}
		if l.failures[m.downstream] != nil || slices.ContainsFunc(known, stands) || slices.ContainsFunc(more, stands) {
			continue
		}
		live, ok := read[m]
		if !ok {
			var err error
			if live, err = l.readLive(ctx, m.downstream, m.at); err != nil {
				return nil, err
			}
		}
		if live != nil && l.isOwn(live, "") && !l.record.isGone(live, l.now) {
			more = append(more, pipeline.Owned{Downstream: m.downstream, Live: live, Certain: true})
		}
	}
	return more, nil
}

// findUnserved fails the downstreams of which objects may exist that nothing can find: their kind is not watched, and the API
// server does not say that there are none. Objects of a kind that it does not serve are gone.
func (l *reconciliation) findUnserved(ctx context.Context) {
	for i, d := range l.Pipeline.Downstreams {
		if d.Kind.Missing == nil || l.failures[i] != nil {
			continue
		}
		if err := l.Host.Absent(ctx, d.Kind.GVK); err != nil {
			l.fail(pipeline.Outcome{Downstream: i}, err)
			f := l.failures[i]
			f.Message = fmt.Sprintf("whether a %s of %s exists is not known: %s", d.Kind.GVK.Kind, d.Kind.GVK.GroupVersion(), f.Message)
		}
	}
}

// findUnseen reads what the status names as made for a target that is none any more, where the cache does not show it:
// it may lag, or the object has lost the labels that the watch selects by. While the desired state cannot be told, or at the
// target, there is no hurry: the status goes on naming it.
func (l *reconciliation) findUnseen(ctx context.Context) {
	if l.selected && (len(l.record.desired.Invalid) > 0 || l.Pipeline.Paused(l.upstream)) {
		return
	}
	for _, rec := range l.recorded() {
		i := slices.IndexFunc(l.Pipeline.Downstreams, func(d *pipeline.Downstream) bool { return d.Name == rec.Name })
		at := pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}
		if i < 0 || rec.UID == "" || l.failures[i] != nil || l.record.knownGone(rec.UID, l.now) {
			continue
		}
		if l.selected && (l.record.desired.Downstreams[i].Err != nil || l.isTarget(i, at)) {
			continue
		}
		if cached := l.Cache.Live(i, at); cached != nil && cached.UID == rec.UID {
			continue
		}
		live, err := l.readOwn(ctx, i, at, rec.UID)
		switch {
		case err != nil:
			l.fail(pipeline.Outcome{Downstream: i, Target: at}, err)
		case live == nil:
			l.record.forgetObject(rec.UID, l.now)
		default:
			l.unseen = append(l.unseen, pipeline.Owned{Downstream: i, Live: live, Certain: true})
		}
	}
}

// isTarget tells whether any downstream of the kind of downstream i is wanted at that place.
func (l *reconciliation) isTarget(i int, at pipeline.Ref) bool {
	gk := l.Pipeline.Downstreams[i].GVK().GroupKind()
	for j, w := range l.record.desired.Downstreams {
		if w.Wanted && w.Target == at && l.Pipeline.Downstreams[j].GVK().GroupKind() == gk {
			return true
		}
	}
	return false
}

// readOwn reads an object and returns it if it is the upstream's own, with that uid.
func (l *reconciliation) readOwn(ctx context.Context, i int, at pipeline.Ref, uid types.UID) (*drift.Live, error) {
	live, err := l.readLive(ctx, i, at)
	if live == nil || !l.isOwn(live, uid) {
		return nil, err
	}
	return live, nil
}

// isOwn tells whether an object is the upstream's: the one of that uid, which the status records, or any where uid is empty.
func (l *reconciliation) isOwn(live *drift.Live, uid types.UID) bool {
	if uid == "" {
		return pipeline.Applied(live, l.upstream.GetUID())
	}
	return live.UID == uid && pipeline.Marked(live, l.upstream.GetUID()) && (l.Pipeline.BelievesStatus() || pipeline.Applied(live, l.upstream.GetUID()))
}

// isOrphaned tells whether an object is the one that was recorded, and bears no mark any more since the garbage collector
// took its owner references off: the other marks are to follow.
func (l *reconciliation) isOrphaned(live *drift.Live, uid types.UID) bool {
	return live.UID == uid && l.Pipeline.Upstream.HasStatus && live.Managed && l.upstream.GetDeletionTimestamp() != nil &&
		l.cascade() == pipeline.CascadeOrphan && !l.record.knownGone(uid, l.now)
}

// readLive reads what stands at a place; nil where nothing does, be it since the kind is gone.
func (l *reconciliation) readLive(ctx context.Context, i int, at pipeline.Ref) (*drift.Live, error) {
	if k := l.Pipeline.Downstreams[i].Kind; k.Missing != nil {
		return nil, l.Host.Absent(ctx, k.GVK)
	}
	obj, err := l.client.Get(ctx, l.target(i, at))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return l.Pipeline.Downstreams[i].View.Live(obj)
}
