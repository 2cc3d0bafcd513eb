package observe

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Cache is what watches show. What it returns must not be changed, and may be older than what the API server has.
type Cache interface {
	// Upstream is the upstream of that name, a copy; nil if there is none.
	Upstream(ref operator.Ref) (*unstructured.Unstructured, error)
	// UpstreamUID is its uid; empty if there is none.
	UpstreamUID(ref operator.Ref) types.UID
	// Excludes reports whether there is an object of that name that watch.matchConditions exclude: it is not an upstream.
	Excludes(ref operator.Ref) bool
	// HasApplied reports whether a field manager has applied it, or its status.
	HasApplied(ref operator.Ref, manager string) bool
	// Watches reports whether upstreams of a namespace are watched; "" is for cluster-scoped ones.
	Watches(namespace string) bool
	// NamespaceLabels are a Namespace's labels; ok is false if there is none.
	NamespaceLabels(name string) (set labels.Set, ok bool)
	// Live is the object of downstream i, or of pipeline.BeforeIndex, at a place; nil if there is none.
	Live(i int, at operator.Ref) *drift.Live
	// NoteReturned says that a write to an object of downstream i returned it, in the downstream's view. It is not changed
	// from then on.
	NoteReturned(i int, live *drift.Live)
	// OwnedBy lists those with the uid of an upstream in their owner marks.
	OwnedBy(i int, uid types.UID) []*drift.Live
	// Objects lists all objects of downstream i.
	Objects(i int) []*drift.Live
	// BeforeObjectsOf lists the deletion.before objects with the name of an upstream in their owner marks.
	BeforeObjectsOf(name string) []*drift.Live
	// Deleting lists the upstreams that are being deleted.
	Deleting() []operator.Ref
	// Input is an object of input i; nil if there is none.
	Input(i int, at operator.Ref) Input
	// Inputs are at least those objects of input i, a list, that it may have.
	Inputs(i int, of *desired.Listing) []Input
}

// Input is an input in a Cache: only what is read of it.
type Input interface {
	desired.ListObject
	GetUID() types.UID
	// Digest is the digest of what is read.
	Digest() canonical.Sum
	// Unpack returns what is read, as a copy.
	Unpack() (map[string]any, error)
}
