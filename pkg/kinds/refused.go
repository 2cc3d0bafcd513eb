package kinds

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// What the rules of a definition may cost at most, as the API server estimates it from the bounds of its schema, in
// CEL's units: each one, and all together.
const (
	MaxRuleCost  = 10_000_000
	MaxTotalCost = 100_000_000
)

// Refusal is a reason for which an API server does not take a definition.
type Refusal struct {
	// Path is a field of the objects; items of lists and maps take no step.
	Path        fieldpath.Path
	Reason, Fix string
}

// Refusals lists what is wrong with the types, defaults and rules in the schemas of a definition. The error is about a
// schema that is not structural.
func Refusals(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]Refusal, error) {
	var all []Refusal
	for i := range crd.Spec.Versions {
		_, s, err := structuralOf(&crd.Spec.Versions[i])
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", crd.Spec.Versions[i].Name, err)
		}
		if wrong := typeRefusals(s); len(wrong) > 0 {
			all = append(all, wrong...)
			continue // defaults and rules cannot be checked
		}
		errs, err := defaulting.ValidateDefaults(ctx, field.NewPath("schema"), s, true, true)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", crd.Spec.Versions[i].Name, err)
		}
		once := uint64(1)
		rules := ruleRefusals(s, true, nil, &once)
		for _, e := range errs {
			// A default cannot be checked by a rule that does not fit.
			if path := pathIn(e.Field); !slices.ContainsFunc(rules, func(r Refusal) bool { return r.Path.Equal(path) }) {
				all = append(all, Refusal{Path: path, Reason: "the default does not fit: " + e.ErrorBody()})
			}
		}
		all = append(append(all, rules...), repeatedDefaults(s)...)
	}
	return all, nil
}

// eachNode visits a schema and all below it. Items of lists and maps take no step.
func eachNode(
	s *structuralschema.Structural, at fieldpath.Path, visit func(*structuralschema.Structural, fieldpath.Path),
) {
	if s == nil {
		return
	}
	visit(s, at)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		eachNode(&property, at.Child(name), visit)
	}
	eachNode(s.Items, at, visit)
	if s.AdditionalProperties != nil {
		eachNode(s.AdditionalProperties.Structural, at, visit)
	}
}

// typeRefusals is about types that no API server knows.
func typeRefusals(s *structuralschema.Structural) (all []Refusal) {
	eachNode(s, nil, func(s *structuralschema.Structural, at fieldpath.Path) {
		if s.Type != "" && !slices.Contains(types, s.Type) {
			all = append(all, Refusal{at, fmt.Sprintf("unknown type %q: valid types are %s", s.Type,
				strings.Join(types, ", ")), ""})
		}
	})
	return all
}

// repeatedDefaults is about defaults with an item twice, in a set or a list with keys: an API server takes the
// definition, and then refuses each object that gets the default.
func repeatedDefaults(s *structuralschema.Structural) (all []Refusal) {
	eachNode(s, nil, func(s *structuralschema.Structural, at fieldpath.Path) {
		if s.Default.Object == nil {
			return
		}
		for _, e := range listtype.ValidateListSetsAndMaps(nil, within(s), map[string]any{"default": s.Default.Object}) {
			all = append(all, Refusal{Path: at, Reason: "the default does not fit: " + e.ErrorBody()})
		}
	})
	return all
}

var types = []string{"array", "boolean", "integer", "number", "object", "string"}

// within is the schema of an object that has such a value as its default.
func within(s *structuralschema.Structural) *structuralschema.Structural {
	return &structuralschema.Structural{Properties: map[string]structuralschema.Structural{"default": *s}}
}

var propertyOf = regexp.MustCompile(`\.properties\[([^\]]*)\]`)

// pathIn is the field of the objects that a place in a schema is about.
func pathIn(place string) fieldpath.Path {
	var path fieldpath.Path
	for _, m := range propertyOf.FindAllStringSubmatch(place, -1) {
		path = path.Child(m[1])
	}
	return path
}

// ruleRefusals is about the rules of a schema and those below it. times is how many such values an object can have;
// nil: any number.
func ruleRefusals(s *structuralschema.Structural, root bool, at fieldpath.Path, times *uint64) []Refusal {
	if s == nil {
		return nil
	}
	all := ruleRefusalsAt(s, root, at, times)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		all = append(all, ruleRefusals(&property, false, at.Child(name), times)...)
	}
	all = append(all, ruleRefusals(s.Items, false, at, timesAlso(times, s.ValueValidation, false))...)
	if s.AdditionalProperties != nil {
		all = append(all, ruleRefusals(s.AdditionalProperties.Structural, false, at,
			timesAlso(times, s.ValueValidation, true))...)
	}
	return all
}

// timesAlso multiplies by the bound of a list or map.
func timesAlso(times *uint64, bounds *structuralschema.ValueValidation, isMap bool) *uint64 {
	if times == nil || bounds == nil {
		return nil
	}
	most := bounds.MaxItems
	if isMap {
		most = bounds.MaxProperties
	}
	if most == nil {
		return nil
	}
	product := multiplied(*times, uint64(max(*most, 0)))
	return &product
}

func ruleRefusalsAt(s *structuralschema.Structural, root bool, at fieldpath.Path, times *uint64) []Refusal {
	if len(s.XValidations) == 0 {
		return nil
	}
	results, err := CompileRules(s, root)
	if err != nil {
		return []Refusal{{Path: at, Reason: fmt.Sprintf("its rules cannot be compiled: %v", err)}}
	}
	var all []Refusal
	for i, r := range results {
		cost := multiplied(r.MaxCost, r.MaxCardinality)
		if times != nil {
			cost = multiplied(r.MaxCost, *times)
		}
		switch {
		case r.Error != nil:
			all = append(all, Refusal{Path: at, Reason: fmt.Sprintf("the rule %s does not fit the schema: %s",
				s.XValidations[i].Rule, RuleProblem(r.Error))})
		case cost > MaxRuleCost:
			all = append(all, Refusal{at, fmt.Sprintf("the rule %s could cost more than an API server allows",
				s.XValidations[i].Rule),
				"give the lists and texts that it reads, and the lists that it is in, maxItems and maxLength"})
		}
	}
	return all
}

// CompileRules compiles the rules of a schema, as the API server does it. root says that the schema is that of a whole
// object.
func CompileRules(s *structuralschema.Structural, root bool) ([]cel.CompilationResult, error) {
	return cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()),
		cel.NewExpressionsEnvLoader())
}

// RuleProblem is what an error of a rule says, on one line: it goes on with a picture of the place.
func RuleProblem(err *apiservercel.Error) string {
	for _, line := range strings.Split(err.Detail, "\n") {
		if _, problem, ok := strings.Cut(line, "<input>:"); ok {
			_, problem, _ = strings.Cut(problem, ": ")
			return strings.TrimSpace(problem)
		}
	}
	line, _, _ := strings.Cut(err.Detail, "\n")
	return line
}

// multiplied is a product of estimates, of which some are as large as can be.
func multiplied(a, b uint64) uint64 {
	if a != 0 && math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}
