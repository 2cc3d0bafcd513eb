package desired

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// WholeObjects returns all objects of the kind of an input. Inputs can be read from it.
type WholeObjects func(s *InputSource) []*unstructured.Unstructured

// One implements Objects.
func (w WholeObjects) One(s *InputSource, at operator.Ref) map[string]any {
	for _, u := range w(s) {
		if u.GetNamespace() == at.Namespace && u.GetName() == at.Name {
			return s.View.Cut(u.Object)
		}
	}
	return nil
}

// Listed implements Objects.
func (w WholeObjects) Listed(s *InputSource, listing *Listing) ([]any, error) {
	var objects []wholeObject
	for _, u := range w(s) {
		if s.Shows(u) {
			objects = append(objects, wholeObject{u, s})
		}
	}
	members, err := Members(context.Background(), s, listing, objects)
	list := make([]any, len(members))
	for i, o := range members {
		list[i] = s.View.Cut(o.Object)
	}
	return list, err
}

// wholeObject is an object that a list may have, with all its fields.
type wholeObject struct {
	*unstructured.Unstructured
	source *InputSource
}

// Match implements ListObject.
func (o wholeObject) Match() Match { return o.source.View.Match(o.Object) }
