package memory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Upstream is the memory of one upstream. Only the worker that holds its key uses it, except for what is shared.
type Upstream struct {
	// UID is the uid of the upstream.
	UID types.UID
	// desired was rendered from the upstream at version; digest is of what rules and templates can read of it.
	desired *operator.Desired
	version string
	digest  canonical.Sum
	// cause is the digest of what others wrote to the upstream: if it changes, what failed is retried at once. Our own
	// writes do not change it, whatever the templates read.
	cause canonical.Sum
	// Retry is about requests for the upstream itself: its status, and its finalization when it is being deleted.
	Retry Rare[Retry]
	// Contests are about the writes to the upstream itself.
	Contests Rare[contests]
	items    map[int]*Items // by downstream
	// Before is about the deletion.before object.
	Before Rare[Before]
	Notes  Rare[Notes]
	Steps  steps

	shared
}

// steps say what was done for an upstream and is not done again. Only the worker that holds its key uses them.
type steps struct {
	// Reported is what events have said about the current state.
	Reported string
	// NewestSince is 1 + the number of the last handover when the upstream was read past a cache that may lag.
	NewestSince int32
	// IsExpensive: rendering needed a slot.
	IsExpensive bool
	// IsWithdrawn is true once the status has nothing of the previous field manager.
	IsWithdrawn bool
	// IsFinalized is true once the finalizer of a deleted upstream is removed. If the upstream is gone with it, the
	// response has the version from before, so that the cache, which still shows the finalizer, looks current.
	IsFinalized bool
	// WasReconciled is false before the first reconciliation.
	WasReconciled bool
}

// Inputs are the places of the inputs of the upstream at a version, and the digest of what was read of them.
type Inputs struct {
	Refs    []desired.InputRef
	Version string
	Digest  canonical.Sum
}

// Desired is the desired state that was rendered last; nil for none.
func (u *Upstream) Desired() *operator.Desired { return u.desired }

// SetDesired records a desired state with the digest of what it was rendered from, and orders what is remembered like
// its objects. It returns, for each of these, the index that it had before, -1 for none; nil if nothing has changed.
func (u *Upstream) SetDesired(w *operator.Desired, digest canonical.Sum) (from []int) {
	u.desired, u.digest = w, digest
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.align(w, func(left Witness) {
		n := u.Notes.Edit()
		n.Left = append(n.Left, left)
	})
}

// IsRenderedFrom reports whether the desired state was rendered from what has that digest.
func (u *Upstream) IsRenderedFrom(digest canonical.Sum) bool { return u.digest == digest }

// IsRendered reports whether the desired state is of the upstream at that version, with the inputs of that digest.
func (u *Upstream) IsRendered(version string, inputs canonical.Sum) bool {
	return u.version == version && u.inputs.Get().Digest == inputs
}

// SetRendered records that.
func (u *Upstream) SetRendered(version string, inputs canonical.Sum) {
	u.version = version
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inputs.Set(false, func(known *Inputs) { known.Digest = inputs })
}

// RenderAgain makes the next reconciliation render, whatever has changed.
func (u *Upstream) RenderAgain() { u.version, u.digest = "", canonical.Sum{} }

// RenderSlowAgain makes the next reconciliation render again what took too long.
func (u *Upstream) RenderSlowAgain(now time.Time) {
	if at := u.Notes.Get().RenderAgainAt; !at.IsZero() && !now.Before(at) {
		u.Notes.Edit().RenderAgainAt = time.Time{}
		u.RenderAgain()
	}
}

// Inputs are the inputs of the upstream, for any goroutine.
func (u *Upstream) Inputs() Inputs {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.inputs.Get()
}

// SetInputs records which inputs the upstream at a version has.
func (u *Upstream) SetInputs(refs []desired.InputRef, version string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := u.inputs.Edit()
	known.Refs, known.Version = refs, version
}

// Cause is the digest of what others wrote to the upstream: if it changes, what failed is retried at once.
func (u *Upstream) Cause() canonical.Sum { return u.cause }

// SetCause sets the cause: of is the digest of what others wrote to the upstream itself. What others have written into
// objects of ours that downstreams read counts, too.
func (u *Upstream) SetCause(of canonical.Sum) {
	reads := u.desired.Siblings
	if u.cause = of; len(reads) == 0 {
		u.Notes.Set(false, func(n *Notes) { n.siblings = nil })
		return
	}
	n := u.Notes.Edit()
	seen, causes := make(map[Place]siblingSeen, len(reads)), []any{string(of[:])}
	for _, read := range reads {
		at := Place{read.Downstream, read.At}
		now := siblingSeen{shown: read.Sum, written: u.lastWrite(at), cause: read.Sum}
		if before, ok := n.siblings[at]; ok && (before.shown == now.shown || before.written != now.written) {
			now.cause = before.cause
		}
		seen[at], causes = now, append(causes, string(now.cause[:]))
	}
	n.siblings = seen
	u.cause = canonical.Digest(causes)
}

// Request records the value of the annotation that requests a reconcile, and starts over if it is a new one: failures
// are retried at once, probes and dry runs are repeated, and a backoff from another writer ends.
func (u *Upstream) Request(value string) {
	if value == u.Notes.Get().requested {
		return
	}
	n := u.Notes.Edit()
	n.requested = value
	if value == "" { // taken away: that asks for nothing
		return
	}
	n.Refused, n.Slow = Refused{}, Retry{}
	u.Retry.Reset()
	u.Contests.Reset()
	u.items = nil
	for _, o := range u.list {
		o.startOver()
	}
}

// ConfirmCreated drops the places at which an object is shown, or known not to have been created.
func (u *Upstream) ConfirmCreated(shown func(Place) bool) {
	u.Notes.Set(false, func(n *Notes) { n.Unconfirmed = slices.DeleteFunc(n.Unconfirmed, shown) })
}

// Tidy drops what need not be remembered any more.
func (u *Upstream) Tidy(now time.Time) {
	if u.Notes.isSet() && u.Notes.part.isEmpty(now) {
		u.Notes.Reset()
	}
}

// SetUpstreamFailure sets the reason of a failed request for the upstream itself; empty for none.
func (u *Upstream) SetUpstreamFailure(reason string) {
	u.Notes.Set(reason != "", func(n *Notes) { n.UpstreamFailure = reason })
}

// AddUIDs adds the objects that are the upstream's own, or were until just now.
func (u *Upstream) AddUIDs(own map[types.UID]bool, now time.Time) {
	u.each(func(o *Object) { own[o.UID] = o.UID != "" })
	for uid, known := range u.Notes.Get().fates {
		own[uid] = now.Before(known.until)
	}
}

// Witnesses are the objects at no target, and those at a target.
func (u *Upstream) Witnesses() []Witness {
	list := u.Notes.Get().Left
	list = list[:len(list):len(list)]
	for _, o := range u.list {
		if o.UID != "" {
			list = append(list, Witness{Place{o.downstream, o.at}, o.UID, 0, false})
		}
	}
	return list
}

// WroteUpstream keeps what a write to the upstream returned until the cache has caught up with it. Its event needs no
// work if the desired state is current, that is rendered from it.
func (u *Upstream) WroteUpstream(own *unstructured.Unstructured, isDesiredCurrent bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.own, u.isDesiredCurrent = own, isDesiredCurrent
}

// WrittenUpstream is what our last write to the upstream returned, until its event has come. Call it before reading the
// cache: the object is in the cache before IsEcho forgets it.
func (u *Upstream) WrittenUpstream() *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.own
}

// IsEcho reports whether an event of the upstream is about what our own write returned. It is in the cache then, so the
// response is dropped.
func (u *Upstream) IsEcho(uid types.UID, version string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.own == nil || u.UID != uid || Newer(u.own.GetResourceVersion(), version) {
		return false
	}
	same := u.own.GetResourceVersion() == version
	u.own = nil
	return same && u.isDesiredCurrent
}
