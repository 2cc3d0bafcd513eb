//go:build controlplane

package generate_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/rules"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// TestDefinitions: with the rules pasted into the definition, the API server has the same verdicts as the operator and says
// the same, of every rule that an object breaks.
func TestDefinitions(t *testing.T) {
	t.Parallel()
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
			object := d.object(fmt.Sprintf("thing-%d", i), c.spec)
			stored := testkit.Apply(t, d.beside, object)
			var want []string
			for _, f := range d.live.Desired(t.Context(), stored, pipeline.Inputs{}).Invalid {
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
	all, err := generate.CRDValidations([]*pipeline.Pipeline{d.offline})
	if err != nil || len(all) != 1 || len(all[0].Notes) > 0 {
		t.Fatal(err, all)
	}
	return all[0]
}

// definition is that of the set, of a group beside the set's own.
func (d *door) definition(t *testing.T, set, prefix string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(d.read(t, set+".crd.yaml"), d.group, prefix+d.group)), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func text(t *testing.T, object any) string {
	t.Helper()
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
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

var (
	bounds    = regexp.MustCompile(`, max(Items|Length|Properties): \d+|(?m)^ *maxItems: \d+\n`)
	indexed   = regexp.MustCompile(`x-kubernetes-validations\[(\d+)\]\.(rule|messageExpression)`)
	reported  = regexp.MustCompile(`^validate\[(\d+)\] of operator [^ :]+(: its messageExpression| could cost)`)
	unbounded = regexp.MustCompile(`contributed to estimated rule cost total`)
)

// TestFit: of a definition with the rules pasted, what is reported before is why the API server refuses it.
func TestFit(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]func(string) string{
		"bounds": func(text string) string { return text },
		"none":   func(text string) string { return bounds.ReplaceAllString(text, "") },
		"a field that there is not": func(text string) string {
			return strings.Replace(text, "                memory: {type: string, maxLength: 20}\n", "", 1)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			d := openDoor(t, "typed")
			v := d.validations(t)
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(change(d.read(t, "typed.crd.yaml")), d.group, "fit."+d.group)),
				crd); err != nil {
				t.Fatal(err)
			}
			pasted := crd.DeepCopy()
			pasted.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = slices.Clone(v.Rules)
			want := refusedRules(t, pasted)
			refused, err := v.Fit(crd)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, note := range slices.Concat(refused, v.Notes) {
				if m := reported.FindStringSubmatch(note); m != nil && strings.Contains(m[2], "could cost") {
					got = append(got, m[1]+" rule")
				} else if m != nil {
					got = append(got, m[1]+" messageExpression")
				} else if _, rest, ok := strings.Cut(note, "validate["); ok && strings.Contains(note, "does not fit the schema") {
					index, _, _ := strings.Cut(rest, "]")
					got = append(got, index+" rule")
				}
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("told %q, the API server refuses %q\n%s", got, want, strings.Join(slices.Concat(refused, v.Notes), "\n"))
			}
			if len(want) == 0 {
				t.Error("the API server refuses nothing")
			}
		})
	}
}

// refusedRules are the rules and message expressions for which the API server refuses a definition.
func refusedRules(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	_, err = testkit.Dynamic(t).Resource(definitions).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("not refused: %v", err)
	}
	var list []string
	for _, c := range status.Status().Details.Causes {
		m := indexed.FindStringSubmatch(c.Field)
		if m == nil || unbounded.MatchString(c.Message) {
			continue
		}
		if _, err := strconv.Atoi(m[1]); err == nil {
			list = append(list, m[1]+" "+m[2])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
