package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// This file is about inputs that are lists.

// MatchingView is what list.matching reads of an object. It is kept apart, unpacked, since it is asked about each upstream.
type MatchingView struct {
	paths [][]string
	whole bool
	// key is the field that must equal one of the upstream; nil if the expression names none.
	key []string
}

// Listing says which objects an input of one upstream may have.
type Listing struct {
	// Namespace of the objects; empty for all that are watched.
	Namespace string
	// Key is what the objects' keys must be; empty: any.
	Key string

	self, params map[string]any // what list.matching reads
}

// Object is an object that a list may have, as far as list.matching reads it.
type Object interface {
	GetNamespace() string
	GetName() string
	// Match returns what View.Match returned.
	Match() Match
}

// Match is what list.matching reads of an object.
type Match struct {
	// Key is the text in the field that must equal one of the upstream; empty if there is none: only the expression tells then.
	Key    string
	object map[string]any
}

// Match cuts an object down to what list.matching reads, sharing its values with obj.
func (v InputView) Match(obj map[string]any) Match {
	m := v.Matching
	if m == nil {
		return Match{}
	}
	if obj = readable(obj); !m.whole {
		obj = rules.Prune(obj, m.paths)
	}
	return Match{Key: keyAt(obj, m.key), object: obj}
}

// keyAt is the text in a field; empty if there is none, or if the field is not named.
func keyAt(obj map[string]any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	text, _, err := unstructured.NestedString(obj, path...)
	if err != nil {
		return ""
	}
	return text
}

// Selects returns the label selector of a list, which the API server applies.
func (s *InputSource) Selects() (labels.Selector, error) {
	if s.Config.List == nil || s.Config.List.LabelSelector == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Config.List.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("reading list.labelSelector of input %s: %w", s.Name, err)
	}
	return selector, nil
}

// Shows reports whether the watch of a list shows an object of its kind, by its labels and namespace.
func (s *InputSource) Shows(u *unstructured.Unstructured) bool {
	selector, err := s.Selects()
	names := s.Config.List.Namespaces
	return err == nil && selector.Matches(labels.Set(u.GetLabels())) &&
		(len(names) == 0 || s.Config.List.Everywhere() || slices.Contains(names, u.GetNamespace()))
}

// Whole returns all objects of the kind of an input. Inputs can be read from it.
type Whole func(s *InputSource) []*unstructured.Unstructured

// One implements Objects.
func (w Whole) One(s *InputSource, at operator.Ref) map[string]any {
	for _, u := range w(s) {
		if u.GetNamespace() == at.Namespace && u.GetName() == at.Name {
			return s.View.Cut(u.Object)
		}
	}
	return nil
}

// Listed implements Objects.
func (w Whole) Listed(s *InputSource, of *Listing) ([]any, error) {
	var objects []wholeObject
	for _, u := range w(s) {
		if s.Shows(u) {
			objects = append(objects, wholeObject{u, s})
		}
	}
	members, err := Members(context.Background(), s, of, objects)
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

// Match implements Object.
func (o wholeObject) Match() Match { return o.source.View.Match(o.Object) }

// listingFor says which objects a list of an upstream may have.
func (p *Pipeline) listingFor(s *InputSource, upstream *unstructured.Unstructured) *Listing {
	l := &Listing{params: p.params}
	if len(s.Config.List.Namespaces) == 0 {
		l.Namespace = p.inputNamespace(s, upstream)
	}
	if s.matching == nil {
		return l
	}
	paths, whole := s.matching.Reads("self")
	if l.self = upstream.Object; !whole {
		l.self = rules.Prune(upstream.Object, paths)
	}
	l.self = (&unstructured.Unstructured{Object: l.self}).DeepCopy().Object
	if equal := s.matching.Equality(); equal != nil {
		l.Key = keyAt(l.self, equal.Self)
	}
	return l
}

// Matches evaluates list.matching for an object and an upstream.
func (s *InputSource) Matches(l *Listing, m Match, budget *rules.Budget) (bool, error) {
	if s.matching == nil {
		return true, nil
	}
	v, err := s.matching.Eval(rules.Vars{Self: l.self, Object: m.object, Params: l.params}, budget)
	return v == true, err
}

// MayHave reports whether the list may have an object, by its namespace and key.
func (l *Listing) MayHave(o Object) bool {
	key := o.Match().Key
	return (l.Namespace == "" || l.Namespace == o.GetNamespace()) && (l.Key == "" || key == "" || l.Key == key)
}

// Concerns reports whether a list may have an object in one of its states, so that a change from one to the other is one of the list.
func (s *InputSource) Concerns(l *Listing, budget *rules.Budget, states []Match) bool {
	return slices.ContainsFunc(states, func(m Match) bool {
		matches, err := s.Matches(l, m, budget)
		return matches || err != nil // whoever evaluates the list finds the error
	})
}

// Members returns those of the objects that the list has, sorted by namespace and name, rows by key. objects are all that it may have, and may be
// more. If the expression fails for one, or if there are too many, the list is unknown.
func Members[O Object](ctx context.Context, s *InputSource, l *Listing, objects []O) ([]O, error) {
	var members []O
	budget := rules.NewBudget(ctx)
	for _, o := range objects {
		if !l.MayHave(o) {
			continue
		}
		matches, err := s.Matches(l, o.Match(), budget)
		if err != nil {
			return nil, hideValues(s.hidesValues, redact.Errorf("input %s: evaluating list.matching for %s %s: %w",
				s.Name, s.Kind.GVK.Kind, operator.Ref{Namespace: o.GetNamespace(), Name: o.GetName()}, err))
		}
		if matches {
			members = append(members, o)
		}
	}
	if most := *s.Config.List.MaxItems; len(members) > most {
		return nil, &operator.WaitingError{Message: fmt.Sprintf("input %s: the list has %d objects, more than list.maxItems: %d: select fewer, or raise it",
			s.Name, len(members), most)}
	}
	compare := cmp.Compare[string]
	if s.Config.SQL != nil {
		compare = compareRowNames
	}
	slices.SortFunc(members, func(a, b O) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), compare(a.GetName(), b.GetName()))
	})
	return members, nil
}

// Lists reports whether an input is a list that has an object at a place.
func (in Inputs) Lists(s *InputSource, at operator.Ref) bool {
	list, _ := in.objects[s.Name].([]any)
	return slices.ContainsFunc(list, func(one any) bool {
		obj, _ := one.(map[string]any)
		u := unstructured.Unstructured{Object: obj}
		return u.GetNamespace() == at.Namespace && u.GetName() == at.Name
	})
}

// matching compiles the expression of a list.
func (c *compiler) matching(s *InputSource, path string) {
	// Always kept: they tell the objects of a list apart.
	s.View.add([][]string{{"metadata", "namespace"}, {"metadata", "name"}}, false)
	view := &MatchingView{}
	s.View.Matching = view
	expr := s.Config.List.Matching
	if expr == "" {
		return
	}
	s.matching = c.program(path+".list.matching", func() (*rules.Program, error) {
		return c.env.Bool(expr, rules.Matching, s.Name)
	})
	if s.matching == nil {
		return
	}
	c.p.readsStatus = c.p.readsStatus || readsStatus(s.matching.Reads)
	view.paths, view.whole = s.matching.Reads("object")
	s.View.add(view.paths, view.whole) // its digest changes whenever the result may
	if equal := s.matching.Equality(); equal != nil {
		view.key = equal.Object
	}
}
