package read

import (
	"context"
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// ReadRecorded reads the objects that are remembered and the cache does not have: a cache may lag, and what is missed
// here is orphaned forever. Only an object with this upstream's owner mark is ours to clean up; one that someone else
// created under the name has another uid.
func (r *Reader) ReadRecorded(ctx context.Context, known []operator.Owned) ([]operator.Owned, error) {
	var more []operator.Owned
	read := map[memory.Place]*drift.Live{}
	for _, w := range r.Witnesses(r.Recorded()) {
		if r.Memory.IsNotOurs(w.UID, r.Began) || slices.ContainsFunc(known, func(o operator.Owned) bool {
			return o.Live.UID == w.UID
		}) {
			continue
		}
		if r.FailureOf(w.Downstream) != nil {
			r.noteUnread(w)
			continue
		}
		live, err := r.ReadLive(ctx, w.Downstream, w.At)
		if err != nil {
			return nil, err
		}
		if read[w.Place] = live; live != nil && (r.IsOwn(w.Downstream, live, w.UID) || r.IsOrphaned(live, w.UID)) {
			more = append(more, operator.Owned{Downstream: w.Downstream, Live: live, Certain: !w.Guessed,
				Recorded: !w.Guessed})
		}
	}
	return r.readMade(ctx, known, more, read)
}

// readMade adds what this process created, or tried to, and neither the cache nor the status shows; see placesToRead.
// read has what was just read; nil for no object.
func (r *Reader) readMade(
	ctx context.Context, known, more []operator.Owned, read map[memory.Place]*drift.Live,
) ([]operator.Owned, error) {
	for _, m := range placesToRead(r) {
		stands := func(o operator.Owned) bool {
			return o.Downstream == m.Downstream && o.Live.Namespace == m.At.Namespace && o.Live.Name == m.At.Name
		}
		if r.FailureOf(m.Downstream) != nil || slices.ContainsFunc(known, stands) || slices.ContainsFunc(more, stands) {
			continue
		}
		live, ok := read[m]
		if !ok {
			var err error
			if live, err = r.ReadLive(ctx, m.Downstream, m.At); err != nil {
				return nil, err
			}
		}
		switch {
		case live != nil && (r.IsOwn(m.Downstream, live, "") || marks.HasLostOwner(live) && r.IsOrphaned(live, live.UID)):
			more = append(more, operator.Owned{Downstream: m.Downstream, Live: live, Certain: true, Recorded: true})
		case r.Upstream.GetDeletionTimestamp() == nil:
		case live != nil && hasFormerMarks(r, m.Downstream, live):
			r.Fail(r.OutcomeOf(m.Downstream, m.At), apply.Failure{Reason: apply.ReasonConflict,
				Message: fmt.Sprintf(formerMarks, m.At)})
			r.Unread = append(r.Unread, operator.Owned{Downstream: m.Downstream, Live: live}) // what contains it stays
		default:
			r.Memory.Notes.Edit().NoteNotMade(m)
		}
	}
	return more, nil
}

// placesToRead are those where this process created an object, or tried to, and where no status records what was
// created, also those that the config gives an upstream that goes: the watches do not show what was created under other
// labels or marks.
func placesToRead(r *Reader) []memory.Place {
	notes, deleting := r.Memory.Notes.Get(), r.Upstream.GetDeletionTimestamp() != nil
	places := slices.Clone(notes.Unconfirmed)
	if r.Pipeline.TrustsStatus() || r.Selected && !deleting {
		return places
	}
	for _, o := range r.Memory.Desired().Objects {
		m := memory.At(o.Downstream, o.Target)
		if o.Wanted && o.Err == nil && !slices.Contains(notes.Unconfirmed, m) && (!deleting || !notes.NotMade[m]) {
			places = append(places, m)
		}
	}
	return places
}

const formerMarks = "%s exists and seems to be this upstream's, under another field manager or owner annotation " +
	"than conventions have: " +
	"set conventions.previous to the names that it was created with, or delete the object; the finalizer stays until then"

// hasFormerMarks reports whether an object at a target is probably the upstream's own, of a time when the config had
// another field manager or owner annotation. Nothing proves it, so it is neither deleted nor released; but what becomes
// of it with the upstream must not be left open.
func hasFormerMarks(r *Reader, downstream int, live *drift.Live) bool {
	marked := marks.Marked(live, r.Upstream.GetUID()) && (live.Hash != "" || live.Managed)
	return !live.Deleting && marks.IsOfFields(live.Hash) == r.Pipeline.Downstreams[downstream].OwnsFields() &&
		(marked || marks.HasLostOwner(live) && r.Cascade() != operator.CascadeOrphan)
}

// FindUnserved fails the downstreams whose kind is not watched, unless the API server says that it has no objects:
// nothing can find those that may exist, and what they may come after stays. Objects of a kind that it does not serve
// are gone.
func (r *Reader) FindUnserved(ctx context.Context) {
	for i, d := range r.Pipeline.Downstreams {
		if d.Kind.Missing == nil || r.FailureOf(i) != nil {
			continue
		}
		if err := r.Lookup.Absent(ctx, d.Kind.GVK); err != nil {
			r.fail(r.OutcomeOf(i, operator.Ref{}), err)
			r.Unread = append(r.Unread, operator.Owned{Downstream: i, Live: &drift.Live{}})
			f := r.FailureOf(i)
			f.Message = fmt.Sprintf("cannot find out whether a %s of %s exists: %s", d.Kind.GVK.Kind,
				d.Kind.GVK.GroupVersion(), f.Message)
		}
	}
}
