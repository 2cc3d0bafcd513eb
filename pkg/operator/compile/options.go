package compile

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Options are what One knows besides the config.
type Options struct {
	// Kinds knows schema and scope of the kinds that the config names. A kind that it does not know is compiled untyped.
	Kinds kinds.Source
	// Version is the API server's, for the CEL functions that it has; nil: those of this library.
	Version *version.Version
	// Live is true if the pipeline runs against the API server that Kinds asks: what needs a kind that is not served, or that
	// the API server could not be asked about, waits. The upstream's kind must be known all the same.
	Live bool
	// Deletions is true for a config that was cut down to what deletions depend on (load.File.ForDeletion): the pipeline
	// decides about upstreams that are being deleted, and about no others.
	Deletions bool
}

// lookUp asks the source; an unknown kind counts as a namespaced one without a schema.
func lookUp(o Options, apiVersion, kind string) (*kinds.Kind, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	k, err := o.Kinds.Kind(gvk)
	switch {
	case err != nil && o.Live:
		return &kinds.Kind{GVK: gvk, Namespaced: true, Missing: err}, nil
	case errors.Is(err, kinds.ErrUnknown):
		return &kinds.Kind{GVK: gvk, Namespaced: true}, nil
	}
	return k, err
}
