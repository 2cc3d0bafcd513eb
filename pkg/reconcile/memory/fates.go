package memory

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
)

// fate is what became of an object. Only a read that does not find it, a watch, or an answer of the API server that
// says so, makes it gone: after an accepted deletion, finalizers may hold it for as long as they like.
type fate int

const (
	// isGone: it does not exist any more, whatever the cache shows.
	isGone fate = iota + 1
	// isDeleting: the API server accepted its deletion. Until it is gone, the response about it counts.
	isDeleting
	// isReleased: it exists and is not ours any more, as the cache shows once it has the version that the release
	// returned.
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
func (u *Upstream) note(is fate, uid types.UID, version string, now time.Time) {
	u.dropResponsesAbout(uid, func(int) bool { return true })
	n := u.Notes.Edit()
	if n.fates.expire(now); n.fates == nil {
		n.fates = fates{}
	}
	n.fates[uid] = knownFate{is, version, now.Add(FreshFor)}
	if is != isDeleting {
		n.Left = slices.DeleteFunc(n.Left, IsOf(uid))
	}
}

// NoteGone records that an object does not exist.
func (u *Upstream) NoteGone(uid types.UID, now time.Time) { u.note(isGone, uid, "", now) }

// NoteAbsent records that the object of a uid was not found among ours, but live in its place; nil for none.
func (u *Upstream) NoteAbsent(uid types.UID, live *drift.Live, now time.Time) {
	for _, o := range u.list {
		if o.UID == uid {
			o.UID = ""
		}
	}
	if live != nil && live.UID == uid {
		u.note(isReleased, uid, live.ResourceVersion, now)
		return
	}
	u.NoteGone(uid, now)
}

// NoteDeleting records that an object is being deleted, as a response shows it.
func (u *Upstream) NoteDeleting(downstream int, live *drift.Live, now time.Time) {
	u.noteLeaving(isDeleting, downstream, live, now)
}

// NoteReleased records that an object was released, as a response shows it.
func (u *Upstream) NoteReleased(downstream int, live *drift.Live, now time.Time) {
	u.noteLeaving(isReleased, downstream, live, now)
}

func (u *Upstream) noteLeaving(is fate, downstream int, live *drift.Live, now time.Time) {
	u.note(is, live.UID, live.ResourceVersion, now)
	u.RememberUnplaced(downstream, live, now)
}

// NoteRegained records that an object is ours again: it was released, and then adopted.
func (u *Upstream) NoteRegained(uid types.UID) { delete(u.Notes.Get().fates, uid) }

// IsNotOurs reports whether the object with that uid is known to be gone or released.
func (u *Upstream) IsNotOurs(uid types.UID, now time.Time) bool {
	is := u.Notes.Get().fates.of(uid, now).fate
	return is == isGone || is == isReleased
}

// HasLeft reports whether the cache shows an object as it was before it was gone or released.
func (u *Upstream) HasLeft(cached *drift.Live, now time.Time) bool {
	if cached == nil {
		return false
	}
	known := u.Notes.Get().fates.of(cached.UID, now)
	return known.fate == isGone || known.fate == isReleased && Newer(known.version, cached.ResourceVersion)
}

// GoneFor is for how long it counts that an object is gone; zero if it does not.
func (u *Upstream) GoneFor(uid types.UID, now time.Time) time.Duration {
	if known := u.Notes.Get().fates.of(uid, now); known.fate == isGone {
		return known.until.Sub(now)
	}
	return 0
}
