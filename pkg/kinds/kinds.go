// Package kinds answers what is known about a Kubernetes kind: the resource it is served under, whether it is
// namespaced, whether it has a status subresource, and its OpenAPI schema. The answer comes from files (Offline)
// or from an API server (Live).
//
// The package neither validates objects nor watches CustomResourceDefinitions: who learns that a definition has
// changed calls (*Cluster).Invalidate.
package kinds

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Kind is what is known about one kind at one version. It is shared between callers: never change it.
type Kind struct {
	GVK schema.GroupVersionKind
	// GVR is the resource the kind is served under.
	GVR schema.GroupVersionResource
	// Namespaced is false for a cluster-scoped kind.
	Namespaced bool
	// HasStatus tells that the kind has a status subresource: a write to the main resource then ignores .status.
	HasStatus bool
	// Schema is the kind's OpenAPI schema without descriptions, references resolved; a reference back to a schema
	// that is being resolved becomes an object without properties. nil: the schema is not known, see SchemaErr.
	Schema *spec.Schema
	// SchemaErr says why Schema is nil; nil if Schema is set.
	SchemaErr error
	// Missing says why nothing but GVK is known: the API server does not serve the kind (ErrUnknown), or could not be asked.
	// It is set by those who go on without the kind; a Source returns such an error.
	Missing error
}

// Source finds kinds.
type Source interface {
	// Kind returns what is known about the kind. The error is an ErrUnknown (errors.Is) where the source can tell
	// that there is no such kind, and something else where it cannot tell: a request failed.
	Kind(gvk schema.GroupVersionKind) (*Kind, error)
}

// ErrUnknown is what errors.Is finds in the error for a kind that is not there. Such errors are *UnknownError.
var ErrUnknown = errors.New("unknown kind")

// UnknownError tells that a source has no such kind.
type UnknownError struct {
	GVK schema.GroupVersionKind
	// Where says what was asked, for example "the API server".
	Where string
	// Fix says what to do about it; it may be empty.
	Fix string
	// Elsewhere are the versions in which an API server serves the kind instead.
	Elsewhere []string
	// Definition is the name of the CustomResourceDefinition of the kind, which serves it in no version: its objects are stored.
	Definition string
	// Hidden tells that whether there is such a definition is not known: the right to list definitions is missing.
	Hidden bool
}

// Error tells which kind is missing, where, and how to fix it.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s has no kind %s in %s", e.Where, e.GVK.Kind, e.GVK.GroupVersion())
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	return text
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// IsNotDefined reports whether the error of a Cluster says that no object of the kind exists: the API server answered, serves the kind
// in no version, and has no definition of it. An object that is served in another version, or stored under a definition that
// serves none, is there; where the API server could not be asked, or definitions must not be read, it may be.
func IsNotDefined(err error) bool {
	var unknown *UnknownError
	return errors.As(err, &unknown) && len(unknown.Elsewhere) == 0 && unknown.Definition == "" && !unknown.Hidden
}

// nearby says what there is instead of the kind that was asked for: the same kind at other versions, else a kind
// of the same group and version that is spelt almost the same, else nothing.
func nearby(asked schema.GroupVersionKind, have []schema.GroupVersionKind) string {
	var versions []string
	for _, gvk := range have {
		if gvk.GroupKind() == asked.GroupKind() {
			versions = append(versions, gvk.GroupVersion().String())
		}
	}
	if len(versions) > 0 {
		return "it is known in " + strings.Join(versions, ", ")
	}
	var names []string
	for _, gvk := range have {
		if gvk.GroupVersion() == asked.GroupVersion() {
			names = append(names, gvk.Kind)
		}
	}
	if name := spelling.Closest(asked.Kind, names); name != "" {
		return "did you mean " + name + "?"
	}
	return ""
}
