package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// TestValidate compiles and runs the rules in testdata/validate.txt, each after one that holds.
func TestValidate(t *testing.T) {
	all := envs(t)
	golden.Table(t, "testdata/validate.txt", func(t *testing.T, input string) string {
		var given Validation
		input = strings.NewReplacer("X6000", strings.Repeat("x", 6000), "X2049", strings.Repeat("x", 2049)).Replace(input)
		if err := yaml.UnmarshalStrict([]byte(input), &given); err != nil {
			t.Fatal(err)
		}
		return inBoth(all, func(env *Env) string {
			v, errs := CompileValidation(env, []Validation{{Rule: "true"}, given})
			if len(errs) > 0 {
				if v != nil || len(errs) != 1 || strings.Contains(errs[0].Error(), "\n") {
					t.Errorf("%v, %v", v, errs)
				}
				return "error: " + errs[0].Error()
			}
			failures := v.Validate(Vars{Self: testObject()}, nil)
			if len(failures) == 0 {
				return "valid"
			}
			f := failures[0]
			if len(failures) > 1 || f.Index != 1 || (f.Err != nil) != f.Errored {
				t.Errorf("%+v", failures)
			}
			return fmt.Sprintf("%s\n%s, path %q, errored %t", f, f.Reason, f.FieldPath, f.Errored)
		})
	})
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
	must.Same(t, want, got)

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
	must.Same(t, "metadata.name,spec.image,spec.replicas", readsText(v.Reads("self")))
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
	must.Same(t, want, got)
}
