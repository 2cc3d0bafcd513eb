package operator

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// RecordedBefore is what the upstream's status has of the object of deletion.before; nil if it has nothing.
func (s *Settings) RecordedBefore(upstream *unstructured.Unstructured) *status.Recorded {
	if !s.StatusEnabled() || s.DownstreamsPath == nil {
		return nil
	}
	list, ok := fieldpath.Get(upstream.Object, s.DownstreamsPath)
	if !ok {
		return nil
	}
	all := status.RecordedFrom(list)
	i := slices.IndexFunc(all, func(r status.Recorded) bool { return r.Name == BeforeName })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// AsMap is a value of JSON as a map; nil if it is another one.
func AsMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// RecordedOf returns what a list records of an object; nil for nothing: what it records at the place or, where the
// downstream has one object, of it at another one.
func (s *Settings) RecordedOf(list []status.Recorded, o *DesiredObject) (elsewhere *status.Recorded) {
	for i := range list {
		switch r := &list[i]; {
		case r.Name != s.Downstreams[o.Downstream].Name || r.Guessed:
		case o.Wanted && r.Namespace == o.Target.Namespace && r.ObjectName == o.Target.Name:
			return r
		case !o.Several && !r.Replaced:
			elsewhere = r
		}
	}
	return elsewhere
}

// IsRecordedAt reports whether a list records an object of a downstream at a place.
func IsRecordedAt(recorded []status.Recorded, name string, at Ref) bool {
	return slices.ContainsFunc(recorded, func(r status.Recorded) bool {
		return r.Name == name && r.Namespace == at.Namespace && r.ObjectName == at.Name
	})
}

// KeyOf distinguishes the items of status.downstreams.
func (s *Settings) KeyOf(r status.Recorded) string {
	if i := s.IndexOf(r.Name); r.Replaced || i >= 0 && s.Downstreams[i].Several() {
		return r.Name + " " + Ref{Namespace: r.Namespace, Name: r.ObjectName}.String()
	}
	return r.Name
}

// NameOf distinguishes the objects of a downstream with several: by name, or NAMESPACE/NAME if they may be in other
// namespaces than the upstream's.
func (d *Downstream) NameOf(at Ref) string {
	if d.Config.TargetNamespaces.From == config.NamespacesSame {
		return at.Name
	}
	return at.String()
}

// Forgotten lists what the upstream's status records of downstreams that the config no longer has, by name or by kind:
// nobody looks at such an object any more, and nothing deletes it.
func (s *Settings) Forgotten(upstream *unstructured.Unstructured) []status.Recorded {
	return slices.DeleteFunc(s.EverRecorded(upstream), func(r status.Recorded) bool {
		return r.ObjectName == "" || r.Name == BeforeName || s.isOfDownstream(r)
	})
}

// Recorded reads the identifiers of downstreams that the upstream's status has; none where status is off. What is
// recorded of another kind than the config has now, from before someone changed it, is left out: it would be looked for
// where it is not. Such an object stays, as what a config no longer names always does.
func (s *Settings) Recorded(upstream *unstructured.Unstructured) []status.Recorded {
	return slices.DeleteFunc(s.EverRecorded(upstream), func(r status.Recorded) bool { return !s.isOfDownstream(r) })
}

// isOfDownstream reports whether what is recorded has the name and the kind of a downstream.
func (s *Settings) isOfDownstream(r status.Recorded) bool {
	i := s.IndexOf(r.Name)
	return i >= 0 && s.Downstreams[i].GVK().GroupKind() == r.GroupKind()
}

// EverRecorded is Recorded with what the config has forgotten. What it forgot when a downstream got another kind is of
// that downstream again when it has the kind again, unless it has recorded an object since.
func (s *Settings) EverRecorded(upstream *unstructured.Unstructured) []status.Recorded {
	if !s.StatusEnabled() || s.Config.Status.Downstreams == "" {
		return nil
	}
	list, ok := fieldpath.Get(upstream.Object, s.DownstreamsPath)
	if !ok {
		return nil
	}
	recorded := status.RecordedFrom(list)
	before := slices.Clone(recorded)
	for i, r := range before {
		if s.IndexOf(r.Name) >= 0 {
			continue
		}
		for _, d := range s.Downstreams {
			again := r
			again.Name = d.Name
			if again.NameWithKind() == r.Name && s.isOfDownstream(again) && !has(before, again) {
				recorded[i] = again
			}
		}
	}
	return recorded
}

// has reports whether a list records an object of the same downstream and kind.
func has(recorded []status.Recorded, r status.Recorded) bool {
	return slices.ContainsFunc(recorded, func(other status.Recorded) bool {
		return other.Name == r.Name && other.GroupKind() == r.GroupKind()
	})
}

// RefOf is where a live object is.
func RefOf(live *drift.Live) Ref { return Ref{Namespace: live.Namespace, Name: live.Name} }

// RecordAt is what a status records of an object.
func (s *Settings) RecordAt(d *Downstream, at Ref, uid types.UID, hash, state string) status.Recorded {
	r := status.Recorded{Name: d.Name, APIVersion: d.Config.APIVersion, Kind: d.Config.Kind,
		Namespace: at.Namespace, ObjectName: at.Name,
		UID: uid, Hash: hash, State: state}
	if d.Hidden() {
		// The digest of a Secret's values would let anyone who may read the upstream test guesses against it.
		r.Hash = ""
	}
	return r
}

// Hidden reports whether the downstream's document can hold values of a Secret: no message quotes any value of it.
func (d *Downstream) Hidden() bool { return d.Words != nil }

// EditedSince reports whether the upstream was edited since its status was last written: while no process ran, as a
// rule. Where the status has no generation, or is not ours to believe, it is not known.
func (s *Settings) EditedSince(upstream *unstructured.Unstructured) bool {
	if !s.Upstream.HasStatus || !s.StatusEnabled() {
		return false
	}
	seen, ok, _ := unstructured.NestedInt64(upstream.Object, "status", "observedGeneration")
	return ok && seen != upstream.GetGeneration()
}
