package rules

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestValidate(t *testing.T) {
	all := envs(t)
	for _, tc := range []struct {
		reason string
		given  Validation
		want   *Failure
		text   string
	}{
		{"a rule that holds", Validation{Rule: "self.spec.replicas <= 20"}, nil, ""},
		{"the default message is the rule", Validation{Rule: " self.spec.replicas <= 2 "},
			&Failure{Reason: FieldValueInvalid, Message: "failed rule: self.spec.replicas <= 2"},
			"Invalid value: failed rule: self.spec.replicas <= 2"},
		{"a message", Validation{Rule: "self.spec.replicas <= 2", Message: " at most 2 ", FieldPath: ".spec.replicas"},
			&Failure{Reason: FieldValueInvalid, Message: "at most 2", FieldPath: "spec.replicas"}, "spec.replicas: Invalid value: at most 2"},
		{"a message that is computed", Validation{Rule: "self.spec.replicas <= 2", Message: "at most 2",
			MessageExpression: "' at most 2, not ' + string(self.spec.replicas) + ' '"},
			&Failure{Reason: FieldValueInvalid, Message: "at most 2, not 3"}, ""},
		{"one that errors falls back to the message", Validation{Rule: "false", Message: "told", MessageExpression: "self.spec.config.missing"},
			&Failure{Reason: FieldValueInvalid, Message: "told"}, ""},
		{"or to the rule", Validation{Rule: "false", MessageExpression: "self.spec.config.missing"},
			&Failure{Reason: FieldValueInvalid, Message: "failed rule: false"}, ""},
		{"so does an empty one", Validation{Rule: "false", Message: "told", MessageExpression: "' '"},
			&Failure{Reason: FieldValueInvalid, Message: "told"}, ""},
		{"and one with line breaks", Validation{Rule: "false", Message: "told", MessageExpression: `"a\nb"`},
			&Failure{Reason: FieldValueInvalid, Message: "told"}, ""},
		{"and one that is too long", Validation{Rule: "false", Message: "told", MessageExpression: `"` + strings.Repeat("x", 6000) + `"`},
			&Failure{Reason: FieldValueInvalid, Message: "told"}, ""},
		{"a forbidden field", Validation{Rule: "false", Message: "m", Reason: FieldValueForbidden, FieldPath: ".metadata.labels['a.b/c']"},
			&Failure{Reason: FieldValueForbidden, Message: "m", FieldPath: "metadata.labels[a.b/c]"}, "metadata.labels[a.b/c]: Forbidden: m"},
		{"a required field", Validation{Rule: "false", Message: "m", Reason: FieldValueRequired, FieldPath: ".spec.tag"},
			&Failure{Reason: FieldValueRequired, Message: "m", FieldPath: "spec.tag"}, "spec.tag: Required value: m"},
		{"a duplicate", Validation{Rule: "false", Message: "m", Reason: FieldValueDuplicate},
			&Failure{Reason: FieldValueDuplicate, Message: "m"}, "Duplicate value: m"},
		{"a rule that errors has failed and says so", Validation{Rule: "self.spec.config.tag != ''"},
			&Failure{Reason: FieldValueInvalid, Errored: true, Message: "no such key: tag evaluating rule: self.spec.config.tag != ''"}, ""},
		{"by its message where it has one", Validation{Rule: "self.spec.config.tag != ''", Message: "a tag is needed",
			FieldPath: ".spec.config.tag"},
			&Failure{Reason: FieldValueInvalid, Errored: true, FieldPath: "spec.config.tag",
				Message: "no such key: tag evaluating rule: a tag is needed"}, ""},
		{"a rule of several lines", Validation{Rule: "self.spec.replicas > 1 &&\n  self.spec.replicas <= 2", Message: "m"},
			&Failure{Reason: FieldValueInvalid, Message: "m"}, ""},
	} {
		for kind, env := range all {
			t.Run(tc.reason+"/"+kind, func(t *testing.T) {
				v, errs := CompileValidation(env, []Validation{{Rule: "true"}, tc.given})
				if len(errs) > 0 {
					t.Fatal(errs)
				}
				failures := v.Validate(Vars{Self: testObject()}, nil)
				if tc.want == nil {
					if failures != nil {
						t.Errorf("got %v, want none", failures)
					}
					return
				}
				want := *tc.want
				want.Index = 1
				if diff := cmp.Diff([]Failure{want}, failures, cmpopts.IgnoreFields(Failure{}, "Err")); diff != "" {
					t.Fatal(diff)
				}
				if (failures[0].Err != nil) != want.Errored {
					t.Errorf("Err is %v", failures[0].Err)
				}
				if tc.text != "" && failures[0].String() != tc.text {
					t.Errorf("told as %q, want %q", failures[0], tc.text)
				}
			})
		}
	}
}

// TestValidateAll: every violated rule is returned, and those beyond the budget say so.
func TestValidateAll(t *testing.T) {
	env := envs(t)["untyped"]
	given := []Validation{
		{Rule: "false", Message: "first"},
		{Rule: "self.missing", Message: "second"},
		{Rule: "true"},
		{Rule: expensive, Message: "costly"},
		{Rule: "self.spec.list.size() == 0", Message: "last"},
	}
	v, errs := CompileValidation(env, given)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var got []string
	for _, f := range v.Validate(Vars{Self: big()}, nil) {
		got = append(got, f.Message)
	}
	want := []string{
		"first", "no such key: missing evaluating rule: second",
		"it costs more than the limit of 1000000: make it look at less evaluating rule: costly", "last",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	spent := NewBudget(context.Background())
	spent.left = 0
	failures := v.Validate(Vars{Self: big()}, spent)
	var failed *EvalError
	if last := failures[len(failures)-1]; !last.Errored || !errors.As(last.Err, &failed) || failed.Cause != CauseCost {
		t.Errorf("without a budget: %+v", last)
	}
}

func TestValidatorReads(t *testing.T) {
	env := envs(t)["typed"]
	v, errs := CompileValidation(env, []Validation{
		{Rule: "self.spec.replicas > 1", MessageExpression: "self.metadata.name"},
		{Rule: "self.spec.replicas > 2 || self.spec.image == ''", Message: "m"},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if got, want := readsText(v.Reads("self")), "metadata.name,spec.image,spec.replicas"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCompileValidationErrors(t *testing.T) {
	all := envs(t)
	for _, tc := range []struct {
		reason  string
		given   Validation
		typed   string
		untyped string
	}{
		{"a rule that does not compile", Validation{Rule: "self.spec.replcas > 1"},
			"[0].rule: 1:11: self.spec has no field replcas: did you mean replicas?", ""},
		{"no rule", Validation{Rule: " "}, "[0].rule: 1:1: the expression is empty: write one, or leave it out", "same"},
		{"oldSelf", Validation{Rule: "self == oldSelf", Message: "m"}, "[0].rule: 1:9: oldSelf is not known here: a reconcile has no old object",
			"same"},
		{"a message expression that is no string", Validation{Rule: "true", MessageExpression: "1"},
			"[0].messageExpression: 1:1: the result is an int, not a string: convert it: string(…)", "same"},
		{"a blank message", Validation{Rule: "true", Message: " "}, "[0].message: it is blank: write one, or leave it out", "same"},
		{"a message with line breaks", Validation{Rule: "true", Message: "a\nb"}, "[0].message: it has line breaks: write it on one line",
			"same"},
		{"a long message", Validation{Rule: "true", Message: strings.Repeat("x", 2049)},
			"[0].message: it has 2049 bytes: at most 2048 are allowed", "same"},
		{"a rule with line breaks and no message", Validation{Rule: "true &&\ntrue"}, "[0].message: it is missing, and the rule", "same"},
		{"an unknown reason", Validation{Rule: "true", Reason: "FieldValueForbiden"},
			`[0].reason: "FieldValueForbiden" is not a valid reason: did you mean FieldValueForbidden?`, "same"},
		{"a far-off reason", Validation{Rule: "true", Reason: "Nope"},
			`[0].reason: "Nope" is not a valid reason: it is one of FieldValueDuplicate, FieldValueForbidden, FieldValueInvalid, FieldValueRequired`, "same"},
		{"a path that is none", Validation{Rule: "true", FieldPath: "spec"}, "[0].fieldPath: ", "same"},
		{"a path into a list", Validation{Rule: "true", FieldPath: ".spec.env[0]"}, "[0].fieldPath: [0] selects from a list", "same"},
		{"a path to an item", Validation{Rule: "true", FieldPath: ".spec.env[name=A]"}, "[0].fieldPath: [name=A] selects from a list", "same"},
		{"a path that the schema lacks", Validation{Rule: "true", FieldPath: ".spec.replcas"},
			"[0].fieldPath: .spec has no field replcas: did you mean replicas?", ""},
		{"a path below a scalar", Validation{Rule: "true", FieldPath: ".spec.image.x"}, "[0].fieldPath: .spec.image has no field x", ""},
		{"a path through a map", Validation{Rule: "true", FieldPath: ".spec.labels.x"}, "", ""},
		{"a path through what is unknown", Validation{Rule: "true", FieldPath: ".spec.config.x.y"}, "", ""},
	} {
		for kind, env := range all {
			t.Run(tc.reason+"/"+kind, func(t *testing.T) {
				want := tc.typed
				if kind == "untyped" && tc.untyped == "" {
					want = ""
				}
				v, errs := CompileValidation(env, []Validation{tc.given})
				if want == "" {
					if len(errs) > 0 || v == nil {
						t.Errorf("got %v, want no error", errs)
					}
					return
				}
				if v != nil || len(errs) != 1 {
					t.Fatalf("got %v, want one error", errs)
				}
				if !strings.HasPrefix(errs[0].Error(), want) || strings.Contains(errs[0].Error(), "\n") {
					t.Errorf("got %q, want %q", errs[0], want)
				}
			})
		}
	}
}

// TestCompileValidationAllErrors: all errors are returned at once.
func TestCompileValidationAllErrors(t *testing.T) {
	_, errs := CompileValidation(envs(t)["typed"], []Validation{
		{Rule: "self.x", MessageExpression: "self.y", FieldPath: ".z", Reason: "r", Message: "a\nb"},
		{Rule: "true"},
		{Rule: "1"},
	})
	var got []string
	for _, err := range errs {
		got = append(got, strings.SplitN(err.Error(), ":", 2)[0])
	}
	want := []string{"[0].reason", "[0].fieldPath", "[0].rule", "[0].messageExpression", "[0].message", "[2].rule"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
