package desired

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Listing says which objects an input of one upstream may have.
type Listing struct {
	// Namespace of the objects; empty for all that are watched.
	Namespace string
	// Key is what the objects' keys must be; empty: any.
	Key string

	self, params map[string]any // what list.matching reads
}

// ListObject is an object that a list may have, as far as list.matching reads it.
type ListObject interface {
	GetNamespace() string
	GetName() string
	// Match returns what View.Match returned.
	Match() Match
}

// matches evaluates list.matching for an object and an upstream.
func (s *InputSource) matches(l *Listing, m Match, budget *rules.Budget) (bool, error) {
	if s.Matching == nil {
		return true, nil
	}
	v, err := s.Matching.Eval(rules.Vars{Self: l.self, Object: m.object, Params: l.params}, budget)
	return v == true, err
}

// MayHave reports whether the list may have an object, by its namespace and key.
func (l *Listing) MayHave(o ListObject) bool {
	key := o.Match().Key
	return (l.Namespace == "" || l.Namespace == o.GetNamespace()) && (l.Key == "" || key == "" || l.Key == key)
}

// Concerns reports whether a list may have an object in one of its states, so that a change from one to the other is
// one of the list.
func (s *InputSource) Concerns(l *Listing, budget *rules.Budget, states []Match) bool {
	return slices.ContainsFunc(states, func(m Match) bool {
		matches, err := s.matches(l, m, budget)
		return matches || err != nil // whoever evaluates the list finds the error
	})
}

// Members returns those of the objects that the list has, sorted by namespace and name, rows by key. objects are all
// that it may have, and may be more. If the expression fails for one, or if there are too many, the list is unknown.
func Members[O ListObject](ctx context.Context, s *InputSource, l *Listing, objects []O) ([]O, error) {
	var members []O
	budget := rules.NewBudget(ctx)
	for _, o := range objects {
		if !l.MayHave(o) {
			continue
		}
		matches, err := s.matches(l, o.Match(), budget)
		if err != nil {
			return nil, redact.Hide(s.HidesValues, redact.Errorf("input %s: evaluating list.matching for %s %s: %w",
				s.Name, s.Kind.GVK.Kind, operator.Ref{Namespace: o.GetNamespace(), Name: o.GetName()}, err))
		}
		if matches {
			members = append(members, o)
		}
	}
	if most := *s.Config.List.MaxItems; len(members) > most {
		return nil, &operator.WaitingError{Message: fmt.Sprintf(
			"input %s: the list has %d objects, more than list.maxItems: %d: select fewer, or raise it",
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
