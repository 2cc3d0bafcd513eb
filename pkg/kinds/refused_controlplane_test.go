//go:build controlplane

package kinds_test

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/simpleschema"
)

// TestServerRefuses: what Parse and Refusals say nothing about, an API server takes, and what they report it refuses,
// but for what only the notation forbids.
func TestServerRefuses(t *testing.T) {
	const bounded = " maxItems=10"
	for i, test := range []struct {
		fields string
		refuse bool
		reason string
	}{
		{`{a: string | required=true, b: integer | default=1 minimum=1, c: 'float | default=0.5', d: boolean | default=true}`, false, "basic types"},
		{`{a: "[]string", b: "map[string]integer", c: object, d: "[][]string", e: "map[string][]string"}`, false, "lists, maps, anything"},
		{`{a: '[]string | uniqueItems=true', b: '[][]string | listType=set', c: '[]string | listType=atomic'}`, false, "sets"},
		{`{a: '[]T | listType=map listMapKey=name listMapKey=num'}`, false, "lists with keys"},
		{`{a: 'T | default={"name": "x"}', b: '[]T | default=[{"name": "x"}]', c: {d: {e: integer | default=1}}}`, false, "defaults of objects"},
		{`{a: 'object | default={"x": 1}', b: 'map[string]string | default={"x": "y"}', c: 'string | default="say \"hi\""'}`, false, "other defaults"},
		{`{a: 'string | immutable=true maxLength=10', b: '[]string | immutable=true maxItems=5', c: T, d: 'string | pattern="^[a-z]+$"'}`, false, "rules"},
		{`{a: 'string | validation="self.size() > 1"', b: '[]string | validation="self.all(x, x.size() > 1)"'}`, false, "rules without bounds that are cheap"},
		{`{a: 'integer | enum="1,2" default=2', b: 'string | enum="a,b"'}`, false, "enums"},
		{`{}`, false, "no fields"},
		{`{a-b: 'string | immutable=true maxLength=9', in: 'integer | immutable=true', c: {d: 'integer | immutable=true'}, e: {f: 'integer | immutable=true', g: string | required=true}}`, false, "immutable fields that are optional, at any depth"},
		{`{a: '[]V | listType=map listMapKey=name'}`, false, "in a list with keys"},
		{`{a: string | default=b enum=a}`, true, "a default that is not in the enum"},
		{`{a: integer | default=1 minimum=2}`, true, "a default below the minimum"},
		{`{a: string | default=A pattern=^a}`, true, "a default that the pattern refuses"},
		{`{a: '[]string | default=["a", "b"] maxItems=1'}`, true, "a default with too many items"},
		{`{a: 'T | default={}'}`, true, "a default without a required field"},
		{`{a: 'T | default={"name": "x", "zz": 1}'}`, true, "a default with an unknown field"},
		{`{a: '[]integer | default=["x"]'}`, true, "a default with items of another type"},
		{`{a: 'map[string]integer | default={"x": "y"}'}`, true, "a default with entries of another type"},
		{`{a: 'string | default=ab validation="self.size() > 2"'}`, true, "a default that breaks a rule"},
		{`{a: 'string | validation="self.foo"'}`, true, "a rule that does not compile"},
		{`{a: 'string | validation="1"'}`, true, "a rule that gives no boolean"},
		{`{a: '[]string | validation="self.all(x, self.all(y, self.all(z, x.contains(y + z))))"'}`, true, "a rule that is too expensive"},
		{`{a: '[]U'}`, true, "a rule within a list without a bound"},
		{`{a: '[]U |` + bounded + `'}`, false, "a rule within a list with one"},
		{`{a: '[]T | uniqueItems=true'}`, true, "a set of objects"},
		{`{a: '[]T | listType=map listMapKey=gone'}`, true, "a key that no item has"},
		{`{a: '[]T | listType=map listMapKey=o'}`, true, "a key that may be missing"},
		{`{a: '[]T | listType=map'}`, true, "no key"},
		{`{a: '[]string | listType=map listMapKey=name'}`, true, "a key of texts"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			fields, types := map[string]any{}, map[string]any{}
			read(t, test.fields, &fields)
			read(t, `{T: {name: string | required=true, num: integer | default=80, o: string}, V: {name: string | required=true, num: integer | immutable=true}, U: 'string | maxLength=1000 validation="self.contains(self + self) || self.matches(''a+b+c+'') || self.contains(self)"'}`, &types)
			crd := definition(t, fmt.Sprintf("n%d.%s.example.com", i, testkit.Unique(t)), fields, types)
			if crd == nil {
				if !test.refuse {
					t.Errorf("the notation forbids it: %v", problemsOf(fields, types))
				}
				return
			}
			refusals, err := kinds.Refusals(t.Context(), crd)
			if err != nil {
				t.Fatal(err)
			}
			refused := len(refusals) > 0
			object := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(crd)).In(t)
			delete(object, "status")
			u := &unstructured.Unstructured{Object: object}
			_, err = testkit.Dynamic(t).Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).
				Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{"All"}})
			if refused != test.refuse || (err != nil) != test.refuse {
				t.Errorf("we say %v (%s), the API server says %v", refused, refusals, err)
			}
		})
	}
}

func problemsOf(fields, types map[string]any) []simpleschema.Problem {
	_, problems := simpleschema.Parse(fields, types)
	return problems
}
