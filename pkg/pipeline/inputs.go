package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// InputSource is one compiled input of a config.
type InputSource struct {
	Index  int
	Name   string
	Config *config.Input
	Kind   kinds.Kind
	// View is what the cache keeps of an input.
	View InputView

	objectName  *rules.Program // nil where the name is fixed
	matching    *rules.Program // of a list; nil: every object matches
	hidesValues bool           // errors of these two may quote a value of a Secret
}

// InputView says what of an input is kept: what anything in the config reads of it. Equal views share a watch.
type InputView struct {
	// Paths are chains of fields, each kept with everything below it.
	Paths [][]string
	// Whole: all of the object is kept.
	Whole bool
	// Matching is what is kept apart for list.matching; nil where the input is not a list.
	Matching *MatchingView
}

// ID is the same for equal views.
func (v InputView) ID() string {
	id := "whole"
	if !v.Whole {
		id = pathsID(v.Paths)
	}
	if m := v.Matching; m != nil {
		id += "\x02" + pathsID(m.paths) + "\x02" + pathsID([][]string{m.key})
	}
	return id
}

func pathsID(paths [][]string) string {
	lines := make([]string, len(paths))
	for i, path := range paths {
		lines[i] = strings.Join(path, "\x00")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\x01")
}

// Cut returns what of an input can be read, sharing its values with obj. The version and the managed fields are not
// among it: they change without a change of what the object says.
func (v InputView) Cut(obj map[string]any) map[string]any {
	if v.Whole {
		return readable(obj)
	}
	return rules.Prune(readable(obj), v.Paths)
}

// readable is an object without what cannot be read of it.
func readable(obj map[string]any) map[string]any {
	out := maps.Clone(obj)
	if meta, ok := obj["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(meta))
		for key, value := range meta {
			if key != "resourceVersion" && key != "managedFields" {
				kept[key] = value
			}
		}
		out["metadata"] = kept
	}
	return out
}

// add takes in what one more reader reads.
func (v *InputView) add(paths [][]string, whole bool) {
	v.Whole = v.Whole || whole
	v.Paths = append(v.Paths, paths...)
}

// InputRef says where an input of one upstream stands.
type InputRef struct {
	At operator.Ref
	// Err is why that cannot be told: the expression failed, or gave what is no name.
	Err error
	// List says which objects a list may have; nil for a single object.
	List *Listing
}

// None tells that the upstream names no object: objectName gave an empty text.
func (r InputRef) None() bool { return r.Err == nil && r.At.Name == "" }

// Inputs are the objects that one upstream reads beside itself.
type Inputs struct {
	// objects are by the input's name; a missing one is null.
	objects map[string]any
	// problems are by index, nil if there is none.
	problems []error
	// sibling gives the upstream's own objects, for downstreams that read others, and downstreams are those that one reads.
	sibling     Sibling
	downstreams map[string]any
	// lacking is why what a downstream reads of others cannot be told yet.
	lacking error
	// item is the item of forEach that a document is rendered for.
	item any
	// larger is asked before rendering uses more than a small share of what it may; nil: it need not ask.
	larger func() error
	// budget is what all renderings of one Desired draw on.
	budget *render.Budget
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
func (in Inputs) renderBudget() *render.Budget {
	if in.budget != nil {
		return in.budget
	}
	return render.NewBudget(render.Limits{}, in.larger)
}

// InputRefs says where the inputs of an upstream stand, in the config's order. The upstream chooses a name at most: the
// namespace is its own or the one that the config fixes.
func (p *Pipeline) InputRefs(ctx context.Context, upstream *unstructured.Unstructured) []InputRef {
	if len(p.Inputs) == 0 {
		return nil
	}
	vars := rules.Vars{Self: upstream.Object, Params: p.params}
	budget := rules.NewBudget(ctx)
	refs := make([]InputRef, len(p.Inputs))
	for i, s := range p.Inputs {
		if s.Config.List != nil {
			refs[i].List = p.listingFor(s, upstream)
			continue
		}
		name, err := s.nameFor(vars, budget)
		if err != nil {
			refs[i].Err = hideValues(s.hidesValues, redact.Errorf("input %s: %w", s.Name, err))
			continue
		}
		if name != "" {
			refs[i].At = operator.Ref{Namespace: p.inputNamespace(s, upstream), Name: name}
		}
	}
	return refs
}

func (s *InputSource) nameFor(vars rules.Vars, budget *rules.Budget) (string, error) {
	if s.objectName == nil {
		return s.nameOf(s.Config.FixedName), nil
	}
	v, err := s.objectName.Eval(vars, budget)
	if err != nil {
		return "", redact.Errorf("evaluating objectName: %w", err)
	}
	name, _ := v.(string)
	if name == "" || s.HasRows() {
		return s.nameOf(name), nil
	}
	if problems := content.IsPathSegmentName(name); len(problems) > 0 {
		return "", redact.Errorf("objectName gives %q, which is not a valid name: %s", name, strings.Join(problems, "; "))
	}
	return name, nil
}

// nameOf is the name of the object that objectName or fixedName means: of a row they give the key.
func (s *InputSource) nameOf(text string) string {
	if s.HasRows() && text != "" {
		return RowName(text)
	}
	return text
}

// inputNamespace is the namespace that the config fixes, else the upstream's own; that of a Namespace is itself.
func (p *Pipeline) inputNamespace(s *InputSource, upstream *unstructured.Unstructured) string {
	switch {
	case s.HasRows():
		return s.Name
	case !s.Kind.Namespaced:
		return ""
	case s.Config.Namespace != "":
		return s.Config.Namespace
	case p.UpstreamIsNamespace():
		return upstream.GetName()
	}
	return upstream.GetNamespace()
}

// Objects is where inputs are found, each as View.Cut left it.
type Objects interface {
	// One returns the object at a place; nil if there is none.
	One(s *InputSource, at operator.Ref) map[string]any
	// Listed returns the objects of a list, as Members gives them.
	Listed(s *InputSource, of *Listing) ([]any, error)
}

// InputsAt gathers the inputs at refs.
func (p *Pipeline) InputsAt(refs []InputRef, from Objects) Inputs {
	if len(p.Inputs) == 0 {
		return Inputs{}
	}
	in := Inputs{objects: make(map[string]any, len(refs)), problems: make([]error, len(refs))}
	for i, s := range p.Inputs {
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

// unserved is why nothing can be made of the downstream yet: its kind is not there.
func (d *Downstream) unserved() error {
	if d.Kind.Missing == nil {
		return nil
	}
	return &operator.WaitingError{Message: d.Kind.Missing.Error()}
}

// problem is why something that reads these inputs cannot be told yet; nil if it can.
func (in Inputs) problem(reads inputSet) error {
	for i, err := range in.problems {
		if err != nil && reads.has(i) {
			return err
		}
	}
	return nil
}

// Digest is over what can be read of the inputs.
func (in Inputs) Digest() drift.Sum { return drift.Digest(in.objects) }

// inputSet has the indexes of the inputs that something reads.
type inputSet []int

func (s inputSet) has(i int) bool { return slices.Contains(s, i) }

func (s *inputSet) add(list ...int) {
	for _, i := range list {
		if !s.has(i) {
			*s = append(*s, i)
		}
	}
}
