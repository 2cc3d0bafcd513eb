package report

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// evaluated are the values of status.fields. An expression that gives an error leaves its field as it is.
func evaluated(paths []fieldpath.Path, upstream *unstructured.Unstructured, results []FieldResult) []fieldValue {
	values := make([]fieldValue, len(paths))
	for i, r := range results {
		if r.Err != nil {
			values[i] = currentValue(upstream, paths[i])
		} else {
			values[i] = fieldValue{r.Value, true, true}
		}
	}
	return values
}

// currentValues are the values that status.fields have.
func currentValues(paths []fieldpath.Path, upstream *unstructured.Unstructured) []fieldValue {
	values := make([]fieldValue, len(paths))
	for i, path := range paths {
		values[i] = currentValue(upstream, path)
	}
	return values
}

// currentValue is what the upstream's status has at a path.
func currentValue(upstream *unstructured.Unstructured, path fieldpath.Path) fieldValue {
	value, ok := fieldpath.Get(upstream.Object, path)
	if !ok {
		return fieldValue{}
	}
	return fieldValue{value: runtime.DeepCopyJSONValue(value), set: true}
}

// setFields puts the values of status.fields into a status, but for refused ones.
func setFields(
	s *operator.Settings, content map[string]any, upstream *unstructured.Unstructured, d *draft, refused RefusedFields,
) {
	for i, path := range s.StatusFields {
		v, stands := d.fields[i], currentValue(upstream, path)
		switch _, left := refused.by[i]; {
		case refused.stay:
			v = stands
		case left: // an apply removes what it leaves out, a merge what it says is null
			v = fieldValue{set: stands.set && s.Storable.Conditions != status.ConditionsKeyed}
		}
		if v.set {
			_ = fieldpath.Set(map[string]any{"status": content}, path, v.value)
		}
	}
}

// statusMatches reports whether have says all that want says: equal where want has a value, and none of our conditions
// beyond it.
func statusMatches(have, want map[string]any) bool {
	for key, value := range want {
		if key == "conditions" {
			if !equality.Semantic.DeepEqual(have[key], value) {
				return false
			}
			continue
		}
		if !contains(have[key], value) {
			return false
		}
	}
	return true
}

// contains reports whether have equals want, maps key by key: other writers' keys beside ours do not matter.
func contains(have, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return equality.Semantic.DeepEqual(have, want)
	}
	h, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range w {
		if !contains(h[key], value) {
			return false
		}
	}
	return true
}
