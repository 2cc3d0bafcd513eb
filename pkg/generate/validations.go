package generate

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/translate"
)

// Validations are the rules of configs that watch one kind, for the root of its CustomResourceDefinition's schema.
type Validations struct {
	// Kind is the upstream kind.
	Kind schema.GroupVersionKind
	// Operators are those whose rules they are.
	Operators []string
	// Rules are entries of x-kubernetes-validations, in the order of the configs. Self stays what it is; params are
	// written in.
	Rules []apiextensionsv1.ValidationRule
	// Notes say what was left out and why, a sentence each.
	Notes []string

	// from says of each rule where it comes from.
	from []string
	// leavesOutCostly: Fit leaves out a rule that could cost too much, instead of returning it as refused.
	leavesOutCostly bool
}

// CRDValidations makes of the rules under validate what a CustomResourceDefinition has for the same. A rule is left out
// that reads what it cannot see there: inputs, the status, and of metadata anything but the name. So are those about
// kinds of Kubernetes' own.
func CRDValidations(list []*compile.Pipeline) ([]*Validations, error) {
	var all []*Validations
	for _, p := range list {
		if len(p.Config.Validate) == 0 || p.HasRows() { // an API server admits no rows
			continue
		}
		i := slices.IndexFunc(all, func(v *Validations) bool { return v.Kind == p.Upstream.GVK })
		if i < 0 {
			i = len(all)
			all = append(all, &Validations{Kind: p.Upstream.GVK})
		}
		if kinds.IsBuiltin(p.Upstream.GVK.GroupKind()) {
			all[i].Notes = append(all[i].Notes,
				fmt.Sprintf("the rules of operator %s are left out: %s is a built-in kind and has no CustomResourceDefinition: "+
					"use generate policy", p.Name, p.Upstream.GVK.Kind))
			continue
		}
		if err := all[i].add(p); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (v *Validations) add(p *compile.Pipeline) error {
	set, err := rulesOf(p, translate.Dialect{Self: "self", Values: p.Params})
	if err != nil {
		return err
	}
	v.Operators = append(v.Operators, p.Name)
	if p.SelectsLabels() || p.HasMatchConditions() {
		v.Notes = append(v.Notes,
			"the watch of operator "+p.Name+" selects some objects; in a CustomResourceDefinition, its rules hold for all")
	}
	for _, r := range set.list {
		from := fmt.Sprintf("validate[%d] of operator %s", r.index, p.Name)
		made, why, less := set.definitionRule(r)
		if why != "" {
			v.Notes = append(v.Notes, from+" is left out: it "+why)
			continue
		}
		if less != "" {
			v.Notes = append(v.Notes, from+": its messageExpression is left out: it "+less)
		}
		v.Rules, v.from = append(v.Rules, made), append(v.from, from)
	}
	return nil
}

// definitionRule is a rule as a definition has it; why says why it has no counterpart, less why its messageExpression
// has none.
func (s *ruleSet) definitionRule(r configRule) (made apiextensionsv1.ValidationRule, why, less string) {
	if why = s.unknownToDefinition(r, rules.PartRule); why != "" {
		return made, why, ""
	}
	made = apiextensionsv1.ValidationRule{Message: strings.TrimSpace(r.Message), FieldPath: r.FieldPath}
	if r.Reason != "" && r.Reason != rules.FieldValueInvalid {
		reason := apiextensionsv1.FieldValueErrorReason(r.Reason)
		made.Reason = &reason
	}
	var err error
	if made.Rule, err = s.inlined(r, rules.PartRule); err != nil {
		return made, reasonOf(err), ""
	}
	if made.Rule != strings.TrimSpace(r.Rule) && made.Message == "" {
		made.Message = r.fails.Message // the rule as it was written
	}
	if r.MessageExpression == "" {
		return made, "", ""
	}
	if less = s.unknownToDefinition(r, rules.PartMessageExpression); less == "" {
		made.MessageExpression, err = s.inlined(r, rules.PartMessageExpression)
		less = reasonOf(err)
	}
	return made, "", less
}

// inlined is a part of a rule with variables and params written in; as it is where it reads none.
func (s *ruleSet) inlined(r configRule, part rules.Part) (string, error) {
	text, write := r.Rule, s.translator.Bool
	if part == rules.PartMessageExpression {
		text, write = r.MessageExpression, s.translator.String
	}
	if paths, whole := s.validator.ReadsOf(r.index, part, "params"); !whole && len(paths) == 0 {
		write = func(expr string) (string, error) { return strings.TrimSpace(expr), nil }
	}
	return s.translated(text, write)
}

// unknownToDefinition says what a part of a rule reads that a definition's rules cannot see; "" where there is nothing
// of it.
func (s *ruleSet) unknownToDefinition(r configRule, part rules.Part) string {
	if why := s.unknownAtTheDoor(r, part); why != "" {
		return why
	}
	paths, whole := s.validator.ReadsOf(r.index, part, "self")
	if whole {
		return "reads the object as a whole"
	}
	for _, path := range paths {
		switch {
		case path[0] != "metadata":
		case len(path) == 1:
			return "reads metadata as a whole, of which a definition's rules see name and generateName alone"
		case path[1] != "name" && path[1] != "generateName":
			return fmt.Sprintf("reads metadata.%s, and a definition's rules see name and generateName alone", path[1])
		}
	}
	return ""
}
