package drift_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

func fuzzViews() []*drift.View {
	paths := func(texts ...string) []fieldpath.Path {
		var out []fieldpath.Path
		for _, s := range texts {
			out = append(out, fieldpath.MustParse(s))
		}
		return out
	}
	return []*drift.View{
		{Manager: manager},
		{
			Manager: manager, Hash: drift.Key{Label: "a"}, OwnerAnnotation: "b", KeepWhole: true,
			Initial:   paths(".spec.replicas", ".spec.template.spec.containers[0].image", ".list[1].x", ".list[name=a]"),
			Exclusive: paths(".data", ".metadata.labels", ".list[name=a].m"),
		},
		{
			Manager: "nobody", Adopt: []string{"kubectl", "helm"},
			Previous: drift.Previous{Manager: manager, Hash: drift.Key{Label: "a"}, OwnerAnnotation: "b"},
		},
	}
}

// FuzzProject takes any object with any managedFields: nothing panics, the object is unchanged, the result is
// deterministic and no larger than the object, and P is its digest if nothing is absent.
func FuzzProject(f *testing.F) {
	files := must.Get(filepath.Glob("testdata/live/*.json")).In(f)
	for _, file := range files {
		text := must.Get(os.ReadFile(file)).In(f)
		f.Add(text)
	}
	for _, fieldsV1 := range []string{
		`null`, `[]`, `"x"`, `{}`, `{".":{}}`, `{"f:list":{}}`, `{"f:list":{"k:{\"name\":\"a\"}":{},"k:{\"name\":\"a\",\"n\":1}":{}}}`,
		`{"f:list":{"v:1":{},"i:1":{".":{}}}}`,
		`{"f:list":{"k:":{},"k:{":{},"k:{\"":{},"k:{\"a\":}":{},"k:{\"a\":1,}":{},"k:{,\"a\":1}":{},"v:\"\\u0061\"":{},"k:{\"n\\u0061me\":\"a\"}":{}}}`,
	} {
		f.Add([]byte(`{"metadata":{"managedFields":[{"manager":"` + manager + `","operation":"Apply","fieldsV1":` + fieldsV1 +
			`}]},"list":[{"name":"a","n":1,"m":{"x":"y"}},1,"a",null,[]],"data":{"a":"b"}}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var obj map[string]any
		if json.Unmarshal(data, &obj) != nil || obj == nil {
			return
		}
		obj, err := canonical.Form(obj)
		if err != nil {
			return
		}
		u := &unstructured.Unstructured{Object: obj}
		before := canonical.Digest(obj)
		projection, ok := drift.Project(u, manager)
		for i, v := range fuzzViews() {
			l := v.Live(u)
			if l.Managed != ok {
				t.Fatalf("managed %v, but there is a projection: %v", l.Managed, ok)
			}
			if i == 0 && ok {
				checkSum(t, v, u, l.P)
			}
			if again := v.Live(u); again.P != l.P || again.CoOwned != l.CoOwned || again.Extra != l.Extra {
				t.Error("a second look says something else")
			}
			l.DeepCopyObject()
			drift.Changed(projection, u, v)
			drift.Changed(nil, u, v)
			drift.Extras(u, projection, v.Exclusive)
		}
		if ok {
			if size(t, projection) > size(t, obj) {
				t.Error("the projection is larger than the object")
			}
			if !within(projection, obj) {
				t.Error("the projection has what the object has not, or in another order")
			}
		}
		if lost := drift.LostFields(u, u, manager); len(lost) > 0 {
			t.Errorf("lost without a change: %v", lost)
		}
		if canonical.Digest(obj) != before {
			t.Error("the object was changed")
		}
	})
}

// checkSum: P is the same if the projection is built, and its digest if nothing owned is absent.
func checkSum(t *testing.T, v *drift.View, u *unstructured.Unstructured, p canonical.Sum) {
	t.Helper()
	built := *v
	built.Initial = []fieldpath.Path{fieldpath.MustParse(".none")}
	if built.SumOf(u) != p {
		t.Error("P is another one where the projection is built")
	}
	projection, _ := drift.Project(u, v.Manager)
	if absent := v.AbsentOf(u); len(absent) > 0 && p == canonical.Digest(projection) {
		t.Errorf("P is the digest of the projection, without %v", absent)
	}
}

func size(t *testing.T, v any) int {
	t.Helper()
	text := must.Get(json.Marshal(v)).In(t)
	return len(text)
}

// within reports whether v is whole without some keys and items.
func within(v, whole any) bool {
	switch v := v.(type) {
	case map[string]any:
		m, ok := whole.(map[string]any)
		for k := range v {
			value, there := m[k]
			if there && !within(v[k], value) || !there && v[k] != nil {
				return false
			}
		}
		return ok
	case []any:
		list, ok := whole.([]any)
		for _, item := range v {
			for len(list) > 0 && !within(item, list[0]) {
				list = list[1:]
			}
			if len(list) == 0 {
				return false
			}
			list = list[1:]
		}
		return ok
	default:
		return canonical.Digest(v) == canonical.Digest(whole)
	}
}
