package guard

import (
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// CountOf counts the existing objects that a decision about w changes or deletes. recorded is what the status has of
// them. An object of another owner counts if it is about to become ours.
func CountOf(s *operator.Settings, w *operator.Desired, d operator.Decision, recorded []status.Recorded) Counted {
	var c Counted
	var changes []any
	note := func(o operator.Outcome, changed, deleted bool) {
		if c.Existing++; !changed {
			return
		}
		if c.Changed++; c.Changed == 1 {
			c.First = fmt.Sprintf("%s: %s", s.Downstreams[o.Downstream].Name, o.State)
		}
		if deleted {
			c.Deleted++
		}
		changes = append(changes, changeOf(s, w, o, deleted))
	}
	lost := map[int]int{} // by downstream, the objects that are made again without the values of one that they replace
	for _, o := range d.Outcomes {
		if o.LostValues != "" { // whether or not an object exists, values that the upstream had are lost
			if note(o, true, true); o.Live == nil {
				lost[o.Downstream]++
			}
			continue
		}
		if o.Live != nil && !o.Live.Deleting && (!o.Theirs || rewrites(o)) {
			note(o, rewrites(o), o.State == operator.StateRecreate)
		}
	}
	for _, o := range d.Leftovers {
		if lost[o.Downstream] > 0 { // it is counted as what replaces it
			lost[o.Downstream]--
			continue
		}
		if !o.Live.Deleting {
			goes := goes(o, d.Outcomes, recorded)
			note(o, goes, goes && countsAsDeleted(s, o))
		}
	}
	if len(changes) > 0 {
		c.Digest = canonical.Digest(changes)
	}
	return c
}

// goes reports whether a leftover is removed, now or, if it did not wait already when the status was written, at any
// time: its successors may come after what is not ready yet, or wait for names.
func goes(o operator.Outcome, outcomes []operator.Outcome, recorded []status.Recorded) bool {
	waits := o.GoesLater || o.State == operator.StateSuperseded
	return o.Action != operator.ActionNone || waits && !waited(o, recorded) ||
		o.State == operator.StateSuperseded && replacesSuperseded(outcomes, o.Downstream)
}

// waited reports whether an object that goes later waited already when the status was written.
func waited(o operator.Outcome, recorded []status.Recorded) bool {
	return slices.ContainsFunc(recorded, func(rec status.Recorded) bool {
		return rec.UID == o.UID && (rec.State == string(o.State) || rec.State == string(operator.StateConflict))
	})
}

// countsAsDeleted reports whether guard counts a leftover that goes as deleted. Of rows, an orphan counts as well:
// source.deletes limits both.
func countsAsDeleted(s *operator.Settings, o operator.Outcome) bool {
	return s.HasRows() || s.Config.Downstreams[o.Downstream].DeletionPolicy != config.DeletionOrphan
}

// changeOf identifies what is confirmed for one object: that object, its state and its desired state.
func changeOf(s *operator.Settings, w *operator.Desired, o operator.Outcome, deleted bool) []any {
	if o.LostValues != "" {
		return []any{s.Downstreams[o.Downstream].Name, o.Target.String(), o.LostValues}
	}
	if deleted && o.State != operator.StateRecreate {
		return []any{string(o.Live.UID), "deleted"}
	}
	hash := ""
	if w != nil && o.Object < len(w.Objects) {
		hash = w.Objects[o.Object].Hash
	}
	return []any{string(o.Live.UID), string(o.State), string(o.Live.P[:]), o.Live.Hash, hash}
}

// rewrites reports whether an existing object would be changed: because its desired state has changed, because it is
// adopted, or because it has drifted.
func rewrites(o operator.Outcome) bool {
	switch o.State {
	case operator.StateUpdate, operator.StateRecreate, operator.StateRepair:
		return o.Action != operator.ActionNone && !o.Compares
	}
	return false
}

// replacesSuperseded reports whether an object of a downstream is about to be created or updated, which has superseded
// another one.
func replacesSuperseded(list []operator.Outcome, downstream int) bool {
	return slices.ContainsFunc(list, func(o operator.Outcome) bool {
		return o.Downstream == downstream &&
			(o.Action == operator.ActionCreate || o.Action == operator.ActionApply || o.State == operator.StateRecreate)
	})
}
