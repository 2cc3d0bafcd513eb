package generate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestDefinitions: with the rules pasted into the definition, the API server has the same verdicts as the operator and
// says the same, of every rule that an object breaks.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	config := bubble.Serve(t)
	d := openDoor(t, "typed")
	v := d.validations(t)
	if refused, err := v.Fit(d.definition(t, "typed", "")); err != nil || len(refused) > 0 {
		t.Fatal(err, refused)
	}
	pasted := d.definition(t, "typed", "ruled.")
	pasted.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = v.Rules
	testkit.InstallCRDs(t, text(t, pasted))
	for i, c := range doors["typed"] {
		t.Run(c.reason, func(t *testing.T) {
			testkit.Serve(t, config)
			object := d.object(fmt.Sprintf("thing-%d", i), c.spec)
			stored := testkit.Apply(t, d.beside, object)
			var want []string
			for _, f := range d.live.Validator.Validate(d.live.VarsOf(stored, desired.Inputs{}), rules.NewBudget(t.Context())) {
				want = append(want, causeOf(d, v, f))
			}
			slices.Sort(want)
			_, err := testkit.TryApply(t, d.namespace, strings.Replace(object, d.group, "ruled."+d.group, 1))
			if got := causes(t, err); !slices.Equal(got, want) {
				t.Errorf("the API server says\n%q, the operator\n%q", got, want)
			}
		})
	}
}

// validations are the rules of the set, none of them left out.
func (d *door) validations(t *testing.T) *generate.Validations {
	t.Helper()
	all, err := generate.CRDValidations([]*compile.Pipeline{d.offline})
	if err != nil || len(all) != 1 || len(all[0].Notes) > 0 {
		t.Fatal(err, all)
	}
	return all[0]
}

// definition is that of the set, of a group beside the set's own.
func (d *door) definition(t *testing.T, set, prefix string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Do(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(d.read(t, set+".crd.yaml"), d.group, prefix+d.group)), crd))
	return crd
}

func text(t *testing.T, object any) string {
	t.Helper()
	out := must.Get(yaml.Marshal(object)).In(t)
	return string(out)
}

// causeOf is what the API server should say where the operator says f. A message expression that does not fit the
// definition leaves the fixed message.
func causeOf(d *door, v *generate.Validations, f rules.Failure) string {
	at := f.FieldPath
	if at == "" || f.Errored { // the server does not say the field of a rule that errors
		at = "<nil>"
	}
	reason, message := f.Reason, f.Message
	rule := d.files[0].Validate[f.Index]
	switch {
	case f.Errored:
		reason = rules.FieldValueInvalid
		problem, _, _ := strings.Cut(message, " evaluating rule: ")
		message = problem
	case rule.MessageExpression != "" && v.Rules[f.Index].MessageExpression == "":
		if message = rule.Message; message == "" {
			message = "failed rule: " + rule.Rule
		}
	}
	return at + ": " + string(reason) + ": " + message
}

// causes is what the API server has against an object.
func causes(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		t.Fatalf("no verdict: %v", err)
	}
	var list []string
	for _, c := range status.Status().Details.Causes {
		reason, message := string(c.Type), c.Message
		for _, prefix := range []string{"Invalid value: ", "Required value: ", "Forbidden: ", `"object": `} {
			message = strings.TrimPrefix(message, prefix)
		}
		if problem, _, failed := strings.Cut(message, " evaluating rule: "); failed {
			reason, message = string(rules.FieldValueInvalid), problem
		}
		list = append(list, c.Field+": "+reason+": "+message)
	}
	slices.Sort(list)
	return list
}
