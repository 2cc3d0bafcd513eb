package generate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/translate"
)

// RulesPolicy is the policy by which the API server refuses what the rules under validate call invalid, when it is
// written. prefix is the beginning of its name.
//
// A denial says what the condition would: field, reason and message of the first rule that fails. What is being deleted
// is let through, and so is an update that changes nothing of what the rules read: an object that was there before the
// policy, or that a new rule makes invalid, can still be annotated, released and deleted.
func RulesPolicy(p *compile.Pipeline, prefix string) (*AdmissionPolicy, error) {
	a := &AdmissionPolicy{}
	if len(p.Config.Validate) == 0 {
		return a, nil
	}
	if p.HasRows() {
		a.note("the rules are left out: the upstreams are rows, which no API server admits")
		return a, nil
	}
	set, err := rulesOf(p, translate.Dialect{Self: "object", Plain: true, Params: "variables"})
	if err != nil {
		return nil, err
	}
	var list []admissionv1.Validation
	for _, r := range set.list {
		v, why, less := set.validation(r)
		if why != "" {
			a.note("validate[%d] is left out: it %s", r.index, why)
			continue
		}
		if less != "" {
			a.note("validate[%d]: its messageExpression is left out: it %s", r.index, less)
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return a, nil
	}
	conditions, why := set.conditions()
	if why != "" {
		a.note("the rules are left out: the match condition %s", why)
		return a, nil
	}
	if len(p.Config.Watch.MatchConditions) > 0 {
		a.note("a write is refused if a match condition cannot be evaluated for the object: write conditions that hold " +
			"for any object of " +
			"the kind, with has(…)")
	}
	kind := a.kind(&p.Upstream)
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{onWrites(kind,
			kind.GVR.Resource)}},
		MatchConditions: conditions,
		Validations:     list,
	}
	if spec.Variables, err = set.variables(); err != nil {
		return nil, err
	}
	purpose := fmt.Sprintf("Refuses objects of kind %s that are invalid for operator %s.", p.Upstream.GVK.Kind, p.Name)
	return a, a.add(prefix+p.Name+"-rules", purpose, spec, watched(p))
}

// ruleSet are the rules of a config on their way to another evaluator.
type ruleSet struct {
	pipeline   *compile.Pipeline
	validator  *rules.Validator
	translator *translate.Translator
	env        *rules.Env
	list       []configRule
	// used are those that have got there.
	used []int
}

// configRule is one of a config's rules.
type configRule struct {
	index int
	rules.Validation
	// fails is what it says, where that does not depend on the object.
	fails rules.Failure
}

// rulesOf compiles a config's rules once more: a Pipeline does not give them away.
func rulesOf(p *compile.Pipeline, d translate.Dialect) (*ruleSet, error) {
	env, err := rules.NewEnv(rules.EnvOptions{Self: p.Upstream.Schema})
	if err != nil {
		return nil, fmt.Errorf("operator %s: %w", p.Name, err)
	}
	for _, v := range p.Config.Variables {
		if _, err := env.Variable(v.Name, v.Expression); err != nil {
			return nil, fmt.Errorf("operator %s: variable %s: %w", p.Name, v.Name, err)
		}
	}
	set := &ruleSet{pipeline: p, env: env}
	var given []rules.Validation
	for _, r := range p.Config.Validate {
		given = append(given, rules.Validation{Rule: r.Rule, Message: r.Message, MessageExpression: r.MessageExpression,
			FieldPath: r.FieldPath, Reason: rules.Reason(r.Reason)})
	}
	var problems []rules.IndexedError
	if set.validator, problems = rules.CompileValidation(env, given); len(problems) > 0 {
		return nil, fmt.Errorf("operator %s: validate%w", p.Name, problems[0])
	}
	if set.translator, err = translate.New(env, d); err != nil {
		return nil, fmt.Errorf("operator %s: %w", p.Name, err)
	}
	for i, v := range given {
		set.list = append(set.list, configRule{index: i, Validation: v, fails: set.validator.Failure(i)})
	}
	return set, nil
}

// validation is a rule as a policy has it; why says why it has no counterpart, less why its messageExpression has none.
func (s *ruleSet) validation(r configRule) (v admissionv1.Validation, why, less string) {
	if why = s.unknownAtTheDoor(r, rules.PartRule); why != "" {
		return v, why, ""
	}
	invalid := metav1.StatusReasonInvalid // what the API server answers to whatever breaks a rule of a CRD
	v = admissionv1.Validation{Message: r.fails.String(), Reason: &invalid}
	var err error
	if v.Expression, err = s.translated(r.Rule, s.translator.Bool); err != nil {
		return v, reasonOf(err), ""
	}
	s.used = append(s.used, r.index)
	if r.MessageExpression == "" {
		return v, "", ""
	}
	if less = s.unknownAtTheDoor(r, rules.PartMessageExpression); less == "" {
		prefix := r.fails
		prefix.Message = ""
		v.MessageExpression, err = s.translated(r.MessageExpression, func(expr string) (string, error) {
			return s.translator.Message(expr, prefix.String())
		})
		less = reasonOf(err)
	}
	return v, "", less
}

// translated writes an expression in which the variables are replaced by what they stand for.
func (s *ruleSet) translated(expr string, write func(string) (string, error)) (string, error) {
	inlined, err := s.env.Inline(expr)
	if err != nil {
		return "", &translate.UntranslatableError{Problem: "uses all variables at once"}
	}
	return write(inlined)
}

// unknownAtTheDoor says what a part of a rule reads that is not known when an object is written, or means something
// else then; "" where there is nothing of it.
func (s *ruleSet) unknownAtTheDoor(r configRule, part rules.Part) string {
	if paths, whole := s.validator.ReadsOf(r.index, part, "inputs"); whole || len(paths) > 0 {
		return "reads inputs"
	}
	paths, _ := s.validator.ReadsOf(r.index, part, "self")
	for _, path := range paths {
		switch {
		case len(path) > 0 && path[0] == "status":
			return "reads the status, which is not part of the written object"
		case len(path) > 1 && path[0] == "metadata" && path[1] == "resourceVersion":
			return "reads metadata.resourceVersion, which a new object does not have yet"
		}
	}
	return ""
}

// reasonOf says why an expression could not be written.
func reasonOf(err error) string {
	var without *translate.UntranslatableError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &without):
		return without.Problem
	}
	return "cannot be written: " + err.Error()
}

// variables are the params that the rules read, as one variable.
func (s *ruleSet) variables() ([]admissionv1.Variable, error) {
	params := map[string]any{}
	reads := false
	for _, i := range s.used {
		for _, part := range []rules.Part{rules.PartRule, rules.PartMessageExpression} {
			paths, whole := s.validator.ReadsOf(i, part, "params")
			reads = reads || whole || len(paths) > 0
			for name, value := range s.pipeline.Params {
				if whole || slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 || path[0] == name }) {
					params[name] = value
				}
			}
		}
	}
	if !reads {
		return nil, nil
	}
	text, err := translate.Literal(params)
	if err != nil {
		return nil, fmt.Errorf("operator %s: writing the parameters: %w", s.pipeline.Name, err)
	}
	return []admissionv1.Variable{{Name: "params", Expression: text}}, nil
}

// watched is CEL that holds where the config's watch selects an object, which is object or oldObject; empty if it
// selects everything. why names a match condition that has no counterpart.
func (s *ruleSet) watched(object string) (text, why string) {
	watch := s.pipeline.Config.Watch
	var all []string
	if labels := selects(watch.LabelSelector, object); labels != "" {
		all = append(all, labels)
	}
	if len(watch.MatchConditions) == 0 {
		return strings.Join(all, ""), ""
	}
	translator, err := translate.New(s.env, translate.Dialect{Self: object, Plain: true, Values: s.pipeline.Params})
	if err != nil {
		return "", err.Error()
	}
	for _, c := range watch.MatchConditions {
		text, err := s.translated(c.Expression, translator.Bool)
		if err != nil {
			return "", c.Name + ": " + reasonOf(err)
		}
		all = append(all, "("+text+")")
	}
	return strings.Join(all, " && "), ""
}

// conditions let through what is being deleted, and updates that leave alone what the rules read. What an update makes
// one of those that the config watches is new to the rules, and what is none of them any more is none of theirs.
func (s *ruleSet) conditions() (_ []admissionv1.MatchCondition, why string) {
	list := []admissionv1.MatchCondition{{Name: "not-being-deleted",
		Expression: "!has(object.metadata.deletionTimestamp)"}}
	now, why := s.watched("object")
	before, _ := s.watched("oldObject")
	if why != "" {
		return nil, why
	}
	if now != "" {
		list = append(list, admissionv1.MatchCondition{Name: "watched", Expression: now})
	}
	changed := []string{`request.operation == "CREATE"`}
	for _, i := range s.used {
		paths, whole := s.validator.ReadsOf(i, rules.PartRule, "self")
		for _, path := range paths {
			text, unknown := changedAt(path)
			if whole = whole || unknown; text != "" && !slices.Contains(changed, text) {
				changed = append(changed, text)
			}
		}
		if whole {
			return list, ""
		}
	}
	if before != "" {
		changed = append(changed, "!("+before+")")
	}
	slices.Sort(changed[1:])
	return append(list, admissionv1.MatchCondition{Name: "changes-what-rules-read",
		Expression: strings.Join(changed, " || ")}), ""
}

// unchangeable are the fields of metadata that no update changes, and the one that follows the spec.
var unchangeable = []string{"name", "generateName", "namespace", "uid", "creationTimestamp",
	"generation", "deletionTimestamp",
	"deletionGracePeriodSeconds"}

// changedAt is CEL that holds where an update changes what is read by a path; "" where none can. unknown reports
// whether it cannot be said.
func changedAt(path []string) (text string, unknown bool) {
	switch {
	case len(path) == 0 || path[0] == "metadata" && len(path) == 1:
		return "", true
	case path[0] == "apiVersion" || path[0] == "kind":
		return "", false
	case path[0] != "metadata":
		return fmt.Sprintf("object[?%[1]q] != oldObject[?%[1]q]", path[0]), false
	case slices.Contains(unchangeable, path[1]):
		return "", false
	}
	return fmt.Sprintf("object.metadata[?%[1]q] != oldObject.metadata[?%[1]q]", path[1]), false
}
