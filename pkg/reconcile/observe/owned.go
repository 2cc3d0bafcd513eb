package observe

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// OwnedByDownstream lists the objects with the upstream's owner mark that the cache or a newer response shows, and
// those that a witness knows, without copies and those of downstreams that the config does not have any more: removing
// one from the config deletes nothing.
func (st *State) OwnedByDownstream() [][]*drift.Live {
	uid, cached := st.Upstream.GetUID(), func(at memory.Place) *drift.Live { return st.Cache.Live(at.Downstream, at.At) }
	owned := st.Memory.Unshown(len(st.Pipeline.Downstreams), cached, st.Began)
	for i := range owned {
		owned[i] = slices.DeleteFunc(owned[i], func(live *drift.Live) bool {
			// another operator may have marked what we released
			return !marks.Marked(live, uid) || st.Memory.IsNotOurs(live.UID, st.Began)
		})
		for _, live := range st.Cache.OwnedBy(i, uid) {
			isShown := slices.ContainsFunc(owned[i], func(o *drift.Live) bool { return o.UID == live.UID })
			if marks.Marked(live, uid) && !isShown && !st.Memory.HasLeft(live, st.Began) {
				owned[i] = append(owned[i], live)
			}
		}
	}
	owned, forgotten := withoutCopies(st, st.withWitnessed(owned)), st.Pipeline.Forgotten(st.Upstream)
	for i := range owned {
		owned[i] = slices.DeleteFunc(owned[i], func(live *drift.Live) bool {
			return isForgotten(st.Pipeline.Settings, i, live.Downstream) && !isRecordedFor(st.Recorded(), live.UID) ||
				slices.ContainsFunc(forgotten, func(recorded status.Recorded) bool { return recorded.UID == live.UID })
		})
	}
	return owned
}

// withoutCopies leaves out objects in other namespaces that no witness knows and that someone has copied with marks and
// managedFields, as tools do that restore a namespace under another name.
func withoutCopies(st *State, owned [][]*drift.Live) [][]*drift.Live {
	for i := range owned {
		owned[i] = slices.DeleteFunc(owned[i], func(live *drift.Live) bool {
			return live.Copied && live.Namespace != st.Ref.Namespace && st.TargetAt(i, operator.RefOf(live)) < 0 &&
				!slices.ContainsFunc(st.Witnesses(st.Trusted()), memory.IsOf(live.UID))
		})
	}
	return owned
}

// Owned lists every live object of the upstream.
func (st *State) Owned() []*drift.Live {
	var all []*drift.Live
	seen := map[types.UID]bool{}
	for _, list := range st.OwnedByDownstream() {
		for _, live := range list {
			if !seen[live.UID] {
				seen[live.UID] = true
				all = append(all, live)
			}
		}
	}
	return all
}

// eachNamed calls use with what is to be recorded of each object of the upstream that says itself of which downstream
// it is; i is one of its kind.
func (st *State) eachNamed(use func(i int, rec status.Recorded)) {
	s := st.Pipeline.Settings
	if s.NameKey() == "" {
		return
	}
	for i, d := range s.Downstreams {
		for _, live := range st.Cache.OwnedBy(i, st.Upstream.GetUID()) {
			if live.Downstream != "" && !marks.IsBeforeObject(live) && marks.Marked(live, st.Upstream.GetUID()) {
				rec := s.RecordAt(d, operator.RefOf(live), live.UID, "", "")
				rec.Name = live.Downstream
				use(i, rec)
			}
		}
	}
}

// Unrecorded is Input.Unrecorded.
func (st *State) Unrecorded() (list []status.Recorded) {
	if st.Pipeline.NameKey() == "" {
		return nil
	}
	recorded := st.Pipeline.EverRecorded(st.Upstream)
	st.eachNamed(func(i int, rec status.Recorded) {
		same := func(other status.Recorded) bool { return other.UID == rec.UID }
		if isForgotten(st.Pipeline.Settings, i, rec.Name) && !slices.ContainsFunc(recorded, same) &&
			!slices.ContainsFunc(list, same) {
			list = append(list, rec)
		}
	})
	return list
}

// knownBy says of which downstream each object is: what a status records for certain, of downstreams of the config
// first; what it says itself, which it keeps while its downstream is renamed; what only this process knows; and at last
// what the status only guesses.
func (st *State) knownBy(recorded []status.Recorded) (list []status.Recorded) {
	s, has := st.Pipeline.Settings, map[types.UID]bool{}
	add := func(rec status.Recorded) {
		if rec.UID == "" || !has[rec.UID] {
			has[rec.UID], list = true, append(list, rec)
		}
	}
	for _, rec := range recorded {
		if !rec.Guessed && s.IndexOf(rec.Name) >= 0 {
			add(rec)
		}
	}
	st.eachNamed(func(_ int, rec status.Recorded) { add(rec) })
	for _, rec := range recorded {
		if !rec.Guessed {
			add(rec)
		}
	}
	for _, w := range st.Witnesses(nil) {
		if !w.Guessed {
			add(s.RecordAt(s.Downstreams[w.Downstream], w.At, w.UID, "", ""))
		}
	}
	for _, rec := range recorded {
		if rec.Guessed {
			add(rec)
		}
	}
	return list
}

// Witnesses are the objects that are known to be the upstream's own, each once: those that are recorded, and what is
// remembered, as a status that was written may not be known yet.
func (st *State) Witnesses(recorded []status.Recorded) (list []memory.Witness) {
	listed := map[types.UID]int{}
	add := func(w memory.Witness) {
		switch k, ok := listed[w.UID]; {
		case w.UID == "":
		case !ok:
			list, listed[w.UID] = append(list, w), len(list)
		case list[k].Guessed:
			list[k] = w
		}
	}
	for _, rec := range recorded {
		if i := st.Pipeline.IndexOf(rec.Name); i >= 0 {
			add(memory.Witness{Place: memory.At(i, operator.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}),
				UID: rec.UID, Guessed: rec.Guessed})
		}
	}
	for _, w := range st.Memory.Witnesses() {
		add(w)
	}
	return list
}

// FindLeftovers returns the objects that are at no target of a desired state; nil: all of them. They are remembered
// until they are known to be gone: once the status records their successors, nothing else may say whose they are.
func (st *State) FindLeftovers(w *operator.Desired, owned [][]*drift.Live) []operator.Owned {
	known := map[types.UID]int{}
	for _, w := range st.Witnesses(st.Trusted()) {
		if known[w.UID] = w.Downstream; w.Guessed {
			known[w.UID] = operator.NoIndex
		}
	}
	left := decide.Leftovers(st.Pipeline.Settings, st.Upstream.GetUID(), w, owned, st.knownBy(st.Recorded()), known)
	before := st.Memory.Notes.Get().Left
	var now []memory.Witness
	for i := range left {
		own := &left[i]
		if k := slices.IndexFunc(before, memory.IsOf(own.Live.UID)); k >= 0 {
			own.UnwantedSince = before[k].Since
		}
		now = append(now, memory.Witness{Place: memory.At(own.Downstream, operator.RefOf(own.Live)), UID: own.Live.UID,
			Since: own.UnwantedSince, Guessed: !own.Certain})
	}
	// if the watch does not show it any more, it may have lost the labels of the watch: it is read
	for _, w := range before {
		isShown := slices.ContainsFunc(now, memory.IsOf(w.UID))
		if !isShown && !st.Memory.IsNotOurs(w.UID, st.Began) && st.TargetAt(w.Downstream, w.At) < 0 {
			now = append(now, w)
		}
	}
	st.Memory.Notes.Set(len(now) > 0, func(n *memory.Notes) { n.Left = now })
	return left
}

// withWitnessed adds, by downstream, the objects in the cache that only a witness knows.
func (st *State) withWitnessed(owned [][]*drift.Live) [][]*drift.Live {
	for _, w := range st.Witnesses(st.Trusted()) {
		live, up := st.Memory.Notes.Get().WithMark(st.Cache.Live(w.Downstream, w.At)), st.Upstream.GetUID()
		if live == nil || live.UID != w.UID || marks.Marked(live, up) || marks.OwnedByOther(live, up) ||
			st.Memory.IsNotOurs(w.UID, st.Began) {
			continue
		}
		// Anyone who may write the status must not name an object that never was ours.
		if live.Hash == "" && len(st.Pipeline.Config.Conventions.Labels) == 0 {
			continue
		}
		if !slices.ContainsFunc(owned[w.Downstream], func(o *drift.Live) bool { return o.UID == live.UID }) {
			owned[w.Downstream] = append(owned[w.Downstream], live)
		}
	}
	return owned
}

// UnshownTerminating are the responses about terminating objects that the cache does not show as such.
func (st *State) UnshownTerminating() []memory.Unplaced {
	return slices.DeleteFunc(st.Memory.Terminating(), func(u memory.Unplaced) bool {
		cached := st.Cache.Live(u.Downstream, operator.RefOf(u.Live))
		return cached != nil && cached.UID == u.Live.UID && cached.Deleting
	})
}

// TrustTerminating has checkTerminating called in time.
func (st *State) TrustTerminating() {
	for _, u := range st.UnshownTerminating() {
		st.TrustUntil(u.Until)
	}
}

// ownUIDs are the objects that are this upstream's downstreams, or were until just now.
func (st *State) ownUIDs() map[types.UID]bool {
	own := map[types.UID]bool{}
	for _, w := range st.Witnesses(st.Trusted()) {
		own[w.UID] = true
	}
	st.Memory.AddUIDs(own, st.Began)
	return own
}
