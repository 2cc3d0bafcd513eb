// Package kinds provides the resource, scope, status subresource and OpenAPI schema of a kind, from files (Offline) or
// from an API server (Live). It does not validate objects or watch CustomResourceDefinitions: call
// (*Cluster).Invalidate when one changes.
package kinds

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// Kind describes one kind at one version. It is shared: never change it.
type Kind struct {
	GVK schema.GroupVersionKind
	// GVR is the resource of the kind.
	GVR schema.GroupVersionResource
	// Namespaced is false for a cluster-scoped kind.
	Namespaced bool
	// HasStatus means that the kind has a status subresource: a write to the main resource then ignores .status.
	HasStatus bool
	// Schema is the OpenAPI schema without descriptions, with references resolved; a recursive reference becomes an object
	// without properties. It is nil if unknown, see SchemaErr.
	Schema *spec.Schema
	// SchemaErr says why Schema is nil; nil if Schema is set.
	SchemaErr error
	// Missing is the error if only GVK is known: the API server does not serve the kind (ErrUnknown), or the request
	// failed. It is set by callers that continue without the kind; a Source returns the error.
	Missing error
}

// Source provides kinds.
type Source interface {
	// Kind returns the description of a kind. The error is ErrUnknown (errors.Is) if the source knows that there is no
	// such kind, and another one if it does not know, because a request failed.
	Kind(gvk schema.GroupVersionKind) (*Kind, error)
}

// ErrUnknown means that a kind does not exist. Such errors are *UnknownError.
var ErrUnknown = errors.New("unknown kind")

// UnknownError is the error for a kind that a source does not have.
type UnknownError struct {
	GVK schema.GroupVersionKind
	// Where is the source, for example "the API server".
	Where string
	// Fix says what to do; it may be empty.
	Fix string
	// Elsewhere are the versions in which an API server serves the kind instead.
	Elsewhere []string
	// Definition is the name of the CustomResourceDefinition of the kind if it serves no version: its objects are stored.
	Definition string
	// Hidden means that the existence of such a definition is unknown: the right to list definitions is missing.
	Hidden bool
}

// Error says which kind is missing, where, and how to fix it.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s has no kind %s in %s", e.Where, e.GVK.Kind, e.GVK.GroupVersion())
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	return text
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// IsNotDefined reports whether the error of a Cluster means that no object of the kind exists: the API server serves no
// version of it and has no definition. Objects may exist if another version or a definition without served versions
// exists, or if definitions could not be read.
func IsNotDefined(err error) bool {
	var unknown *UnknownError
	return errors.As(err, &unknown) && len(unknown.Elsewhere) == 0 && unknown.Definition == "" && !unknown.Hidden
}

// Nearby suggests existing kinds: the same kind at other versions, else a kind of the same group and version with a
// similar name, else nothing.
func Nearby(asked schema.GroupVersionKind, have []schema.GroupVersionKind) string {
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
