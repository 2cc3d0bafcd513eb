package reconcile

import (
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/status"
)

// memory is what one operator remembers about upstreams between two reconciliations. It saves requests and reconciles, and is not needed
// for correctness: it is lost at a restart.
type memory struct {
	mu      sync.Mutex
	records map[operator.Ref]*record
	// misses delay reads of upstreams that failed.
	misses map[operator.Ref]*retryState
}

// record is the memory of one upstream. Only the worker that holds its key uses it, except for what mu guards.
type record struct {
	uid types.UID
	// desired was rendered from the upstream at version; digest is of what rules and templates can read of it.
	desired *operator.Desired
	version string
	digest  canonical.Sum
	// externalDigest is the digest of what others wrote to the upstream: if it changes, what failed is retried at once. Our own
	// writes do not change it, whatever the templates read.
	externalDigest canonical.Sum
	// inputs are those that rules and templates read; setInputs changes them, with mu held, since a watch may forget the upstream.
	inputs rare[inputsMemory]
	// objects are those of the desired state; align replaces them with mu held.
	objects []*objectMemory
	// items are by downstream.
	items map[int]*itemsMemory
	// retry is about requests for the upstream itself: its status, and its finalization when it is being deleted.
	retry rare[retryState]
	// contests are about the writes to the upstream itself.
	contests rare[upstreamContests]
	// states and verdict are as they were counted; the zero handle is none. mu guards them.
	states  []countedState
	verdict unique.Handle[status.Verdict]
	// reported is what events have said about the current state.
	reported string
	// before is about the deletion.before object.
	before  rare[beforeMemory]
	unusual rare[unusual]
	// changes counts how often objects changed.
	changes int32
	// isExpensive: rendering needed a slot; see slots.go.
	isExpensive bool
	// withdrawn is true once the status has nothing of the previous field manager.
	withdrawn bool
	// finalized is true once the finalizer of a deleted upstream is removed. If the upstream is gone with it, the response has
	// the version from before, so that the cache, which still shows the finalizer, looks current.
	finalized bool
	// wasReconciled is false before the first reconciliation.
	wasReconciled bool
	// newestSince is 1 + the number of the last handover when the upstream was read past a cache that may lag: see handover.
	newestSince int32

	// forgotten is true once the upstream is not counted any more in the metrics. mu guards it and what was counted.
	forgotten bool
	// isDesiredCurrent is true if desired was rendered from upstream, so that its event needs no work; mu guards it.
	isDesiredCurrent bool
	// inSync is the verdict of Ready if the last reconcile, or count, left nothing to do before the next event; the zero handle otherwise.
	// mu guards it.
	inSync unique.Handle[status.Verdict]

	// mu guards what follows, too.
	mu sync.Mutex
	// upstream is what our last write to it returned, while it is newer than the cache.
	upstream *unstructured.Unstructured
	// beforeRead is the response to our last request for the deletion.before object.
	beforeRead rare[response]
	// parked is what is remembered of objects that the desired state does not have at present.
	parked map[slot]*objectMemory
	// unplaced are the responses about objects that the desired state no longer has, while they are newer than the cache.
	unplaced rare[[]unplacedResponse]
}

// unusual is the memory that few upstreams need. Only the worker that holds the key uses it.
type unusual struct {
	// renderAgainAt is when a desired state that took too long is rendered again, and slow delays that and a status that did.
	renderAgainAt time.Time
	slow          retryState
	// requested is the last value of the annotation that requests a reconcile.
	requested string
	// siblings are by the place of a live object that others read.
	siblings map[place]siblingSeen
	// left are the objects that stood at no target the last time.
	left []witness
	// marks are by the uid of an object whose owner annotation names another upstream.
	marks map[types.UID]*markAnswer
	// upstreamFailure is the reason of a failed request for the upstream itself that is retried; empty for none.
	upstreamFailure string
	// refused are the values of status.fields that the API server refused.
	refused refusedFields
	// heldByObserve are the last logged actions that mode Observe does not carry out.
	heldByObserve []string
	// unconfirmed are the places at which objects were created that the cache has not shown yet, if only the finalizer cleans
	// them up.
	unconfirmed []place
	// notMade are the targets of an upstream that is being deleted at which no object of it was found.
	notMade map[place]bool
	// waiting delays checks of what is being deleted, about which no event may come.
	waiting retryState
	// fates are what became of objects, while the cache may not show it.
	fates fates
}

// isEmpty reports whether nothing is left to be remembered.
func (u *unusual) isEmpty(now time.Time) bool {
	u.fates.expire(now)
	return u.renderAgainAt.IsZero() && u.slow.failures == 0 && u.requested == "" && u.upstreamFailure == "" && u.waiting.failures == 0 &&
		!report.Any(u.refused.fields) && len(u.siblings)+len(u.left)+len(u.marks)+len(u.heldByObserve)+len(u.unconfirmed)+len(u.notMade)+len(u.fates) == 0
}

// inputsMemory has the places of the inputs of the upstream at a version, and the digest of what was read of them.
type inputsMemory struct {
	refs    []desired.InputRef
	version string
	digest  canonical.Sum
}

// place is where a downstream was created, or may have been: a response can get lost.
type place struct {
	downstream int
	at         operator.Ref
}

// response is a live object in a response.
type response struct {
	live  *drift.Live
	until time.Time
}

// counts reports whether a response counts if the cache does not show its object. A terminating object counts until it is known to be gone:
// what must be deleted after it would be deleted too early otherwise.
func (r response) counts(now time.Time) bool { return r.live.Deleting || now.Before(r.until) }

// unplacedResponse is a response about an object of a downstream that has no slot.
type unplacedResponse struct {
	downstream int
	response
}

// baseline is the projection of the object of that uid as an apply left it, or would leave it.
type baseline struct {
	uid types.UID
	sum *canonical.Sum
}

// countedState is a state in which an object was counted.
type countedState struct {
	downstream int // or beforeIndex
	state      operator.State
}

// beforeIndex is the index that deletion.before has among the downstreams that are counted.
const beforeIndex = -1

// freshFor bounds how long a response is preferred to the cache: an informer that lags longer is not waited for.
const freshFor = 15 * time.Second

// missed returns the retry state of an upstream that could not be read; found drops it.
func (m *memory) missed(ref operator.Ref) *retryState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.misses == nil {
		m.misses = map[operator.Ref]*retryState{}
	}
	if m.misses[ref] == nil {
		m.misses[ref] = &retryState{}
	}
	return m.misses[ref]
}

func (m *memory) found(ref operator.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.misses, ref)
}

// record returns the memory of an upstream, which ref names. That of another uid is dropped.
func (m *memory) record(ref operator.Ref, uid types.UID) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[ref]
	if r == nil || r.uid != uid {
		r = &record{uid: uid}
		if m.records == nil {
			m.records = map[operator.Ref]*record{}
		}
		m.records[ref] = r
	}
	return r
}

// peek returns the record if there is one.
func (m *memory) peek(ref operator.Ref) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[ref]
}

// uids are the uids of the upstreams that it remembers.
func (m *memory) uids() map[operator.Ref]types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	uids := make(map[operator.Ref]types.UID, len(m.records))
	for ref, r := range m.records {
		uids[ref] = r.uid
	}
	return uids
}

func (m *memory) forget(ref operator.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, ref)
}

// remember keeps a response about object i of the desired state until the cache has caught up with it.
func (r *record) remember(i int, live *drift.Live, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.objects[i].read.edit() = response{live: live, until: now.Add(freshFor)}
}

// setBaseline keeps the projection of the object of that uid after an apply of object i; nil if it is what was sent, which is kept
// only if the upstream's status may record another one, or another projection is kept.
func (r *record) setBaseline(i int, uid types.UID, sum *canonical.Sum, recorded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isKept := func(m *objectMemory) bool { return m.baseline.isSet() }
	if sum != nil || recorded || slices.ContainsFunc(r.objects, isKept) {
		*r.objects[i].baseline.edit() = baseline{uid, sum}
	}
}

// baseline returns what setBaseline kept; known is false if it kept nothing for that object.
func (r *record) baseline(i int, uid types.UID) (sum *canonical.Sum, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.objects[i]
	b := m.baseline.get()
	return b.sum, m.baseline.isSet() && b.uid == uid
}

// rememberUpstream keeps what a write to the upstream returned until the cache has caught up with it.
func (r *record) rememberUpstream(up *unstructured.Unstructured, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.upstream, r.isDesiredCurrent = up, complete
}

// writtenUpstream is what our last write to the upstream returned, until its event has come. Call it before reading the cache:
// the object is in the cache before isEcho forgets it.
func (r *record) writtenUpstream() *unstructured.Unstructured {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.upstream
}

// isEcho reports whether an event of the upstream is about what our own write returned. It is in the cache then, so the
// response is dropped.
func (r *record) isEcho(uid types.UID, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.upstream == nil || r.uid != uid || Newer(r.upstream.GetResourceVersion(), version) {
		return false
	}
	same := r.upstream.GetResourceVersion() == version
	r.upstream = nil
	return same && r.isDesiredCurrent
}

// isEchoOf is isEcho for an object that a watch of a downstream shows: the reconciliation that made the request has handled its response.
func (r *record) isEchoOf(downstream int, live *drift.Live) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropResponses(func(i int, to response) bool {
		return i == downstream && to.live.UID == live.UID && to.live.ResourceVersion == live.ResourceVersion
	})
}

// inputRefs are the inputs of the upstream, for any goroutine.
func (r *record) inputRefs() []desired.InputRef {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inputs.get().refs
}

// setInputs changes what is known of the inputs; if nothing is, and it is not needed, it stays so.
func (r *record) setInputs(needed bool, change func(known *inputsMemory)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inputs.set(needed, change)
}

// noteUpstreamFailure sets the reason of a failed request for the upstream itself; empty for none.
func (r *record) noteUpstreamFailure(reason string) {
	r.unusual.set(reason != "", func(u *unusual) { u.upstreamFailure = reason })
}

// expectCreated records that an object is about to be created; confirmCreated drops those that the cache shows.
func (r *record) expectCreated(m place) {
	if u := r.unusual.edit(); !slices.Contains(u.unconfirmed, m) {
		u.unconfirmed = append(u.unconfirmed, m)
	}
}

func (r *record) noteNotMade(m place) {
	u := r.unusual.edit()
	if u.notMade == nil {
		u.notMade = map[place]bool{}
	}
	u.notMade[m] = true
}

func (r *record) confirmCreated(shown func(place) bool) {
	r.unusual.set(false, func(u *unusual) { u.unconfirmed = slices.DeleteFunc(u.unconfirmed, shown) })
}

// createdByUs reports whether the response about object i of the desired state proves that the object was created for the upstream with that
// uid.
func (r *record) createdByUs(i int, uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	live := r.objects[i].read.get().live
	return live != nil && marks.Applied(live, uid)
}

// noteUnwatched drops a response about an object that a watch of a downstream does not show any more.
func (r *record) noteUnwatched(downstream int, uid types.UID) {
	r.dropResponsesAbout(uid, func(i int) bool { return i == downstream })
}

func (r *record) dropResponsesAbout(uid types.UID, of func(downstream int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropResponses(func(i int, to response) bool { return of(i) && to.live.UID == uid })
	if l := r.beforeRead.get().live; l != nil && l.UID == uid && of(operator.BeforeIndex) {
		r.beforeRead.reset()
	}
}

// rememberBefore keeps the response about the deletion.before object; lastBeforeRead returns it, and until when it counts if
// the cache does not show the object.
func (r *record) rememberBefore(live *drift.Live, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.beforeRead.edit() = response{live: live, until: now.Add(freshFor)}
}

func (r *record) lastBeforeRead() (*drift.Live, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.beforeRead.get()
	return read.live, read.until
}

// latest chooses between the object that the cache has at a target and our last response about it, which counts until then if the cache does
// not show the object. The cache is read under the lock: an object is in the cache before its event drops the response.
func (r *record) latest(i int, at operator.Ref, cache func() *drift.Live, now time.Time) (live *drift.Live, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cached, m := cache(), r.objects[i]
	if r.hasLeft(cached, now) {
		cached = nil
	}
	isAt := func(live *drift.Live) bool { return live.Namespace == at.Namespace && live.Name == at.Name }
	switch fresh := m.read.get(); {
	case fresh.live == nil:
	case !isAt(fresh.live): // it is superseded
		r.displace(m.downstream, fresh)
		m.read.reset()
	case !now.Before(fresh.until) || isOutdated(fresh.live, cached):
		m.read.reset()
	default:
		return fresh.live, fresh.until
	}
	for _, u := range r.unplaced.get() { // it was deleted or released, and is desired again
		if u.downstream == m.downstream && isAt(u.live) && u.counts(now) && !isOutdated(u.live, cached) {
			return u.live, u.until
		}
	}
	return cached, time.Time{}
}

// isOutdated reports whether the cache shows a later state of an object, or a later object, than a response. An object that is being
// deleted remains so.
func isOutdated(response, cached *drift.Live) bool {
	switch {
	case cached == nil:
		return false
	case cached.UID == response.UID && cached.Deleting != response.Deleting:
		return cached.Deleting
	}
	return !Newer(response.ResourceVersion, cached.ResourceVersion)
}

// unshown lists, by downstream, the objects of responses that still count. The others are dropped: whoever asks decides without them, so
// that their events are not echoes. Call it before reading the cache: an object is in the cache before its event drops the response.
func (r *record) unshown(downstreams int, now time.Time) [][]*drift.Live {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropResponses(func(_ int, to response) bool { return !to.counts(now) })
	objects := make([][]*drift.Live, downstreams)
	add := func(m *objectMemory) {
		if live := m.read.get().live; live != nil {
			objects[m.downstream] = append(objects[m.downstream], live)
		}
	}
	for _, m := range r.objects {
		add(m)
	}
	for _, m := range r.parked {
		add(m)
	}
	for _, u := range r.unplaced.get() {
		objects[u.downstream] = append(objects[u.downstream], u.live)
	}
	return objects
}

// Newer reports whether resource version a is later than b; false if they cannot be compared.
func Newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}
