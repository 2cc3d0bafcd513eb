package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// fate is what became of an object. Only a read that does not find it, a watch, or an answer of the API server that says so, makes it gone:
// after an accepted deletion, finalizers may hold it for as long as they like.
type fate int

const (
	_ fate = iota
	// isGone: it does not exist any more, whatever the cache shows.
	isGone
	// isDeleting: the API server accepted its deletion. Until it is gone, the response about it counts.
	isDeleting
	// isReleased: it exists and is not ours any more, as the cache shows once it has the version that the release returned.
	isReleased
)

// fates has fates by the uid of the object. They are kept for as long as the cache may lag.
type fates map[types.UID]knownFate

type knownFate struct {
	fate
	// version is the resourceVersion that the release returned.
	version string
	until   time.Time
}

func (f fates) expire(now time.Time) {
	maps.DeleteFunc(f, func(_ types.UID, known knownFate) bool { return !now.Before(known.until) })
}

// of is what is known of an object.
func (f fates) of(uid types.UID, now time.Time) knownFate {
	if known := f[uid]; now.Before(known.until) {
		return known
	}
	return knownFate{}
}

// note records what became of an object, and drops the responses about it.
func (r *record) note(is fate, uid types.UID, version string, now time.Time) {
	r.dropResponsesAbout(uid, func(int) bool { return true })
	u := r.unusual.edit()
	if u.fates.expire(now); u.fates == nil {
		u.fates = fates{}
	}
	u.fates[uid] = knownFate{is, version, now.Add(freshFor)}
	if is != isDeleting {
		u.left = slices.DeleteFunc(u.left, func(w witness) bool { return w.uid == uid })
	}
}

// noteGone records that an object does not exist.
func (r *record) noteGone(uid types.UID, now time.Time) { r.note(isGone, uid, "", now) }

// noteAbsent records that the object of a uid was not found among ours, but live in its place; nil for none.
func (r *record) noteAbsent(uid types.UID, live *drift.Live, now time.Time) {
	for _, m := range r.objects {
		if m.uid == uid {
			m.uid = ""
		}
	}
	if live != nil && live.UID == uid {
		r.note(isReleased, uid, live.ResourceVersion, now)
		return
	}
	r.noteGone(uid, now)
}

// noteLeaving records that an object is being deleted, or was released, as a response shows it.
func (r *record) noteLeaving(is fate, downstream int, live *drift.Live, now time.Time) {
	r.note(is, live.UID, live.ResourceVersion, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.displace(downstream, response{live, now.Add(freshFor)})
}

// regained records that an object is ours again: it was released, and then adopted.
func (r *record) regained(uid types.UID) { delete(r.unusual.get().fates, uid) }

// isNotOurs reports whether the object with that uid is known to be gone or released.
func (r *record) isNotOurs(uid types.UID, now time.Time) bool {
	is := r.unusual.get().fates.of(uid, now).fate
	return is == isGone || is == isReleased
}

// hasLeft reports whether the cache shows an object as it was before it was gone or released.
func (r *record) hasLeft(cached *drift.Live, now time.Time) bool {
	if cached == nil {
		return false
	}
	known := r.unusual.get().fates.of(cached.UID, now)
	return known.fate == isGone || known.fate == isReleased && Newer(known.version, cached.ResourceVersion)
}

// goneFor is for how long it counts that an object is gone; zero if it does not.
func (r *record) goneFor(uid types.UID, now time.Time) time.Duration {
	if known := r.unusual.get().fates.of(uid, now); known.fate == isGone {
		return known.until.Sub(now)
	}
	return 0
}

// noteDeleted remembers what the API server answered to the deletion of an object. A dry run shows what follows from it, once it is gone.
func (r *reconciliation) noteDeleted(o operator.Outcome, answer apply.Deletion) {
	r.noteRemoved(o)
	if answer.Gone || o.Live == nil || r.client.Dry() {
		r.record.noteGone(o.UID, r.now)
		return
	}
	live := *o.Live
	if answer.Terminating != nil {
		if shown, err := r.Pipeline.Downstreams[o.Downstream].View.Live(answer.Terminating); err == nil {
			live = *shown
		}
	}
	live.Deleting = true
	r.record.noteLeaving(isDeleting, o.Downstream, &live, r.now)
}

// noteReleased remembers an object that was released, as the API server returned it; nil: it is gone.
func (r *reconciliation) noteReleased(o operator.Outcome, obj *unstructured.Unstructured) error {
	r.noteRemoved(o)
	if obj == nil || r.client.Dry() {
		r.record.noteGone(o.UID, r.now)
		return nil
	}
	live, err := r.Pipeline.Downstreams[o.Downstream].View.Live(obj)
	if err != nil {
		return err
	}
	r.record.noteLeaving(isReleased, o.Downstream, live, r.now)
	return nil
}

// noteRemoved counts that an object was deleted or released, which does not belong to the upstream from now on.
func (r *reconciliation) noteRemoved(o operator.Outcome) {
	r.countItems(o.Downstream)
	r.removals.write(place{o.Downstream, o.Target}, r.spacing(), r.now)
	if t := &r.record.objects[o.Object].target; t.uid == o.UID {
		t.uid = "" // its absence is our own doing
		r.countWrite(o.Object, "")
	}
}

// checkTerminating reads the terminating objects that the cache has not shown for a while: the watch may have shown their end before the
// response came, or they have lost its labels.
func (r *reconciliation) checkTerminating(ctx context.Context) {
	for _, u := range r.unshownTerminating() {
		if r.now.Before(u.until) {
			continue
		}
		at := operator.Ref{Namespace: u.live.Namespace, Name: u.live.Name}
		live, err := r.readLive(ctx, u.downstream, at)
		switch {
		case err != nil:
			r.fail(r.outcomeOf(u.downstream, at), err)
			r.record.noteLeaving(isDeleting, u.downstream, u.live, r.now)
		case live == nil || live.UID != u.live.UID:
			r.record.noteGone(u.live.UID, r.now)
		default:
			r.record.noteLeaving(isDeleting, u.downstream, live, r.now)
		}
	}
}

// unshownTerminating are the responses about terminating objects that the cache does not show as such.
func (r *reconciliation) unshownTerminating() []unplacedResponse {
	return slices.DeleteFunc(r.record.terminating(), func(u unplacedResponse) bool {
		cached := r.Cache.Live(u.downstream, operator.Ref{Namespace: u.live.Namespace, Name: u.live.Name})
		return cached != nil && cached.UID == u.live.UID && cached.Deleting
	})
}

// trustTerminating has checkTerminating called in time.
func (r *reconciliation) trustTerminating() {
	for _, u := range r.unshownTerminating() {
		r.trustUntil(u.until)
	}
}

// terminating are the responses about objects that are being deleted.
func (r *record) terminating() (list []unplacedResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.unplaced.get() {
		if u.live.Deleting {
			list = append(list, u)
		}
	}
	return list
}
