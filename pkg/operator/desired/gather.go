package desired

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// InputRef says where an input of one upstream is.
type InputRef struct {
	At operator.Ref
	// Err is why that is not known: the expression failed, or gave what is not a valid name.
	Err error
	// List says which objects a list may have; nil for a single object.
	List *Listing
}

// None reports whether the upstream names no object: objectName gave an empty text.
func (r InputRef) None() bool { return r.Err == nil && r.At.Name == "" }

// InputRefs says where the inputs of an upstream stand, in the config's order. The upstream chooses a name at most: the
// namespace is its own or the one that the config fixes.
func (r *Renderer) InputRefs(ctx context.Context, upstream *unstructured.Unstructured) []InputRef {
	if len(r.Inputs) == 0 {
		return nil
	}
	vars := rules.Vars{Self: upstream.Object, Params: r.Params}
	budget := rules.NewBudget(ctx)
	refs := make([]InputRef, len(r.Inputs))
	for i, s := range r.Inputs {
		if s.Config.List != nil {
			refs[i].List = r.listingFor(s, upstream)
			continue
		}
		name, err := s.NameFor(vars, budget)
		if err != nil {
			refs[i].Err = redact.Hide(s.HidesValues, redact.Errorf("input %s: %w", s.Name, err))
			continue
		}
		if name != "" {
			refs[i].At = operator.Ref{Namespace: s.namespaceFor(r.Settings, upstream), Name: name}
		}
	}
	return refs
}

// namespaceFor is the namespace that the config fixes, else the upstream's own; that of a Namespace is itself.
func (s *InputSource) namespaceFor(settings *operator.Settings, upstream *unstructured.Unstructured) string {
	switch {
	case s.HasRows():
		return s.Name
	case !s.Kind.Namespaced:
		return ""
	case s.Config.Namespace != "":
		return s.Config.Namespace
	}
	return ownNamespace(settings, upstream)
}

// Objects is where inputs are found, each as View.Cut left it.
type Objects interface {
	// One returns the object at a place; nil if there is none.
	One(s *InputSource, at operator.Ref) map[string]any
	// Listed returns the objects of a list, as Members gives them.
	Listed(s *InputSource, listing *Listing) ([]any, error)
}

// InputsAt gathers the inputs at refs.
func (r *Renderer) InputsAt(refs []InputRef, from Objects) Inputs {
	if len(r.Inputs) == 0 {
		return Inputs{}
	}
	in := Inputs{objects: make(map[string]any, len(refs)), problems: make([]error, len(refs))}
	for i, s := range r.Inputs {
		in.objects[s.Name], in.problems[i] = s.read(refs[i], from)
	}
	return in
}

// read returns an input; nil for one that is missing, with the reason if what reads it cannot do without.
func (s *InputSource) read(ref InputRef, from Objects) (any, error) {
	if ref.Err != nil {
		return nil, ref.Err
	}
	if err := s.Kind.Missing; err != nil && (s.Config.Missing != config.MissingAllow || !kinds.IsNotDefined(err)) {
		return nil, &operator.WaitingError{Message: fmt.Sprintf("input %s: %v", s.Name, err)}
	}
	if ref.List != nil {
		list, err := from.Listed(s, ref.List)
		if err != nil {
			return nil, err
		}
		return list, nil
	}
	if !ref.None() {
		if obj := from.One(s, ref.At); obj != nil {
			return obj, nil
		}
	}
	if s.Config.Missing == config.MissingAllow {
		return nil, nil
	}
	return nil, &operator.WaitingError{Message: s.missing(ref)}
}

func (s *InputSource) missing(ref InputRef) string {
	if ref.None() {
		return fmt.Sprintf("input %s: the upstream does not name a %s, and input.missing is Wait", s.Name, s.Kind.GVK.Kind)
	}
	return fmt.Sprintf("input %s: %s %s does not exist", s.Name, s.Kind.GVK.Kind, ref.At)
}

// listingFor says which objects a list of an upstream may have.
func (r *Renderer) listingFor(s *InputSource, upstream *unstructured.Unstructured) *Listing {
	l := &Listing{params: r.Params}
	if len(s.Config.List.Namespaces) == 0 {
		l.Namespace = s.namespaceFor(r.Settings, upstream)
	}
	if s.Matching == nil {
		return l
	}
	paths, whole := s.Matching.Reads("self")
	if l.self = upstream.Object; !whole {
		l.self = rules.Prune(upstream.Object, paths)
	}
	l.self = (&unstructured.Unstructured{Object: l.self}).DeepCopy().Object
	if equal := s.Matching.Equality(); equal != nil {
		l.Key = keyAt(l.self, equal.Self)
	}
	return l
}
