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
func (s *Reconciler) Reconcile(ctx context.Context, ref pipeline.Ref) time.Duration {
	if err := s.releaseOrphanedBefore(ctx, ref); err != nil {
		return s.readFailed(ref, err)
	}
	l, err := s.begin(ctx, ref)
	if err != nil {
		return s.readFailed(ref, err)
	}
	s.memory.found(ref)
	if l == nil {
		s.Host.CountBatched(ref, Counted{}, drift.Sum{}, true)
		return 0
	}
	defer l.releaseSlot()
	if l.noSlot {
		return noSlotDelay()
	}
	l.begun = true
	defer func() { l.record.desired.Forget() }()
	if l.upstream.GetDeletionTimestamp() != nil {
		s.Host.CountBatched(ref, Counted{}, drift.Sum{}, true)
		return l.finalize(ctx)
	}
	if s.Pipeline.OnlyDeletes {
		return l.awaitDeletion()
	}
	// What is made for an upstream that is gone, and that the watch still shows, goes with it: as often as it is made.
	if wait := l.record.goneFor(l.upstream.GetUID(), l.now); wait > 0 {
		return wait
	}
	l.skipBackingOff()
	l.findUnseen(ctx)
	var decision pipeline.Decision
	for round := range maxRounds {
		in := l.gather(ctx)
		decision = s.Pipeline.Decide(in)
		if round == 0 && l.heldByGuard(ctx, decision) {
			return 0
		}
		if !decision.Pending() {
			break
		}
		if after, err := l.ensureLatest(ctx, &decision); err != nil {
			return s.readFailed(ref, err)
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

// awaitDeletion is when a session that only deletes looks again at an upstream that is not being deleted: when its watch tells, or
// now and then where it lacks the label that the watch selects by.
func (l *reconciliation) awaitDeletion() time.Duration {
	if l.Cache.UpstreamUID(l.ref) != "" {
		return 0
	}
	return l.delay(&l.record.waiting)
}

// begin finds the upstream and what is remembered of it. It returns nil where there is nothing to do.
func (s *Reconciler) begin(ctx context.Context, ref pipeline.Ref) (begun *reconciliation, err error) {
	ahead := s.memory.peek(ref).ahead()
	cached, err := s.Cache.Upstream(ref)
	if err != nil {
		return nil, err
	}
	if cached == nil {
		return s.vanished(ctx, ref)
	}
	if s.isOwnDownstream(cached) {
		return nil, nil
	}
	l := s.newReconciliation(ref, cached)
	defer func() {
		if begun == nil {
			l.releaseSlot()
		}
	}()
	l.selected = s.namespaceSelected(ref.Namespace)
	s.deselected.forget(ref)
	if ahead != nil && ahead.GetUID() == cached.GetUID() && Newer(ahead.GetResourceVersion(), cached.GetResourceVersion()) {
		l.upstream = ahead
	} else {
		l.record.isEcho(cached.GetUID(), cached.GetResourceVersion()) // the cache has caught up
	}
	if l.updateDesired(ctx); l.noSlot {
		return l, nil
	}
	l.handleReconcileRequest()
	if !l.selected && (l.hasNothing() || l.isLeftOver() && !s.ReportsLeftovers) {
		l.noteShared()
		s.forget(ref)
		return nil, nil
	}
	if l.selected {
		s.shared.forget(s.Name, ref.String())
	}
	return l, nil
}

// hasNothing tells whether nothing has to be taken back of an upstream that is not selected.
func (l *reconciliation) hasNothing() bool {
	return !l.hasFinalizer() && len(l.owned()) == 0 && !l.Pipeline.SpeaksFor(l.upstream)
}

func (s *Reconciler) newReconciliation(ref pipeline.Ref, up *unstructured.Unstructured) *reconciliation {
	if r := s.memory.peek(ref); r != nil && r.uid != up.GetUID() {
		s.forget(ref) // the one before was deleted between two reconciliations
	}
	l := &reconciliation{Reconciler: s, client: s.Client, ref: ref, upstream: up, now: time.Now(), failures: map[int]*pipeline.Failure{}, held: map[int]bool{},
		record: s.memory.record(ref, up.GetUID(), len(s.Pipeline.Downstreams)), begun: s.Counting.Load()}
	l.record.forgetSlow(l.now)
	return l
}

// skipBackingOff keeps this reconciliation from trying again what failed and still waits. Everything else goes on.
func (l *reconciliation) skipBackingOff() {
	for i := range l.record.targets {
		t := &l.record.targets[i]
		if t.failure != nil && t.retry.wait(l.record.asked, l.now) > 0 {
			l.failures[i], l.held[i] = t.failure, true
		}
	}
}

// vanished is about an upstream that is not in the cache. Where the config selects by its labels it may stand all the
// same, without them: only reading it tells, and then its downstreams are unwanted. One that has them (again) is on its
// way into the cache. Marks can name any namespace; what is not watched is somebody else's.
func (s *Reconciler) vanished(ctx context.Context, ref pipeline.Ref) (*reconciliation, error) {
	if s.Pipeline.Config.Watch.LabelSelector == nil || !s.Cache.Watches(ref.Namespace) {
		s.forget(ref)
		return nil, nil
	}
	up, err := s.Client.Get(ctx, s.UpstreamTarget(ref))
	switch {
	case errors.Is(err, apply.ErrGone):
		s.cascades.forget(s.deselected.forget(ref))
		s.shared.forget(s.Name, ref.String())
		s.forget(ref)
		return nil, nil
	case err != nil:
		return nil, err
	case s.Selector.Matches(labelsOf(up)):
		s.deselected.forget(ref)
		s.forget(ref)
		return nil, nil
	}
	l := s.newReconciliation(ref, up)
	if l.hasNothing() {
		s.deselected.forget(ref)
	}
	if l.hasNothing() || l.isLeftOver() && !s.ReportsLeftovers || s.isOwnDownstream(up) {
		l.noteShared()
		s.forget(ref)
		return nil, nil
	}
	l.updateDesired(ctx) // a deletion may read the inputs, with deletion.before
	return l, nil
}

func (s *Reconciler) forget(ref pipeline.Ref) {
	if r := s.memory.peek(ref); r != nil {
		s.countStates(r, nil)
		s.countVerdict(r, status.Verdict{})
		s.countBefore(r, "")
		s.readers.move(ref, r.inputs, nil)
		s.cascades.forget(r.uid)
		s.unstorable.forget(ref)
		s.memory.forget(ref)
	}
}

// readFailed is for the read that begin needed and did not get.
func (s *Reconciler) readFailed(ref pipeline.Ref, err error) time.Duration {
	f := apply.Classify(err)
	CountFailure(s.Name, "", f.Reason)
	s.Log.Info("reading the upstream failed", "upstream", ref.String(), "reason", f.Reason, "message", f.Message)
	retry := s.Pipeline.Config.Retry
	return s.memory.missed(ref).fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), f.RetryAfter, drift.Sum{}, time.Now())
}

func (s *Reconciler) namespaceSelected(namespace string) bool {
	if s.NamespaceSelector == nil || namespace == "" {
		return true
	}
	set, ok := s.Cache.NamespaceLabels(namespace)
	return ok && s.NamespaceSelector.Matches(set)
}

// isOwnDownstream tells whether an object of the watched kind was made by this very operator: a copy is not copied.
func (s *Reconciler) isOwnDownstream(up *unstructured.Unstructured) bool {
	before := s.Pipeline.Before
	same := before != nil && before.Object.GVK().GroupKind() == s.Pipeline.Upstream.GVK.GroupKind()
	for _, d := range s.Pipeline.Downstreams {
		same = same || d.GVK().GroupKind() == s.Pipeline.Upstream.GVK.GroupKind()
	}
	if !same {
		return false
	}
	if s.Pipeline.HasOwnerMark(up) {
		return true
	}
	if !s.Pipeline.HasHash(up) && !s.bearsLabels(up) {
		return false
	}
	for _, ref := range up.GetOwnerReferences() {
		if ref.Kind == s.Pipeline.Upstream.GVK.Kind && groupOf(ref.APIVersion) == s.Pipeline.Upstream.GVK.Group {
			return true
		}
	}
	return false
}

// bearsLabels tells whether an object has the constant labels of a downstream: one of these two marks may be stripped
// for a moment.
func (s *Reconciler) bearsLabels(up *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.Pipeline.Downstreams, func(d *pipeline.Downstream) bool {
		return len(d.Selector) > 0 && d.Selector.AsSelector().Matches(labelsOf(up))
	})
}

// desired makes what the upstream asks for, or remembers it where nothing that rules and templates can read has changed.
func (l *reconciliation) updateDesired(ctx context.Context) {
	r := l.record
	l.findInputs(ctx)
	if r.large && l.acquireSlot() != nil {
		return
	}
	if r.desired != nil && r.version == l.upstream.GetResourceVersion() && r.inputsSaid == l.read {
		return
	}
	digest := l.question(l.Pipeline.ReadsStatus())
	if r.asked = digest; l.Pipeline.ReadsOwn() {
		r.asked = l.askedByOthers()
	}
	if r.desired == nil || r.digest != digest {
		r.large = false
		r.desired, r.digest = l.Pipeline.Desired(ctx, l.upstream, l.inputsRead()), digest
		countRender(l.Name)
	}
	if tookTooLong(r.desired) && r.slowUntil.IsZero() {
		r.slowUntil = l.now.Add(time.Duration(l.Pipeline.Config.Retry.MinDelay))
	}
	if ctx.Err() != nil || l.noSlot { // an evaluation that was cut short says nothing about the upstream
		r.digest, r.version = drift.Sum{}, ""
		return
	}
	r.version, r.inputsSaid = l.upstream.GetResourceVersion(), l.read
}

// question is the digest of everything that rules and templates can read.
func (l *reconciliation) question(status bool) drift.Sum {
	var read any
	if status {
		read = l.upstream.Object["status"]
	}
	digest := l.digest(read)
	if len(l.Pipeline.Inputs) == 0 {
		return digest
	}
	return drift.Digest([]any{string(digest[:]), string(l.read[:])})
}

// digest is over what rules and templates can read: all but the bookkeeping of the API server, with that status; nil where it
// is not read. Where the status is a field like any other, writing it makes a generation, which then says nothing.
func (l *reconciliation) digest(status any) drift.Sum {
	readable := make(map[string]any, len(l.upstream.Object))
	for key, value := range l.upstream.Object {
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
			if key != "resourceVersion" && key != "managedFields" && (key != "generation" || l.Pipeline.Upstream.HasStatus) {
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
