package apply

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Target is the object that a request is for.
type Target struct {
	GVR       schema.GroupVersionResource
	Namespace string // "" for a cluster-scoped kind
	Name      string
	// Yields means that an apply does not take fields from other managers.
	Yields bool
}

// op describes a kind of request.
type op struct {
	verb  string // for observers
	doing string // the start of errors
	needs string // the required RBAC verbs
	sub   string // the subresource
}

// String returns "deployments.apps apps/web", or "namespaces web" for a cluster-scoped kind.
func (t Target) String() string {
	name := t.Name
	if t.Namespace != "" {
		name = t.Namespace + "/" + t.Name
	}
	return t.resource("") + " " + name
}

// resource returns the resource as in RBAC's documentation: deployments.apps, or deployments.apps/status for a
// subresource.
func (t Target) resource(sub string) string {
	s := t.GVR.GroupResource().String()
	if sub != "" {
		s += "/" + sub
	}
	return s
}
