package reconcile

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// memory is what one operator remembers between two reconciliations at an upstream. Nothing in it is needed to be right, only to
// be cheap: it is gone after a restart, and what is lost with it costs a request at most.
type memory struct {
	mu      sync.Mutex
	records map[pipeline.Ref]*record
	// misses space out reads of upstreams that failed.
	misses map[pipeline.Ref]*retryState
}

// record is about one upstream. Only the worker that holds its key touches it, but for what mu guards.
type record struct {
	uid types.UID
	// desired was made from the upstream at version, whose readable content has digest.
	desired *pipeline.Desired
	version string
	digest  drift.Sum
	// large: making the desired state needed a place; see larger. slowUntil is when one that took too long is made again.
	large     bool
	slowUntil time.Time
	// externalDigest is the digest of what others have written of it: when that changes, what failed is tried at once. Our own writes do
	// not change it, whatever the templates read.
	externalDigest drift.Sum
	// requested is the value of the annotation by which a reconciliation was asked for last.
	requested string
	// inputs is where the inputs of the upstream at version inputsOf stand; inputsSaid is the digest of what was
	// read of them.
	inputs     []pipeline.InputRef
	inputsOf   string
	inputsSaid drift.Sum
	targets    []target
	// retry is about requests for the upstream itself: its status, and its clean-up when it is being deleted.
	retry retryState
	// upstreamFailure is the reason of the request for the upstream itself that failed and is tried again; empty where none is.
	upstreamFailure string
	// statusContest and finalizerContest are about the writes to the upstream itself. statusWriters are who else writes its
	// status, as far as our last write told.
	statusContest, finalizerContest contest
	statusWriters                   string
	// refused are the values of status.fields that the API server refused, refusedUnder the definition of the kind by which it
	// did.
	refused      pipeline.RefusedFields
	refusedUnder int
	// newest is true once the upstream was read past the cache, where that may lag: see handover.
	newest bool
	// withdrawn is true once nothing of the previous field manager is left in the status.
	withdrawn bool
	// finalized is true once the finalizer is off a deleted upstream. The answer to that has the version of before where
	// the upstream went with it, so that the cache, which still shows the finalizer, looks no older.
	finalized bool
	states    []pipeline.State
	verdict   status.Verdict // as it was counted
	// reported is what events have said already about the state that lasts; looked is false before the first reconciliation.
	reported      string
	wasReconciled bool
	// heldByObserve are the actions last logged that mode Observe does not carry out.
	heldByObserve []string
	// made are the targets that objects were asked for at which the cache has not shown yet, where nothing but the
	// finalizer cleans up.
	made []place
	// before is about the object of deletion.before.
	before beforeMemory
	// waiting spaces out looks at what is going away, where no event need tell of it.
	waiting retryState

	mu sync.Mutex
	// upstream is what our own last write to it returned, while that is newer than the cache; complete tells that the desired state
	// is made of it, so that the news of it is no news.
	upstream *unstructured.Unstructured
	complete bool
	// read is, by downstream, what our last request about it returned, while that is newer than the cache.
	read []response
	// baselines are, by downstream, the projections that our last applies returned where they are not what we sent; nil
	// where there is none.
	baselines []baseline
	// beforeRead is what our last request about the object of deletion.before returned.
	beforeRead response
	// gone has the objects that the API server told us are deleted, while the cache may still show them.
	gone map[types.UID]time.Time
}

// place is where a downstream was made, or may have been: an answer can get lost.
type place struct {
	downstream int
	at         pipeline.Ref
}

// response is a live object as a response had it.
type response struct {
	live  *drift.Live
	until time.Time
}

// baseline is the projection of the object of that uid as an apply left it, or would leave it.
type baseline struct {
	uid types.UID
	sum *drift.Sum
}

// target is what is remembered of one downstream.
type target struct {
	uid types.UID
	// at is where the object of that uid stands.
	at pipeline.Ref
	// verdict is what probes answered about uid at version for hash.
	verdict    pipeline.Verdict
	verdictFor verdictKey
	// dryRunAnswer is what the last dry run found about drift; nil if none was made.
	dryRunAnswer *dryRunAnswer
	// contest is about the writes to what the downstream makes, whatever object that is.
	contest contest
	// retry spaces out attempts that failed; failure is why, as long as they wait.
	retry   retryState
	failure *pipeline.Failure
	// compared says what an apply would change, where mode is Observe.
	compared comparison
	// explained says which fields another writer changed, as of the last time that was asked.
	explained string
}

type verdictKey struct {
	uid           types.UID
	version, hash string
}

// dryRunAnswer is whether a dry run found that nothing would change. It is about our fields alone: what else happens to the
// object raises no question.
type dryRunAnswer struct {
	question dryRunQuestion
	same     bool
}

type dryRunQuestion struct {
	uid            types.UID
	p              drift.Sum
	liveHash, hash string
	extra          bool
}

// freshFor bounds how long a response is believed over the cache: an informer that is further behind is not worth waiting for.
const freshFor = 15 * time.Second

// missed returns the retry state of an upstream that could not be read; found forgets it.
func (m *memory) missed(ref pipeline.Ref) *retryState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.misses == nil {
		m.misses = map[pipeline.Ref]*retryState{}
	}
	if m.misses[ref] == nil {
		m.misses[ref] = &retryState{}
	}
	return m.misses[ref]
}

func (m *memory) found(ref pipeline.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.misses, ref)
}

// record returns what is remembered of the upstream of that name and uid. One of another uid is forgotten.
func (m *memory) record(ref pipeline.Ref, uid types.UID, downstreams int) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[ref]
	if r == nil || r.uid != uid {
		r = &record{uid: uid, targets: make([]target, downstreams), read: make([]response, downstreams)}
		if m.records == nil {
			m.records = map[pipeline.Ref]*record{}
		}
		m.records[ref] = r
	}
	return r
}

// peek returns the record where there is one.
func (m *memory) peek(ref pipeline.Ref) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[ref]
}

func (m *memory) forget(ref pipeline.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, ref)
}

// remember keeps a response until the cache has caught up with it.
func (r *record) remember(i int, live *drift.Live, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[i] = response{live: live, until: now.Add(freshFor)}
}

// setBaseline keeps the projection of the object of that uid as an apply of downstream i leaves it; nil where it is what was
// sent, which needs to be kept only where the upstream's status may record another one.
func (r *record) setBaseline(i int, uid types.UID, sum *drift.Sum, recorded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.baselines == nil {
		if sum == nil && !recorded {
			return
		}
		r.baselines = make([]baseline, len(r.read))
	}
	r.baselines[i] = baseline{uid, sum}
}

// baseline is what setBaseline kept; known is false where it kept nothing of that object.
func (r *record) baseline(i int, uid types.UID) (sum *drift.Sum, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.baselines == nil || r.baselines[i].uid != uid {
		return nil, false
	}
	return r.baselines[i].sum, true
}

// wrote keeps what a write to the upstream returned until the cache has caught up with it.
func (r *record) wrote(up *unstructured.Unstructured, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.upstream, r.complete = up, complete
}

// ahead is what our last write to the upstream returned, until its echo has come. It is asked for before the cache is
// read: the echo is in the cache before ahead forgets.
func (r *record) ahead() *unstructured.Unstructured {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.upstream
}

// isEcho tells whether an event about the upstream only brings back what our own write returned. The cache has it now, so
// it need not be kept.
func (r *record) isEcho(uid types.UID, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.upstream == nil || r.uid != uid || Newer(r.upstream.GetResourceVersion(), version) {
		return false
	}
	same := r.upstream.GetResourceVersion() == version
	r.upstream = nil
	return same && r.complete
}

// isEchoOf is isEcho for a downstream: the reconciliation that made the request has decided upon its answer already.
func (r *record) isEchoOf(live *drift.Live) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.read {
		if l := r.read[i].live; l != nil && l.UID == live.UID && l.ResourceVersion == live.ResourceVersion {
			r.read[i] = response{}
			return true
		}
	}
	return false
}

// forgetObject notes that an object was deleted or is no longer ours, whatever the cache still says of it.
func (r *record) forgetObject(uid types.UID, now time.Time) {
	r.dropResponse(uid)
	if r.gone == nil {
		r.gone = map[types.UID]time.Time{}
	}
	for old, until := range r.gone {
		if now.After(until) {
			delete(r.gone, old)
		}
	}
	r.gone[uid] = now.Add(freshFor)
}

// regained notes that an object is ours again: it was let go before, and then adopted.
func (r *record) regained(uid types.UID) { delete(r.gone, uid) }

// isKnownGone tells whether the object with that uid was lately deleted, let go or not found.
func (r *record) isKnownGone(uid types.UID, now time.Time) bool { return r.goneFor(uid, now) > 0 }

// goneFor is for how long that is still believed; zero where it is not.
func (r *record) goneFor(uid types.UID, now time.Time) time.Duration {
	return max(0, r.gone[uid].Sub(now))
}

// expect notes that an object is about to be made; confirm forgets those that the cache shows.
func (r *record) expect(m place) {
	if !slices.Contains(r.made, m) {
		r.made = append(r.made, m)
	}
}

func (r *record) confirm(shown func(place) bool) { r.made = slices.DeleteFunc(r.made, shown) }

// createdByUs tells whether the response about a downstream proves that it was made for the upstream with that uid.
func (r *record) createdByUs(i int, uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[i].live != nil && pipeline.Applied(r.read[i].live, uid)
}

// freshUntil is until when the response about a downstream is believed.
func (r *record) freshUntil(i int) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[i].until
}

// isGone tells whether what the cache shows is known to be gone. An object that is still being deleted is not.
func (r *record) isGone(live *drift.Live, now time.Time) bool {
	return !live.Deleting && r.isKnownGone(live.UID, now)
}

// dropResponse forgets a response about an object that the watch has seen go.
func (r *record) dropResponse(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.read {
		if l := r.read[i].live; l != nil && l.UID == uid {
			r.read[i] = response{}
		}
	}
	if l := r.beforeRead.live; l != nil && l.UID == uid {
		r.beforeRead = response{}
	}
}

// rememberBefore keeps what a request about the object of deletion.before returned; lastBeforeRead is that, and until when it is
// believed over a cache that does not show it.
func (r *record) rememberBefore(live *drift.Live, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beforeRead = response{live: live, until: now.Add(freshFor)}
}

func (r *record) lastBeforeRead() (*drift.Live, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beforeRead.live, r.beforeRead.until
}

// latest chooses between what the cache has at a target and what our last response about it said. The cache is read under
// the lock: an echo is in the cache before it makes us forget the response.
func (r *record) latest(i int, at pipeline.Ref, cache func() *drift.Live, now time.Time) *drift.Live {
	r.mu.Lock()
	defer r.mu.Unlock()
	cached := cache()
	if cached != nil && r.isGone(cached, now) {
		cached = nil
	}
	fresh := r.read[i]
	if fresh.live == nil {
		return cached
	}
	current := fresh.live.Namespace == at.Namespace && fresh.live.Name == at.Name && now.Before(fresh.until)
	if !current || (cached != nil && !Newer(fresh.live.ResourceVersion, cached.ResourceVersion)) {
		r.read[i] = response{}
		return cached
	}
	return fresh.live
}

// Newer tells whether resource version a is later than b. Versions that cannot be compared are not.
func Newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c > 0
}

// verdictOf returns what probes answered, as long as the question is still the same.
func (t *target) verdictOf(live *drift.Live, hash string) pipeline.Verdict {
	if live == nil {
		return pipeline.Verdict{}
	}
	var v pipeline.Verdict
	if t.verdictFor == (verdictKey{live.UID, live.ResourceVersion, hash}) {
		v = t.verdict
	}
	if t.dryRunAnswer != nil && t.dryRunAnswer.question == dryRunQuestionOf(live, hash) {
		v.SameByDryRun = &t.dryRunAnswer.same
	}
	return v
}

func dryRunQuestionOf(live *drift.Live, hash string) dryRunQuestion {
	return dryRunQuestion{live.UID, live.P, live.Hash, hash, live.Extra}
}

// setUID takes note that the object of that uid is ours. What is remembered of another one is forgotten.
func (t *target) setUID(uid types.UID, at pipeline.Ref) {
	if t.uid != uid {
		*t = target{uid: uid, retry: t.retry, failure: t.failure, verdict: t.verdict, verdictFor: t.verdictFor, contest: t.contest}
	}
	t.at = at
}

func (t *target) answered(live *drift.Live, hash string, change func(*pipeline.Verdict)) {
	v := t.verdictOf(live, hash)
	change(&v)
	t.verdict, t.verdictFor = v, verdictKey{live.UID, live.ResourceVersion, hash}
}
