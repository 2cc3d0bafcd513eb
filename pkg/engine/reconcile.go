package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// maxRounds bounds how often one look decides again after acting. A create, the answer to a probe, a repair and what
// they leave over fit in; whatever does not is done at the next event.
const maxRounds = 5

// look is one reconcile of one upstream.
type look struct {
	*session
	// client makes the requests of this look: the session's own, but for a survey, which writes nothing.
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
	// believed is until when an answer is believed of an object that the cache does not show; zero where none is.
	believed time.Time
	// spaced is how long the status waits, since what was written to it did not settle; contestedBy says why.
	spaced      time.Duration
	contestedBy string
	// found are the inputs as the caches had them when the wish was made, nil for a missing one; read is the digest of what
	// they say, unpacked what templates get to see, once somebody asks.
	found    []*input
	read     drift.Sum
	unpacked *pipeline.Inputs
	// unwatched is true where the watch does not show the object of deletion.before.
	unwatched bool
	// toldBefore is the state of deletion.before that the status had when this look began.
	toldBefore string
	// finalized is true once the finalizer is off.
	finalized bool
	// placed: the look holds one of the places for upstreams that need much; crowded: it found none. begun is true once a
	// look that has found none would lose what it did.
	placed, crowded, begun bool
}

// reconcile looks at one upstream: get, finalize if it is being deleted, gather, decide, act, report. It returns after
// how long to look again; zero means when something changes.
func (s *session) reconcile(ctx context.Context, ref pipeline.Ref) time.Duration {
	if err := s.freeStrays(ctx, ref); err != nil {
		return s.failedLook(ref, err)
	}
	l, err := s.begin(ctx, ref)
	if err != nil {
		return s.failedLook(ref, err)
	}
	s.memory.found(ref)
	if l == nil {
		s.batch.note(ref, counted{}, drift.Sum{}, true)
		return 0
	}
	defer l.leave()
	if l.crowded {
		return crowdedFor()
	}
	l.begun = true
	defer func() { l.record.wish.Forget() }()
	if l.upstream.GetDeletionTimestamp() != nil {
		s.batch.note(ref, counted{}, drift.Sum{}, true)
		return l.finalize(ctx)
	}
	if s.pipeline.OnlyDeletes {
		return 0
	}
	// What is made for an upstream that is gone, and that the watch still shows, goes with it: as often as it is made.
	if wait := l.record.goneFor(l.upstream.GetUID(), l.now); wait > 0 {
		return wait
	}
	l.holdBack()
	l.findUnseen(ctx)
	var decision pipeline.Decision
	for round := range maxRounds {
		in := l.gather(ctx)
		decision = s.pipeline.Decide(in)
		if round == 0 && l.heldByGuard(ctx, decision) {
			return 0
		}
		if !decision.Pending() {
			break
		}
		if after, err := l.outdated(ctx, &decision); err != nil {
			return s.failedLook(ref, err)
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

// begin finds the upstream and what is remembered of it. It returns nil where there is nothing to do.
func (s *session) begin(ctx context.Context, ref pipeline.Ref) (begun *look, err error) {
	ahead := s.memory.peek(ref).ahead()
	cached, err := s.upstreams.upstream(ref)
	if err != nil {
		return nil, err
	}
	if cached == nil {
		return s.vanished(ctx, ref)
	}
	if s.isOwnDownstream(cached) {
		return nil, nil
	}
	l := s.newLook(ref, cached)
	defer func() {
		if begun == nil {
			l.leave()
		}
	}()
	l.selected = s.namespaceSelected(ref.Namespace)
	s.leaving.forget(ref)
	if ahead != nil && ahead.GetUID() == cached.GetUID() && newer(ahead.GetResourceVersion(), cached.GetResourceVersion()) {
		l.upstream = ahead
	} else {
		l.record.isEcho(cached.GetUID(), cached.GetResourceVersion()) // the cache has caught up
	}
	if l.wish(ctx); l.crowded {
		return l, nil
	}
	l.heed()
	if !l.selected && (l.hasNothing() || l.isLeftOver() && !s.tells) {
		l.noteShared()
		s.forget(ref)
		return nil, nil
	}
	if l.selected {
		s.shared.forget(s.name, ref.String())
	}
	return l, nil
}

// hasNothing tells whether nothing has to be taken back of an upstream that is not selected.
func (l *look) hasNothing() bool {
	return !l.hasFinalizer() && len(l.owned()) == 0 && !l.pipeline.SpeaksFor(l.upstream)
}

func (s *session) newLook(ref pipeline.Ref, up *unstructured.Unstructured) *look {
	if r := s.memory.peek(ref); r != nil && r.uid != up.GetUID() {
		s.forget(ref) // the one before was deleted between two looks
	}
	l := &look{session: s, client: s.client, ref: ref, upstream: up, now: time.Now(), failures: map[int]*pipeline.Failure{}, held: map[int]bool{},
		record: s.memory.record(ref, up.GetUID(), len(s.pipeline.Downstreams)), begun: s.counting.Load()}
	l.record.forgetSlow(l.now)
	return l
}

// holdBack keeps this look from trying again what failed and still waits. Everything else goes on.
func (l *look) holdBack() {
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
func (s *session) vanished(ctx context.Context, ref pipeline.Ref) (*look, error) {
	if s.pipeline.Config.Watch.LabelSelector == nil || !s.upstreams.watch(ref.Namespace) {
		s.forget(ref)
		return nil, nil
	}
	up, err := s.client.Get(ctx, s.upstreamTarget(ref))
	switch {
	case errors.Is(err, apply.ErrGone):
		s.leaving.forget(ref)
		s.shared.forget(s.name, ref.String())
		s.forget(ref)
		return nil, nil
	case err != nil:
		return nil, err
	case s.selector.Matches(labelsOf(up)):
		s.leaving.forget(ref)
		s.forget(ref)
		return nil, nil
	}
	l := s.newLook(ref, up)
	if l.hasNothing() || l.isLeftOver() && !s.tells || s.isOwnDownstream(up) {
		l.noteShared()
		s.forget(ref)
		return nil, nil
	}
	l.wish(ctx) // a deletion may read the inputs, with deletion.before
	return l, nil
}

func (s *session) forget(ref pipeline.Ref) {
	if r := s.memory.peek(ref); r != nil {
		s.countStates(r, nil)
		s.countVerdict(r, status.Verdict{})
		s.countHook(r, "")
		s.readers.move(ref, r.inputs, nil)
		s.cascades.forget(r.uid)
		s.unstorable.forget(ref)
		s.memory.forget(ref)
	}
}

// failedLook is for the read that begin needed and did not get.
func (s *session) failedLook(ref pipeline.Ref, err error) time.Duration {
	f := apply.Classify(err)
	countFailure(s.name, "", f.Reason)
	s.log.Info("reading the upstream failed", "upstream", ref.String(), "reason", f.Reason, "message", f.Message)
	retry := s.pipeline.Config.Retry
	return s.memory.missed(ref).fail(time.Duration(retry.MinDelay), time.Duration(retry.MaxDelay), f.RetryAfter, drift.Sum{}, time.Now())
}

func (s *session) namespaceSelected(namespace string) bool {
	if s.nsSelector == nil || namespace == "" {
		return true
	}
	ns := s.namespaces.namespace(namespace)
	return ns != nil && s.nsSelector.Matches(labelsOf(ns))
}

// isOwnDownstream tells whether an object of the watched kind was made by this very operator: a copy is not copied.
func (s *session) isOwnDownstream(up *unstructured.Unstructured) bool {
	hook := s.pipeline.Hook
	same := hook != nil && hook.Object.GVK().GroupKind() == s.pipeline.Upstream.GVK.GroupKind()
	for _, d := range s.pipeline.Downstreams {
		same = same || d.GVK().GroupKind() == s.pipeline.Upstream.GVK.GroupKind()
	}
	if !same {
		return false
	}
	if s.pipeline.BearsOwner(up) {
		return true
	}
	if !s.pipeline.BearsHash(up) && !s.bearsLabels(up) {
		return false
	}
	for _, ref := range up.GetOwnerReferences() {
		if ref.Kind == s.pipeline.Upstream.GVK.Kind && groupOf(ref.APIVersion) == s.pipeline.Upstream.GVK.Group {
			return true
		}
	}
	return false
}

// bearsLabels tells whether an object has the constant labels of a downstream: one of these two marks may be stripped
// for a moment.
func (s *session) bearsLabels(up *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.pipeline.Downstreams, func(d *pipeline.Downstream) bool {
		return len(d.Selector) > 0 && d.Selector.AsSelector().Matches(labelsOf(up))
	})
}

// wish makes what the upstream asks for, or remembers it where nothing that rules and templates can read has changed.
func (l *look) wish(ctx context.Context) {
	r := l.record
	l.findInputs(ctx)
	if r.large && l.larger() != nil {
		return
	}
	if r.wish != nil && r.version == l.upstream.GetResourceVersion() && r.inputsSaid == l.read {
		return
	}
	digest := l.question(l.pipeline.ReadsStatus())
	if r.asked = digest; l.pipeline.ReadsOwn() {
		r.asked = l.askedByOthers()
	}
	if r.wish == nil || r.digest != digest {
		r.large = false
		r.wish, r.digest = l.pipeline.Wish(ctx, l.upstream, l.inputsRead()), digest
		countRender(l.name)
	}
	if tookTooLong(r.wish) && r.slowUntil.IsZero() {
		r.slowUntil = l.now.Add(time.Duration(l.pipeline.Config.Retry.MinDelay))
	}
	if ctx.Err() != nil || l.crowded { // an evaluation that was cut short says nothing about the upstream
		r.digest, r.version = drift.Sum{}, ""
		return
	}
	r.version, r.inputsSaid = l.upstream.GetResourceVersion(), l.read
}

// question is the digest of everything that rules and templates can read.
func (l *look) question(status bool) drift.Sum {
	var read any
	if status {
		read = l.upstream.Object["status"]
	}
	digest := l.digest(read)
	if len(l.pipeline.Inputs) == 0 {
		return digest
	}
	return drift.Digest([]any{string(digest[:]), string(l.read[:])})
}

// digest is over what rules and templates can read: all but the bookkeeping of the API server, with that status; nil where it
// is not read. Where the status is a field like any other, writing it makes a generation, which then says nothing.
func (l *look) digest(status any) drift.Sum {
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
			if key != "resourceVersion" && key != "managedFields" && (key != "generation" || l.pipeline.Upstream.HasStatus) {
				kept[key] = value
			}
		}
		readable["metadata"] = kept
	}
	return drift.Digest(readable)
}
