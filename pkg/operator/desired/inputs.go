package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/render/values"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Inputs are the objects that one upstream reads beside itself.
type Inputs struct {
	// objects are by the input's name; a missing one is null.
	objects map[string]any
	// problems are by index, nil if there is none.
	problems []error
	// sibling gives the upstream's own objects, for downstreams that read others, and downstreams are those that one
	// reads.
	sibling     Sibling
	downstreams map[string]any
	// lacking is why what a downstream reads of others is not known yet.
	lacking error
	// item is the item of forEach that a document is rendered for.
	item any
	// larger is asked before rendering uses more than a small share of what it may; nil: it need not ask.
	larger func() error
	// budget is what all renderings of one Desired draw on.
	budget *values.Budget
	// values are those of variables, and rules what all expressions of one Desired draw on; nil: of their own.
	values *rules.Values
	rules  *rules.Budget
}

// Sharing returns in for a process in which upstreams that need much share what they need: larger is called before
// rules and templates for one upstream use more than a sixteenth of what they may. Its error ends them.
func (in Inputs) Sharing(larger func() error) Inputs {
	in.larger = larger
	return in
}

// renderBudget is what one rendering draws on.
func (in Inputs) renderBudget() *values.Budget {
	if in.budget != nil {
		return in.budget
	}
	return values.NewBudget(values.Limits{}, in.larger)
}

// problem is why something that reads these inputs is not known yet; nil if it is.
func (in Inputs) problem(reads InputSet) error {
	for i, err := range in.problems {
		if err != nil && reads.Has(i) {
			return err
		}
	}
	return nil
}

// InputSet has the indexes of the inputs that something reads.
type InputSet []int

// Has reports whether an input is one of them.
func (s InputSet) Has(i int) bool { return slices.Contains(s, i) }

// Add adds inputs that are none of them yet.
func (s *InputSet) Add(list ...int) {
	for _, i := range list {
		if !s.Has(i) {
			*s = append(*s, i)
		}
	}
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

// Sibling returns what the cache keeps of an upstream's own object of a downstream; nil if there is none.
type Sibling func(downstream int, at operator.Ref) map[string]any

// WithSiblings returns in for an upstream whose own objects are known.
func (in Inputs) WithSiblings(sibling Sibling) Inputs {
	in.sibling = sibling
	return in
}
