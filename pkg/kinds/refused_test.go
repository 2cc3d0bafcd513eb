package kinds_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/simpleschema"
)

// TestRepeatedDefaults: an API server takes a default with an item twice, and no object that gets it.
func TestRepeatedDefaults(t *testing.T) {
	for fields, want := range map[string]string{
		`{a: '[]T | listType=map listMapKey=name default=[{"name":"x"},{"name":"x"}]'}`:           "spec.a: the default does not fit: Duplicate value",
		`{a: '[]string | uniqueItems=true default=["x","x"]'}`:                                    "spec.a: the default does not fit: Duplicate value",
		`{a: {b: '[]T | listType=map listMapKey=name default=[{"name":"x"},{"name":"x"}]'}}`:      "spec.a.b: the default does not fit: Duplicate value",
		`{a: '[]T | listType=map listMapKey=name default=[{"name":"x"},{"name":"y"}]'}`:           "",
		`{a: '[]T | listType=atomic default=[{"name":"x"},{"name":"x"}]', b: '[]T | default=[]'}`: "",
	} {
		into, custom := map[string]any{}, map[string]any{}
		read(t, fields, &into)
		read(t, `{T: {name: string | required=true}}`, &custom)
		refusals, err := kinds.Refusals(t.Context(), definition(t, "d.example.com", into, custom))
		got := ""
		for _, r := range refusals {
			got += strings.TrimPrefix(r.Path.String(), ".") + ": " + r.Reason
		}
		if err != nil || want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q (%v), want %q", fields, got, err, want)
		}
	}
}

// TestImmutableStays: an immutable field that is set stays as it is, also if it is removed first.
func TestImmutableStays(t *testing.T) {
	fields := map[string]any{}
	read(t, `{imm: string | immutable=true, free: string, def: string | immutable=true default=x, deep: {imm: integer | immutable=true, free: string},
		req: {imm: integer | immutable=true, must: string | required=true}, must: {imm: integer | immutable=true required=true}}`, &fields)
	crd := definition(t, testkit.Unique(t)+".example.com", fields, nil)
	bubble.Serve(t)
	gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: "v1", Resource: "things"}
	object := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(crd)).In(t)
	text := must.Get(yaml.Marshal(object)).In(t)
	testkit.InstallCRDs(t, string(text))
	ns := testkit.Namespace(t)
	things := testkit.Dynamic(t).Resource(gvr).Namespace(ns)
	const set = `{imm: a, free: a, deep: {imm: 1, free: a}, req: {imm: 1, must: a}, must: {imm: 1}}`
	for _, row := range []struct {
		patch   string
		refused bool
		reason  string
	}{
		{`{"spec":{"free":null}}`, false, "another field"},
		{`{"spec":{"imm":"b"}}`, true, "another value"},
		{`{"spec":{"imm":null}}`, true, "no value"},
		{`{"spec":{"def":null}}`, false, "the default is the value"},
		{`{"spec":{"def":"y"}}`, true, "another than the default"},
		{`{"spec":{"deep":{"imm":null}}}`, true, "no value, further down"},
		{`{"spec":{"deep":{"free":null}}}`, false, "another field, further down"},
		{`{"spec":{"deep":null}}`, true, "the object that it is in"},
		{`{"spec":{"req":null}}`, true, "the object that it is in, which cannot be empty"},
		{`{"spec":{"must":null}}`, true, "the object that it is in, which must be there"},
		{`{"spec":null}`, true, "the whole spec"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			name := strings.Trim(testkit.Unique(t), "-.")
			u := &unstructured.Unstructured{}
			read(t, `{apiVersion: `+gvr.Group+`/v1, kind: Thing, metadata: {name: `+name+`}, spec: `+set+`}`, &u.Object)
			must.Get(things.Create(t.Context(), u, metav1.CreateOptions{})).In(t)
			_, err := things.Patch(t.Context(), name, types.MergePatchType, []byte(row.patch), metav1.PatchOptions{})
			if (err != nil) != row.refused {
				t.Errorf("the API server says %v", err)
			}
		})
	}
}

func read(t *testing.T, text string, into *map[string]any) {
	t.Helper()
	must.Do(t, yaml.Unmarshal([]byte(text), into))
}

// definition is nil where the notation forbids the fields.
func definition(t *testing.T, group string, fields, types map[string]any) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	spec, problems := simpleschema.Parse(fields, types)
	if len(problems) > 0 {
		return nil
	}
	group = strings.Trim(group, ".")
	names := crdschema.Names{Plural: "things", Namespaced: true}
	names.Kind.Group, names.Kind.Version, names.Kind.Kind = group, "v1", "Thing"
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Do(t, runtime.DefaultUnstructuredConverter.FromUnstructured(crdschema.Definition(names, spec, nil, ""), crd))
	return crd
}
