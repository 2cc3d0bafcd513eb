package convert_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
)

// Whoever may write an object can forge the annotation of preserve. What comes of it must be an object that the API
// server takes from a webhook: else every list of the kind fails, for everybody.
func TestForgedAnnotation(t *testing.T) {
	t.Parallel()
	c, problems := compile(t, crdOf(`{a: {type: string}, "n": {type: integer}}`, `{a: {type: string}, "n": {type: integer, maximum: 5}, new: {type: string}}`),
		[]byte("hub: v1\nspokes: [{version: v1beta1}]\npreserve: {annotation: example.com/kept}"))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	values := []string{`5`, `null`, `"x"`, `[]`, `[5]`, `["spec"]`, `{}`, `{"a": 5}`, `{"a": "x"}`, `{"bad key!": "x"}`, `{"a": {"b": 1}}`, `true`, `1e400`}
	specs := []map[string]any{{"a": "v"}, {"a": "v", "n": int64(9)}} // the second one is not valid in v1
	for _, path := range []string{
		`[]`, `[5]`, `["spec"]`, `["metadata"]`, `["metadata", "labels"]`, `["metadata", "labels", "a"]`, `["metadata", "labels", "bad key!"]`,
		`["metadata", "annotations"]`, `["metadata", "annotations", "a"]`, `["metadata", "annotations", "example.com/kept"]`,
		`["metadata", "name"]`, `["metadata", "labels", {"a": 1}]`, `["apiVersion"]`, `["kind"]`, `["spec"]`, `["spec", "a"]`, `["spec", "n"]`,
		`["spec", "new"]`, `["status"]`, `["status", "approved"]`, `["spec", "a", "b"]`, `["spec", {"a": "x"}]`, `[{"spec": 1}]`, `["other"]`,
	} {
		for _, value := range values {
			for _, back := range []string{`"backAbsent": true`, `"back": {"k": "v"}`, `"back": "v"`, `"back": null`, `"absent": true, "back": {"k": "v"}`} {
				spec := specs[0]
				if specs[0], specs[1] = specs[1], specs[0]; len(spec) > 1 {
					back = strings.ReplaceAll(back, `"v"}`, `"v", "n": 9}`)
				}
				obj := map[string]any{"apiVersion": "example.com/v1beta1", "kind": "Thing", "spec": runtime.DeepCopyJSON(spec),
					"metadata": map[string]any{"name": "a", "uid": "1", "labels": map[string]any{"k": "v"}, "annotations": map[string]any{
						"k": "v", "example.com/kept": fmt.Sprintf(`{"v1": {"fields": [{"path": %s, "is": %s, %s}]}}`, path, value, back)}}}
				forged := obj["metadata"].(map[string]any)["annotations"].(map[string]any)["example.com/kept"]
				before := runtime.DeepCopyJSON(obj)["metadata"].(map[string]any)
				if err := c.Convert(t.Context(), obj, "v1"); err != nil {
					t.Errorf("%s: %v", forged, err)
					continue
				}
				if problem := unacceptable(obj, before); problem != "" {
					t.Errorf("%s: %s: %v", forged, problem, obj)
				}
			}
		}
	}
}

// Whatever the annotation says, it makes no conversion fail: of an object that is stored, every list of the kind would
// fail with it.
func TestForgedAnnotationNeverFails(t *testing.T) {
	t.Parallel()
	_, versions := define(t, crdOf(`{a: {type: string}, old: {type: string}}`, `{a: {type: string}, new: {type: string}}`))
	values := []string{`null`, `true`, `1`, `1e999`, `"x"`, `""`, `[]`, `[null]`, `{}`, `{"a": null}`}
	var texts []string
	for _, v := range values {
		texts = append(texts, v, `{"v1": `+v+`}`, `{"v1beta1": `+v+`}`, `{"v2": `+v+`}`, `{"": `+v+`}`, `{"v1": {}, "v1beta1": `+v+`}`)
		for _, version := range []string{"v1", "v1beta1"} {
			for _, form := range []string{
				`{"fields": %s}`, `{"fields": [%s]}`, `{"fields": [{"path": %s}]}`, `{"fields": [{"path": [%s]}]}`,
				`{"fields": [{"path": ["spec", "new"], "is": %s}]}`, `{"fields": [{"path": ["spec", "old"], "back": %s}]}`,
				`{"fields": [{"path": ["spec", "a"], "absent": %s}]}`, `{"tooLarge": %s}`,
			} {
				texts = append(texts, fmt.Sprintf(`{%q: %s}`, version, fmt.Sprintf(form, v)))
			}
		}
	}
	texts = append(texts, "", "{", strings.Repeat("[", 100_000), strings.Repeat(`{"v1":`, 10_000))
	for _, stored := range []string{"v1beta1", "v1"} {
		c, problems := convert.Compile(&conversion.Conversion{
			Hub: "v1", Spokes: []conversion.Spoke{{Version: "v1beta1"}}, Preserve: &conversion.Preserve{Annotation: "example.com/kept"},
		}, convert.Options{Kind: schema.GroupKind{Group: "example.com", Kind: "Thing"}, Versions: versions, Stored: stored})
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		to, own := "v1", "old"
		if stored == "v1" {
			to, own = "v1beta1", "new"
		}
		for _, text := range texts {
			obj := map[string]any{"apiVersion": "example.com/" + stored, "kind": "Thing", "spec": map[string]any{"a": "v", own: "x"},
				"metadata": map[string]any{"name": "a", "uid": "1", "annotations": map[string]any{"example.com/kept": text}}}
			if err := c.Convert(t.Context(), obj, to); err != nil {
				t.Errorf("%s to %s: %.100q: %v", stored, to, text, err)
			}
		}
	}
}

// What would make reads fail once another version is stored is found before, whatever is stored now: data without room,
// and an annotation that claims there was none.
func TestSurvivesAnyStoredVersion(t *testing.T) {
	t.Parallel()
	_, versions := define(t, crdOf(`{a: {type: string}, m: {type: object, additionalProperties: {type: string}}}`, `{a: {type: string}}`))
	large := map[string]any{"key": strings.Repeat("x", 130<<10)}
	for _, stored := range []string{"", "v1beta1", "v1"} {
		c, problems := convert.Compile(&conversion.Conversion{
			Hub: "v1", Spokes: []conversion.Spoke{{Version: "v1beta1"}}, Preserve: &conversion.Preserve{Annotation: "example.com/kept"},
		}, convert.Options{Kind: schema.GroupKind{Group: "example.com", Kind: "Thing"}, Versions: versions, Stored: stored})
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		for _, row := range []struct {
			name, version, annotation string
			m                         map[string]any
			lost                      bool
		}{
			{name: "small", version: "v1beta1", m: map[string]any{"key": "x"}},
			{name: "large", version: "v1beta1", m: large, lost: true},
			{name: "forged", version: "v1beta1", annotation: `{"v1": {"tooLarge": true}}`, lost: true},
			{name: "forged for the other version", version: "v1", annotation: `{"v1beta1": {"tooLarge": true}}`, lost: true},
		} {
			spec, metadata := map[string]any{"a": "v"}, map[string]any{"name": "a"}
			if row.m != nil {
				spec["m"] = row.m
			}
			if row.annotation != "" {
				metadata["annotations"] = map[string]any{"example.com/kept": row.annotation}
			}
			obj := map[string]any{"apiVersion": "example.com/" + row.version, "kind": "Thing", "spec": spec, "metadata": metadata}
			loss, valid := prove.Survives(t.Context(), c, obj)
			if !valid || (loss != nil) != row.lost {
				t.Errorf("stored in %q, %s: the loss is %v", stored, row.name, loss)
			}
		}
	}
}

// unacceptable is why the API server would not take a converted object.
func unacceptable(obj, before map[string]any) string {
	text, err := json.Marshal(obj["metadata"])
	if err != nil {
		return err.Error()
	}
	var meta metav1.ObjectMeta
	if err := json.Unmarshal(text, &meta); err != nil {
		return err.Error()
	}
	errs := append(metavalidation.ValidateLabels(meta.Labels, field.NewPath("labels")),
		validation.ValidateAnnotations(meta.Annotations, field.NewPath("annotations"))...)
	if len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	now := maps.Clone(obj["metadata"].(map[string]any))
	for _, free := range []string{"labels", "annotations"} {
		delete(now, free)
		delete(before, free)
	}
	if fmt.Sprint(now) != fmt.Sprint(before) {
		return "metadata has changed"
	}
	if obj["status"] != nil {
		return "whoever may write the object has written its status"
	}
	if _, ok := obj["spec"].(map[string]any); !ok || obj["apiVersion"] != "example.com/v1" || obj["kind"] != "Thing" {
		return "it is another object"
	}
	return ""
}

// Annotations have 256 KiB together: one object that needs more must not make every list of the kind fail.
func TestRoomOfAnnotations(t *testing.T) {
	t.Parallel()
	c, problems := compile(t, crdOf(`{a: {type: string}}`, `{a: {type: string}, m: {type: object, additionalProperties: {type: string}}}`),
		[]byte("hub: v1\nspokes: [{version: v1beta1}]\npreserve: {annotation: example.com/kept}"))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for _, size := range []int{0, 100_000, 200_000, validation.TotalAnnotationSizeLimitB - 100, validation.TotalAnnotationSizeLimitB - 1} {
		m := map[string]any{}
		for i := range 800 {
			m[fmt.Sprint("key", i)] = strings.Repeat("x", 100)
		}
		obj := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "spec": map[string]any{"a": "v", "m": m},
			"metadata": map[string]any{"name": "a", "annotations": map[string]any{"k": strings.Repeat("x", size)}}}
		if err := c.Convert(t.Context(), obj, "v1beta1"); err != nil {
			t.Errorf("%d: %v", size, err)
			continue
		}
		annotations := map[string]string{}
		for key, value := range obj["metadata"].(map[string]any)["annotations"].(map[string]any) {
			annotations[key] = value.(string)
		}
		if errs := validation.ValidateAnnotations(annotations, field.NewPath("annotations")); len(errs) > 0 {
			t.Errorf("%d: %v", size, errs)
		}
		// Written back, it has all of them again or is refused, also where the other annotations are gone by then.
		for _, emptied := range []bool{false, true} {
			back := runtime.DeepCopyJSON(obj)
			if emptied {
				delete(back["metadata"].(map[string]any)["annotations"].(map[string]any), "k")
			}
			if err := c.Convert(t.Context(), back, "v1"); err == nil && !reflect.DeepEqual(back["spec"].(map[string]any)["m"], any(m)) {
				t.Errorf("%d, emptied: %v: fields are lost without an error", size, emptied)
			}
		}
	}
}

// What was changed in the other version may not go with a preserved field any more. Then that one is not restored, and
// all others are.
func TestPreservedOneByOne(t *testing.T) {
	t.Parallel()
	c, problems := compile(t, crdOf(`{replicas: {type: integer}}`,
		`{replicas: {type: integer}, surge: {type: integer}, zone: {type: string}, mode: {type: string}}, `+
			`x-kubernetes-validations: [{rule: "!has(self.surge) || self.surge <= self.replicas"}]`),
		[]byte("hub: v1\nspokes: [{version: v1beta1}]\npreserve: {annotation: example.com/kept}"))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	for _, row := range []struct {
		replicas int64
		want     string
	}{
		{7, "map[mode:fast replicas:7 surge:3 zone:UTC]"},
		{2, "map[mode:fast replicas:2 zone:UTC]"},
	} {
		obj := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"replicas": int64(5), "surge": int64(3), "zone": "UTC", "mode": "fast"}}
		must.Do(t, c.Convert(t.Context(), obj, "v1beta1"))
		obj["spec"].(map[string]any)["replicas"] = row.replicas
		must.Do(t, c.Convert(t.Context(), obj, "v1"))
		must.Same(t, row.want, fmt.Sprint(obj["spec"]), "it")
	}
}

// TestRenamedAnnotation: what travels under the name that preserve had earlier is put back, and travels on under the
// current name.
func TestRenamedAnnotation(t *testing.T) {
	t.Parallel()
	crd := crdOf(`{a: {type: string}, note: {type: string}, old: {type: string}}`, `{a: {type: string}, new: {type: string}, zone: {type: string}}`)
	of := func(annotation, more string) *convert.Converter {
		c, problems := compile(t, crd, []byte("hub: v1\nspokes: [{version: v1beta1, "+more+"}]\npreserve: {annotation: "+annotation+"}"))
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		return c
	}
	const rule = "rules: [{move: .spec.note, to: \".metadata.annotations['example.com/note']\"}]"
	const kept = `{"v1":{"fields":[{"path":["spec","zone"],"is":"west","backAbsent":true}]}}`
	earlier, now := of("example.com/earlier", ""), of("example.com/now", "")
	obj := func(version string, spec map[string]any, annotations map[string]any) map[string]any {
		metadata := map[string]any{"name": "a"}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return map[string]any{"apiVersion": "example.com/" + version, "kind": "Thing", "spec": spec, "metadata": metadata}
	}
	for _, row := range []struct {
		name, reason string
		stored       map[string]any
		converter    *convert.Converter
		spec         map[string]any // in v1
		annotations  map[string]any
	}{
		{"renamed", "nothing is lost", obj("v1beta1", map[string]any{"a": "x"}, map[string]any{"k": "v", "example.com/earlier": kept}), now,
			map[string]any{"a": "x", "zone": "west"}, map[string]any{"k": "v"}},
		{"both", "what was written later counts", obj("v1beta1", map[string]any{"a": "x"}, map[string]any{"example.com/earlier": kept,
			"example.com/now": strings.Replace(kept, "west", "east", 1)}), now, map[string]any{"a": "x", "zone": "east"}, nil},
		{"of a rule", "a rule says what its annotation holds", obj("v1beta1", map[string]any{"a": "x", "note": kept}, nil),
			of("example.com/now", rule), map[string]any{"a": "x"}, map[string]any{"example.com/note": kept}},
		{"like it", "only what the conversion writes is taken", obj("v1beta1", map[string]any{"a": "x"}, map[string]any{"k": `{"v1":{"fields":[{"path":["spec","zone"],"more":1}]}}`}), now,
			map[string]any{"a": "x"}, map[string]any{"k": `{"v1":{"fields":[{"path":["spec","zone"],"more":1}]}}`}},
		{"of another version", "it is nothing that this conversion has written",
			obj("v1beta1", map[string]any{"a": "x"}, map[string]any{"k": strings.Replace(kept, "v1", "v7", 1)}), now,
			map[string]any{"a": "x"}, map[string]any{"k": strings.Replace(kept, "v1", "v7", 1)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			read := runtime.DeepCopyJSON(row.stored)
			must.Do(t, row.converter.Convert(t.Context(), read, "v1"))
			got, _ := read["metadata"].(map[string]any)["annotations"].(map[string]any)
			delete(got, "example.com/now") // what v1 has no room for
			if !reflect.DeepEqual(read["spec"], row.spec) || len(got)+len(row.annotations) > 0 && !reflect.DeepEqual(got, row.annotations) {
				t.Errorf("%s: got %v with %v", row.reason, read["spec"], got)
			}
		})
	}
	// There by the earlier name, back and there again by the current one; and what is stored is proven.
	want := obj("v1", map[string]any{"a": "x", "new": "n", "zone": "west"}, nil)
	there := runtime.DeepCopyJSON(want)
	must.Do(t, earlier.Convert(t.Context(), there, "v1beta1"))
	if loss, valid := prove.Survives(t.Context(), now, there); loss != nil || !valid {
		t.Errorf("convert prove --live says %+v, valid %v", loss, valid)
	}
	if err := now.Convert(t.Context(), there, "v1"); err != nil || !reflect.DeepEqual(there["spec"], want["spec"]) {
		t.Errorf("back it is %v, %v", there, err)
	}
	must.Do(t, now.Convert(t.Context(), there, "v1beta1"))
	if a := there["metadata"].(map[string]any)["annotations"].(map[string]any); len(a) != 1 || a["example.com/now"] == nil {
		t.Errorf("it travels in %v", a)
	}
}
