package pipeline

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Forgotten lists what the upstream's status records of downstreams that the config no longer has, by name or by kind:
// nobody looks at such an object any more, and nothing deletes it.
func (p *Pipeline) Forgotten(upstream *unstructured.Unstructured) []status.Recorded {
	if !p.StatusEnabled() || p.Config.Status.Downstreams == "" {
		return nil
	}
	list, ok := fieldpath.Get(upstream.Object, p.downstreamsPath)
	if !ok {
		return nil
	}
	known := p.Recorded(upstream)
	return slices.DeleteFunc(status.RecordedFrom(list), func(r status.Recorded) bool {
		return r.ObjectName == "" || r.Name == BeforeName || slices.Contains(known, r)
	})
}

// ForgottenObject is one that Forgotten lists, and that exists or may exist.
type ForgottenObject struct {
	status.Recorded
	Resource schema.GroupResource
	// Unread is true if it may exist, and could not be read.
	Unread bool
	// Referenced: it has an owner reference to the upstream, so the garbage collector deletes it.
	Referenced bool
	// Kept is why it is not deleted nevertheless; only in Decision.
	Kept string
}

func (f ForgottenObject) at() Ref { return Ref{Namespace: f.Namespace, Name: f.ObjectName} }

// IsHolder reports whether an object of an API version and kind contains others, which are deleted with it.
func IsHolder(apiVersion, kind string) bool {
	return contentsOf(nil, schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), "") != nil
}

// Contains reports whether an object of a kind at a place would be deleted with a holder, as far as its kind tells its resource.
func Contains(holder schema.GroupVersionKind, name string, kind schema.GroupVersionKind, at Ref) bool {
	c := contentsOf(nil, holder.GroupKind(), name)
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return c != nil && c.contains(plural.GroupResource(), at)
}

// keptHolders are the forgotten objects that the garbage collector would delete with one that stays.
func (p *Pipeline) keptHolders(in Input, left []Outcome) (kept []ForgottenObject) {
	for _, f := range in.Forgotten {
		c := contentsOf(p, schema.FromAPIVersionAndKind(f.APIVersion, f.Kind).GroupKind(), f.ObjectName)
		if c == nil || !f.Referenced {
			continue
		}
		if why := c.staying(in, left); why != "" {
			f.Kept = "it is kept, since " + why
			kept = append(kept, f)
		}
	}
	return kept
}

// mayKeepHolder reports whether a deletion of the upstream may have to keep an object because of a forgotten one in it, for which only the
// finalizer leaves time.
func (p *Pipeline) mayKeepHolder(in Input) bool {
	forgotten := p.Forgotten(in.Upstream)
	if len(forgotten) == 0 {
		return false
	}
	return slices.ContainsFunc(append(p.Recorded(in.Upstream), forgotten...), func(r status.Recorded) bool {
		holds := func(other status.Recorded) bool { return r.Kind != "Namespace" || other.Namespace == r.ObjectName }
		return IsHolder(r.APIVersion, r.Kind) && slices.ContainsFunc(forgotten, holds)
	})
}

// keepForgotten adds what the config has forgotten to what is recorded of its downstreams, so that it is told, and never
// taken for what one of them has left behind. A name that the config has again is recorded for that alone.
func (p *Pipeline) keepForgotten(recorded []status.Recorded, upstream *unstructured.Unstructured) []status.Recorded {
	for _, r := range p.Forgotten(upstream) {
		if !slices.ContainsFunc(recorded, func(have status.Recorded) bool { return have.Name == r.Name || have.UID == r.UID }) {
			r.State = string(StateLeftover)
			recorded = append(recorded, r)
		}
	}
	return recorded
}
