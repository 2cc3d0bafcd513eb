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
		return r.ObjectName == "" || r.Name == HookName || slices.Contains(known, r)
	})
}
