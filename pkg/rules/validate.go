package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// Validation is one rule with the fields of a CRD's x-kubernetes-validations.
type Validation struct {
	// Rule is a CEL expression over the scope Upstream that is true for a valid object.
	Rule string
	// Message is the message if the rule is false; it is required if the rule has line breaks.
	Message string
	// MessageExpression is a CEL expression for the message; Message is used if it fails, or its result is empty or has
	// several lines.
	MessageExpression string
	// FieldPath is the invalid field: ".spec.replicas", ".metadata.labels['a.b/c']".
	FieldPath string
	// Reason is one of the constants below; empty means FieldValueInvalid.
	Reason Reason
}

// Reason says why a field is invalid.
type Reason string

// The reasons of CRDs.
const (
	// FieldValueInvalid is for a value that is not allowed.
	FieldValueInvalid Reason = "FieldValueInvalid"
	// FieldValueForbidden is for a field that may not be set in this case.
	FieldValueForbidden Reason = "FieldValueForbidden"
	// FieldValueRequired is for a field that is missing.
	FieldValueRequired Reason = "FieldValueRequired"
	// FieldValueDuplicate is for a value that exists already.
	FieldValueDuplicate Reason = "FieldValueDuplicate"
)

// words are the texts of reasons, as in the API server.
var words = map[Reason]string{
	FieldValueInvalid:   "Invalid value",
	FieldValueForbidden: "Forbidden",
	FieldValueRequired:  "Required value",
	FieldValueDuplicate: "Duplicate value",
}

// Failure is a rule that an object violates.
type Failure struct {
	// Index is the index of the rule.
	Index int
	// FieldPath is the invalid field as the API server writes it ("spec.replicas"); empty if the rule has none.
	FieldPath string
	// Reason is never empty.
	Reason Reason
	// Message is one line.
	Message string
	// Errored means that the evaluation failed; Message then has the error.
	Errored bool
	// Err is the *EvalError of a failed evaluation. If its cause is CauseInterrupted, the Failure says nothing about the
	// object.
	Err error
}

// Redacted returns a failure without the values that the error of its rule quotes. A message from the config stays.
func (v *Validator) Redacted(f Failure) Failure {
	var failed *EvalError
	if errors.As(f.Err, &failed) {
		f.Message = fmt.Sprintf("%s evaluating rule: %s", failed.problemWithoutValues(), v.rules[f.Index].name)
		f.Err = redact.WithoutValues(f.Err)
	}
	return f
}

// String returns the API server's text: "spec.replicas: Invalid value: at most 20 replicas".
func (f Failure) String() string {
	text := words[f.Reason] + ": " + f.Message
	if f.FieldPath != "" {
		return f.FieldPath + ": " + text
	}
	return text
}

// Validator is a compiled list of validations. It is immutable and safe for concurrent use.
type Validator struct {
	rules []validation
}

type validation struct {
	rule              *Program
	messageExpression *Program // nil if there is none
	message           string   // from the config, or made from the rule
	name              string   // the name of the rule in messages
	fieldPath         string
	reason            Reason
}

// Validate evaluates every rule and returns the violations in order; nil means that the object is valid. A failed
// evaluation counts as a violation. If the budget is used up, so do all remaining rules.
func (v *Validator) Validate(vars Vars, b *Budget) []Failure {
	if b == nil {
		b = NewBudget(context.Background())
	}
	var failures []Failure
	for i := range v.rules {
		r := &v.rules[i]
		ok, err := r.rule.Eval(vars, b)
		if ok == true {
			continue
		}
		f := Failure{Index: i, FieldPath: r.fieldPath, Reason: r.reason}
		if err != nil {
			f.Errored, f.Err, f.Message = true, err, r.errorMessage(err)
		} else {
			f.Message = r.failureMessage(vars, b)
		}
		failures = append(failures, f)
	}
	return failures
}

// Failure returns the violation of the i-th rule if its message does not depend on the object.
func (v *Validator) Failure(i int) Failure {
	r := &v.rules[i]
	return Failure{Index: i, FieldPath: r.fieldPath, Reason: r.reason, Message: r.message}
}

// Part is one of the expressions of a Validation.
type Part int

// The parts of a Validation.
const (
	PartRule Part = iota
	PartMessageExpression
)

// ReadsOf returns Reads of one part of the i-th rule; nothing if the rule does not have that part.
func (v *Validator) ReadsOf(i int, part Part, variable string) (paths [][]string, whole bool) {
	p := v.rules[i].rule
	if part == PartMessageExpression {
		p = v.rules[i].messageExpression
	}
	if p == nil {
		return nil, false
	}
	return p.Reads(variable)
}

// Reads returns what the rules and message expressions read of a variable, as (*Program).Reads does.
func (v *Validator) Reads(variable string) (paths [][]string, whole bool) {
	for i := range v.rules {
		for _, p := range []*Program{v.rules[i].rule, v.rules[i].messageExpression} {
			if p == nil {
				continue
			}
			more, all := p.Reads(variable)
			if all {
				return nil, true
			}
			paths = append(paths, more...)
		}
	}
	r := minimal(paths)
	return r.paths, r.whole
}

// errorMessage returns the message for a failed evaluation.
func (r *validation) errorMessage(err error) string {
	problem := err.Error()
	var failed *EvalError
	if errors.As(err, &failed) {
		problem = failed.Problem
	}
	return fmt.Sprintf("%s evaluating rule: %s", problem, r.name)
}

// failureMessage returns the message for a rule that is false.
func (r *validation) failureMessage(vars Vars, b *Budget) string {
	if r.messageExpression == nil {
		return r.message
	}
	value, err := r.messageExpression.Eval(vars, b)
	if err != nil {
		return r.message
	}
	text := strings.TrimSpace(value.(string))
	if text == "" || len(text) > celconfig.MaxEvaluatedMessageExpressionSizeBytes || strings.ContainsAny(text, "\n\r") {
		return r.message
	}
	return text
}
