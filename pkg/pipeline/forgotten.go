package pipeline

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
