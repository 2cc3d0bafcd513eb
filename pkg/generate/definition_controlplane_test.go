//go:build controlplane

package generate_test

import (
	"errors"
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

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

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
			must.Do(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(change(d.read(t, "typed.crd.yaml")), d.group, "fit."+d.group)),
				crd))
			pasted := crd.DeepCopy()
			pasted.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = slices.Clone(v.Rules)
			want := refusedRules(t, pasted)
			refused := must.Get(v.Fit(crd)).In(t)
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
