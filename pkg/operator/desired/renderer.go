package desired

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// VarsOf are what expressions can read.
func (r *Renderer) VarsOf(upstream *unstructured.Unstructured, in Inputs) rules.Vars {
	vars := rules.Vars{Self: upstream.Object, Params: r.Params, Inputs: in.objects,
		Downstreams: in.downstreams, Values: in.values}
	if vars.Values == nil && len(r.Variables) > 0 {
		vars.Values = rules.NewValues()
	}
	return vars
}

// unserved is why nothing can be made of the downstream yet: its kind is not there.
func (d *Downstream) unserved() error {
	if d.Kind.Missing == nil {
		return nil
	}
	return &operator.WaitingError{Message: d.Kind.Missing.Error()}
}

// Renderer has the rules and templates of one config that say what an upstream asks for. It is safe for concurrent use,
// and must not be changed once it is compiled.
type Renderer struct {
	*operator.Settings
	// Downstreams are in the config's order, as those of Settings.
	Downstreams []*Downstream
	// Inputs are in the config's order.
	Inputs []*InputSource
	// Before is what is made when an upstream is deleted, before anything goes; nil if the config has none.
	Before *Before
	// Params are the values of the config's parameters, of JSON's types. They are shared: never change them.
	Params map[string]any
	// Order is that of the downstreams: each behind those that it reads.
	Order []int
	// Variables are in the config's order.
	Variables []Variable
	// MatchConditions are those of watch.matchConditions.
	MatchConditions []MatchCondition
	// Validator has the rules of validate; nil if the config has none. ValidatorInputs are what they read.
	Validator       *rules.Validator
	ValidatorInputs InputSet
	// QuietRules has the rules of the validator whose errors may quote a value of a Secret.
	QuietRules []bool
}

// Downstream is one compiled downstream of a config.
type Downstream struct {
	*operator.Downstream
	// HidesValues: errors of when and of making the document may quote a value of a Secret.
	HidesValues bool
	// Items gives the items of forEach; nil without. ItemsInputs are the inputs that it reads.
	Items       *rules.Program
	ItemsInputs InputSet
	// Shown is what others read of its objects.
	Shown InputView
	// When is nil if the object is always wanted. WhenInputs are the inputs that it reads.
	When       *rules.Program
	WhenInputs InputSet
	// Template gives the document.
	Template *program.Template
	// Place returns file and line of a line of the template, such as that of a hole or of an error.
	Place func(line int) (file string, at int)
	// Inputs are what the document is made from.
	Inputs InputSet
	// Labels and Annotations are those of conventions, by key.
	Labels, Annotations []TextEntry
}

// TextEntry is a label or an annotation of conventions.
type TextEntry struct {
	Key    string
	Text   *program.Template
	Inputs InputSet
}

// Variable is one of the config's variables.
type Variable struct {
	Name    string
	Program *rules.Program
}

// MatchCondition is one of watch.matchConditions.
type MatchCondition struct {
	Name    string
	Program *rules.Program
	// HidesValues: its errors may quote a value of a Secret.
	HidesValues bool
}

// Before is the compiled deletion.before.
type Before struct {
	Config *config.Before
	// Object has what it shares with a downstream: kind, view, selector and template. It is none of Renderer.Downstreams.
	Object *Downstream
	// Done and Failed are doneWhen and failedWhen.
	Done, Failed *rules.Program
	// HidesValues: errors of its expressions may quote a value of a Secret.
	HidesValues bool
}

// VariableProgram returns the program of a variable; nil if there is none that compiles.
func (r *Renderer) VariableProgram(name string) *rules.Program {
	i := slices.IndexFunc(r.Variables, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return r.Variables[i].Program
}

// valuesOf gives templates the values of variables.
func (r *Renderer) valuesOf(vars rules.Vars, budget *rules.Budget) func(name string) (any, error) {
	return func(name string) (any, error) {
		program := r.VariableProgram(name)
		if program == nil {
			return nil, fmt.Errorf("there is no variable %q", name)
		}
		value, err := program.VariableValue(name, vars, budget)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", name, err)
		}
		return value, nil
	}
}

// ownNamespace is the namespace that an upstream is in, empty where it is in none: a Namespace is in itself.
func ownNamespace(s *operator.Settings, upstream *unstructured.Unstructured) string {
	if s.UpstreamIsNamespace() {
		return upstream.GetName()
	}
	return upstream.GetNamespace()
}
