package generate

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// fitFieldPath removes the fieldPath of a rule if no definition may have it.
func (v *Validations) fitFieldPath(
	rule *apiextensionsv1.ValidationRule, schema *structuralschema.Structural, from string,
) {
	if _, _, err := schemacel.ValidFieldPath(rule.FieldPath, schema); err != nil && rule.FieldPath != "" {
		const why = ": its fieldPath is left out: in a CustomResourceDefinition it names a field of the schema, outside " +
			"of lists"
		v.Notes = append(v.Notes, from+why)
		rule.FieldPath = ""
	}
}

// FitAll holds rules to those definitions that are of their kinds, and returns what the API server would refuse them
// for.
func FitAll(
	list []*Validations, definitions []*apiextensionsv1.CustomResourceDefinition,
) (refused []string, err error) {
	for _, crd := range definitions {
		for _, v := range list {
			if crd.Spec.Group != v.Kind.Group || crd.Spec.Names.Kind != v.Kind.Kind {
				continue
			}
			why, err := v.Fit(crd)
			if err != nil {
				return nil, err
			}
			refused = append(refused, why...)
		}
	}
	return refused, nil
}

// Fit holds the rules to the definition that they are for, as the API server will: it compiles them against its schema,
// and estimates what they may cost. A rule that does not compile there, for example since it reads what the schema
// leaves open, is left out with a note. What the API server would refuse the definition for is returned, a sentence
// each.
func (v *Validations) Fit(crd *apiextensionsv1.CustomResourceDefinition) (refused []string, err error) {
	schema, err := v.structural(crd)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
	}
	schema.XValidations = v.Rules
	results, err := kinds.CompileRules(schema, true)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: compiling the rules: %w", crd.Name, err)
	}
	total := uint64(0)
	var rules []apiextensionsv1.ValidationRule
	var from []string
	for i, r := range results {
		if r.Error != nil {
			v.Notes = append(v.Notes, v.from[i]+" is left out: it does not fit the schema: "+kinds.RuleProblem(r.Error))
			continue
		}
		rule, cost := v.Rules[i], r.MaxCost
		if why := unfitMessage(r); why != "" {
			v.Notes = append(v.Notes, v.from[i]+": its messageExpression is left out: it "+why)
			rule.MessageExpression = ""
		} else {
			cost = saturating(cost, r.MessageExpressionMaxCost)
		}
		if v.leavesOutCostly && (r.MaxCost > kinds.MaxRuleCost || saturating(total, cost) > kinds.MaxTotalCost) {
			v.Notes = append(
				v.Notes,
				v.from[i]+" is left out: it could cost more than an API server allows: give the lists, maps and texts that it "+
					"reads "+
					"maxItems and maxLength",
			)
			continue
		}
		if r.MaxCost > kinds.MaxRuleCost {
			refused = append(
				refused,
				fmt.Sprintf("%s could cost %s as much as a rule may: give the lists, maps and texts that it reads maxItems, "+
					"maxProperties and maxLength, and ask has(…) rather than orValue, behind which bounds are not seen", v.from[i],
					times(r.MaxCost, kinds.MaxRuleCost)),
			)
		}
		v.fitFieldPath(&rule, schema, v.from[i])
		total = saturating(total, cost)
		rules, from = append(rules, rule), append(from, v.from[i])
	}
	v.Rules, v.from = rules, from
	if total > kinds.MaxTotalCost && len(refused) == 0 {
		refused = append(
			refused,
			fmt.Sprintf(
				"the rules together could cost %s as much as they may: give lists, maps and texts maxItems, maxProperties and "+
					"maxLength",
				times(total, kinds.MaxTotalCost),
			),
		)
	}
	return refused, nil
}

// unfitMessage says why the messageExpression of a rule that fits has to be left out; "" where it fits, too.
func unfitMessage(r schemacel.CompilationResult) string {
	switch {
	case r.MessageExpressionError != nil:
		return "does not fit the schema: " + kinds.RuleProblem(r.MessageExpressionError)
	case r.MessageExpressionMaxCost > kinds.MaxRuleCost:
		return "could cost more than a rule may, since it is not known how long the text gets"
	}
	return ""
}

// saturating adds estimates, of which some are as large as can be.
func saturating(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// times is "more than 3 times".
func times(cost, limit uint64) string {
	if n := cost / limit; n <= 100 {
		return fmt.Sprintf("more than %d times", max(n, 1))
	}
	return "more than 100 times"
}

// structural is the schema of the version.
func (v *Validations) structural(crd *apiextensionsv1.CustomResourceDefinition) (*structuralschema.Structural, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return version.Name == v.Kind.Version
	})
	if i < 0 || crd.Spec.Versions[i].Schema == nil || crd.Spec.Versions[i].Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("it has no schema of version %s", v.Kind.Version)
	}
	var internal apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema,
		&internal, nil)
	if err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(&internal)
}
