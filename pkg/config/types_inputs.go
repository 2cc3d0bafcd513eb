package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/config/query"
)

// Input is a related object that templates and rules may read.
type Input struct {
	// Name of the input: input "NAME" in templates, inputs.NAME in CEL.
	Name string `json:"name" form:"member"`
	// APIVersion of the input's kind.
	APIVersion string `json:"apiVersion,omitempty" form:"apiVersion"`
	// Kind of the input.
	Kind string `json:"kind,omitempty" form:"kind"`
	// SQL is a query whose rows are read in place of the objects of a kind: .row.COLUMN.
	SQL *query.Rows `json:"sql,omitempty"`
	// List makes the input a list of objects instead of one, sorted by namespace and name; of rows, by their keys.
	List *InputList `json:"list,omitempty"`
	// ObjectName is a CEL expression that gives the object's name from the upstream; of a row, the text of its key.
	ObjectName string `json:"objectName,omitempty" holds:"cel"`
	// FixedName is the object's name, or the key of a row, if it is the same for all upstreams.
	FixedName string `json:"fixedName,omitempty"`
	// Namespace of the object: fixed text, which an upstream cannot change. Default: the upstream's namespace.
	Namespace string `json:"namespace,omitempty" form:"dnsLabel"`
	// Missing is Wait (default: what reads a missing input waits for it), or Allow (it is null).
	Missing MissingPolicy `json:"missing,omitempty"`
}

// InputList says which objects an input has that is a list.
type InputList struct {
	// LabelSelector selects objects by their labels; the API server applies it.
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// Matching is a CEL expression over object and self that is true for the objects that an upstream reads, such as
	// object.spec.team == self.spec.team.
	Matching string `json:"matching,omitempty" holds:"cel"`
	// Namespaces of the objects: fixed text, which an upstream cannot change; "*" is all. Default: the upstream's
	// namespace.
	Namespaces []string `json:"namespaces,omitempty" form:"namespaceOrAll" min:"1" unique:"true"`
	// MaxItems is how many objects there may be (default 1000); with more, what reads the input waits.
	MaxItems *int `json:"maxItems,omitempty" min:"1" max:"10000"`
}

// AllNamespaces is what list.namespaces of an input has for all namespaces.
const AllNamespaces = "*"

// In returns the namespaces in which the objects of an input can be, if upstreams are watched in those given; none
// means all.
func (in Input) In(watched []string, upstreamNamespaced bool) []string {
	switch {
	case in.Namespace != "":
		return []string{in.Namespace}
	case in.List != nil && slices.Contains(in.List.Namespaces, AllNamespaces):
		return nil
	case in.List != nil && len(in.List.Namespaces) > 0:
		return in.List.Namespaces
	case !upstreamNamespaced: // of a Namespace, the own one is itself
		return nil
	}
	return watched
}
