package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// maxRounds bounds how often one reconciliation decides again after acting. A create, the answer to a probe, a repair and what
// they leave over fit in; whatever does not is done at the next event.
const maxRounds = 5

// reconciliation is one reconcile of one upstream.
type reconciliation struct {
	*Reconciler
	// client makes the requests of this reconciliation: the session's own, but for a survey, which writes nothing.
	client   *apply.Client
	ref      pipeline.Ref
	upstream *unstructured.Unstructured
	record   *record
	selected bool
	now      time.Time
	// failures are by downstream; held marks those that failed before and still wait.
	failures map[int]*pipeline.Failure
	held     map[int]bool
	// unseen are objects of ours that were read and that the cache does not show.
	unseen []pipeline.Owned
	// upstreamFailed is true where a request about the upstream itself failed.
	upstreamFailed bool
	// atLeast is the longest wait that an answer of the API server asked for.
	atLeast time.Duration
	// trustedUntil is until when an answer is believed of an object that the cache does not show; zero where none is.
	trustedUntil time.Time
	// spaced is how long the status waits, since what was written to it did not settle; contestedBy says why.
	spaced      time.Duration
	contestedBy string
	// found are the inputs as the caches had them when the desired state was made, nil for a missing one; read is the digest of what
	// they say, unpacked what templates get to see, once somebody asks.
	found    []Input
	read     drift.Sum
	unpacked *pipeline.Inputs
	// unwatched is true where the watch does not show the object of deletion.before.
	unwatched bool
	// reportedBefore is the state of deletion.before that the status had when this reconciliation began.
	reportedBefore string
	// finalized is true once the finalizer is off.
	finalized bool
	// hasSlot: the reconciliation holds one of the render slots for upstreams that need much; noSlot: it found none. begun is true once a
	// look that has found none would lose what it did.
	hasSlot, noSlot, begun bool
}

// Reconcile looks at one upstream: get, finalize if it is being deleted, gather, decide, act, report. It returns after
// how long to look again; zero means when something changes.
func (r *Reconciler) Reconcile(ctx context.Context, ref pipeline.Ref) time.Duration {
	if err := r.releaseOrphanedBefore(ctx, ref); err != nil {
		return r.readFailed(ref, err)
	}
	l, err := r.begin(ctx, ref)
	if err != nil {
		return r.readFailed(ref, err)
	}
	r.memory.found(ref)
	if l == nil {
		r.Host.CountBatched(ref, Counted{}, drift.Sum{}, true)
		return 0
	}
	defer l.releaseSlot()
	if l.noSlot {
		return noSlotDelay()
	}
	l.begun = true
	defer func() { l.record.desired.Forget() }()
	if l.upstream.GetDeletionTimestamp() != nil {
		r.Host.CountBatched(ref, Counted{}, drift.Sum{}, true)
		return l.finalize(ctx)
	}
	if r.Pipeline.OnlyDeletes {
		return l.awaitDeletion()
	}
	// What is made for an upstream that is gone, and that the watch still shows, goes with it: as often as it is made.
	if wait := l.record.goneFor(l.upstream.GetUID(), l.now); wait > 0 {
		return wait
	}
	l.skipBackingOff()
	var decision pipeline.Decision
	for round := range maxRounds {
		in := l.gatherAll(ctx)
		decision = r.Pipeline.Decide(in)
		l.observed(func(o Observer) { o.Decided(in, decision) })
		if round == 0 && l.heldByGuard(ctx, decision) {
			return 0
		}
		if !decision.Pending() {
			break
		}
		if after, err := l.ensureLatest(ctx, &decision); err != nil {
			return r.readFailed(ref, err)
		} else if after > 0 {
			return after
		}
		if !l.selected { // first: nothing finds it again once its downstreams are gone
			l.writeUnselected(ctx, decision)
		}
		if !l.act(ctx, &decision, in) {
			break
		}
	}
	return l.finish(ctx, decision)
}

// gatherAll gathers what the cache shows and what it does not show. It does so in each round: what the cache has just lost must not be
// missing in the status before it is gone.
func (r *reconciliation) gatherAll(ctx context.Context) pipeline.Input {
	in := r.gather(ctx)
	if r.findUnseen(ctx) {
		in = r.gather(ctx)
	}
	return in
}

// awaitDeletion is when a session that only deletes looks again at an upstream that is not being deleted: when its watch tells, or
// now and then where it lacks the label that the watch selects by.
func (r *reconciliation) awaitDeletion() time.Duration {
	if r.Cache.UpstreamUID(r.ref) != "" {
		return 0
	}
	return r.delay(&r.record.waiting)
}

// begin finds the upstream and what is remembered of it. It returns nil where there is nothing to do.
func (r *Reconciler) begin(ctx context.Context, ref pipeline.Ref) (begun *reconciliation, err error) {
	ahead := r.memory.peek(ref).ahead()
	cached, err := r.Cache.Upstream(ref)
	if err != nil {
		return nil, err
	}
	if cached == nil {
		return r.beginUncached(ctx, ref)
	}
	if r.isOwnDownstream(cached) {
		return nil, nil
	}
	l := r.newReconciliation(ref, cached)
	defer func() {
		if begun == nil {
			l.releaseSlot()
		}
	}()
	l.selected = r.namespaceSelected(ref.Namespace)
	r.deselected.forget(ref)
	if ahead != nil && ahead.GetUID() == cached.GetUID() && Newer(ahead.GetResourceVersion(), cached.GetResourceVersion()) {
		l.upstream = ahead
	} else {
		l.record.isEcho(cached.GetUID(), cached.GetResourceVersion()) // the cache has caught up
	}
	if l.updateDesired(ctx); l.noSlot {
		return l, nil
	}
	l.handleReconcileRequest()
	if !l.selected && (l.hasNothing() || l.isLeftOver() && !r.ReportsLeftovers) {
		l.noteShared()
		r.forget(ref)
		return nil, nil
	}
	if l.selected {
		r.shared.forget(r.Name, ref.String())
	}
	return l, nil
}

// hasNothing tells whether nothing has to be taken back of an upstream that is not selected.
func (r *reconciliation) hasNothing() bool {
	return !r.hasFinalizer() && len(r.owned()) == 0 && !r.Pipeline.SaysItIsKept(r.upstream)
}

func (r *Reconciler) newReconciliation(ref pipeline.Ref, up *unstructured.Unstructured) *reconciliation {
	if rec := r.memory.peek(ref); rec != nil && rec.uid != up.GetUID() {
		r.forget(ref) // the one before was deleted between two reconciliations
	}
	l := &reconciliation{Reconciler: r, client: r.Client, ref: ref, upstream: up, now: r.time(), failures: map[int]*pipeline.Failure{}, held: map[int]bool{},
		record: r.memory.record(ref, up.GetUID(), len(r.Pipeline.Downstreams)), begun: r.Counting.Load()}
	l.record.forgetSlow(l.now)
	return l
}

// skipBackingOff keeps this reconciliation from trying again what failed and still waits. Everything else goes on.
func (r *reconciliation) skipBackingOff() {
	for i := range r.record.targets {
		t := &r.record.targets[i]
		if t.failure != nil && t.retry.wait(r.record.externalDigest, r.now) > 0 {
			r.failures[i], r.held[i] = t.failure, true
		}
	}
}

// beginUncached is about an upstream that is not in the cache. Where the config selects by its labels it may stand all the
// same, without them: only reading it tells, and then its downstreams are unwanted. One that has them (again) is on its
// way into the cache. Marks can name any namespace; what is not watched is somebody else's.
func (r *Reconciler) beginUncached(ctx context.Context, ref pipeline.Ref) (*reconciliation, error) {
	if r.Pipeline.Config.Watch.LabelSelector == nil || !r.Cache.Watches(ref.Namespace) {
		r.forget(ref)
		return nil, nil
	}
	up, err := r.Client.Get(ctx, r.UpstreamTarget(ref))
	switch {
	case errors.Is(err, apply.ErrGone):
		r.cascades.forget(r.deselected.forget(ref))
		r.shared.forget(r.Name, ref.String())
		r.forget(ref)
		return nil, nil
	case err != nil:
		return nil, err
	case r.Selector.Matches(labelsOf(up)):
		r.deselected.forget(ref)
		r.forget(ref)
		return nil, nil
	}
	l := r.newReconciliation(ref, up)
	if l.hasNothing() {
		r.deselected.forget(ref)
	}
	if l.hasNothing() || l.isLeftOver() && !r.ReportsLeftovers || r.isOwnDownstream(up) {
		l.noteShared()
		r.forget(ref)
		return nil, nil
	}
	l.updateDesired(ctx) // a deletion may read the inputs, with deletion.before
	return l, nil
}

func (r *Reconciler) forget(ref pipeline.Ref) {
	if rec := r.memory.peek(ref); rec != nil {
		r.countStates(rec, nil)
		r.countVerdict(rec, status.Verdict{})
		r.countBefore(rec, "")
		r.readers.move(ref, rec.inputs, nil)
		r.cascades.forget(rec.uid)
		r.unstorable.forget(ref)
		r.memory.forget(ref)
	}
}

// readFailed is for the read that begin needed and did not get.
func (r *Reconciler) readFailed(ref pipeline.Ref, err error) time.Duration {
	f := apply.Classify(err)
	CountFailure(r.Name, "", f.Reason)
	r.Log.Info("reading the upstream failed", "upstream", ref.String(), "reason", f.Reason, "message", f.Message)
	retry := r.Pipeline.Config.Retry
	return r.memory.missed(ref).fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), f.RetryAfter, drift.Sum{}, r.time())
}

func (r *Reconciler) namespaceSelected(namespace string) bool {
	if r.NamespaceSelector == nil || namespace == "" {
		return true
	}
	set, ok := r.Cache.NamespaceLabels(namespace)
	return ok && r.NamespaceSelector.Matches(set)
}

// isOwnDownstream tells whether an object of the watched kind was made by this very operator: a copy is not copied.
func (r *Reconciler) isOwnDownstream(up *unstructured.Unstructured) bool {
	before := r.Pipeline.Before
	same := before != nil && before.Object.GVK().GroupKind() == r.Pipeline.Upstream.GVK.GroupKind()
	for _, d := range r.Pipeline.Downstreams {
		same = same || d.GVK().GroupKind() == r.Pipeline.Upstream.GVK.GroupKind()
	}
	if !same {
		return false
	}
	if r.Pipeline.HasOwnerMark(up) {
		return true
	}
	if !r.Pipeline.HasHash(up) && !r.hasOurLabels(up) {
		return false
	}
	for _, ref := range up.GetOwnerReferences() {
		if ref.Kind == r.Pipeline.Upstream.GVK.Kind && groupOf(ref.APIVersion) == r.Pipeline.Upstream.GVK.Group {
			return true
		}
	}
	return false
}

// hasOurLabels tells whether an object has the constant labels of a downstream: one of these two marks may be stripped
// for a moment.
func (r *Reconciler) hasOurLabels(up *unstructured.Unstructured) bool {
	return slices.ContainsFunc(r.Pipeline.Downstreams, func(d *pipeline.Downstream) bool {
		return len(d.Selector) > 0 && d.Selector.AsSelector().Matches(labelsOf(up))
	})
}

// updateDesired renders the desired state, unless nothing that rules and templates can read has changed.
func (r *reconciliation) updateDesired(ctx context.Context) {
	rec := r.record
	r.findInputs(ctx)
	if rec.large && r.acquireSlot() != nil {
		return
	}
	if rec.desired != nil && rec.version == r.upstream.GetResourceVersion() && rec.inputsSaid == r.read {
		return
	}
	digest := r.question(r.Pipeline.ReadsStatus())
	if rec.externalDigest = digest; r.Pipeline.ReadsOwn() {
		rec.externalDigest = r.askedByOthers()
	}
	if rec.desired == nil || rec.digest != digest {
		rec.large = false
		rec.desired, rec.digest = r.Pipeline.Desired(ctx, r.upstream, r.inputsRead()), digest
		countRender(r.Name)
	}
	if tookTooLong(rec.desired) && rec.slowUntil.IsZero() {
		rec.slowUntil = r.now.Add(time.Duration(r.Pipeline.Config.Retry.MinDelay))
	}
	if ctx.Err() != nil || r.noSlot { // an evaluation that was cut short says nothing about the upstream
		rec.digest, rec.version = drift.Sum{}, ""
		return
	}
	rec.version, rec.inputsSaid = r.upstream.GetResourceVersion(), r.read
}

// question is the digest of everything that rules and templates can read.
func (r *reconciliation) question(status bool) drift.Sum {
	var read any
	if status {
		read = r.upstream.Object["status"]
	}
	digest := r.digest(read)
	if len(r.Pipeline.Inputs) == 0 {
		return digest
	}
	return drift.Digest([]any{string(digest[:]), string(r.read[:])})
}

// digest is over what rules and templates can read: all but the bookkeeping of the API server, with that status; nil where it
// is not read. Where the status is a field like any other, writing it makes a generation, which then says nothing.
func (r *reconciliation) digest(status any) drift.Sum {
	readable := make(map[string]any, len(r.upstream.Object))
	for key, value := range r.upstream.Object {
		if key != "status" {
			readable[key] = value
		}
	}
	if status != nil {
		readable["status"] = status
	}
	if meta, ok := readable["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(meta))
		for key, value := range meta {
			if key != "resourceVersion" && key != "managedFields" && (key != "generation" || r.Pipeline.Upstream.HasStatus) {
				kept[key] = value
			}
		}
		readable["metadata"] = kept
	}
	return drift.Digest(readable)
}

func groupOf(apiVersion string) string {
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.Group
}
