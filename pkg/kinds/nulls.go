package kinds

import (
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// DropNulls removes the null values from an object's maps, in place, except for those that the API server stores: of
// nullable fields, and of fields that the schema does not declare and whose object may have such fields. Those exist in
// custom kinds only. Without a schema, all are removed.
func (k *Kind) DropNulls(obj map[string]any) {
	if !hasNull(obj) {
		return
	}
	s := k.Schema
	if !k.IsCustom() {
		s = nil
	}
	for key, value := range obj {
		if value == nil {
			delete(obj, key)
			continue
		}
		below := &spec.Schema{}
		if s != nil && key != "metadata" {
			below = fieldSchema(s, key)
		}
		dropNulls(value, below)
	}
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, value := range v {
			if hasNull(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

// dropNulls removes nulls from a value; s is nil if nothing is known of it and the API server stores whatever it is.
func dropNulls(v any, s *spec.Schema) {
	if s == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			below := fieldSchema(s, key)
			if value == nil && below != nil && !below.Nullable {
				delete(v, key)
				continue
			}
			dropNulls(value, below)
		}
	case []any:
		item := &spec.Schema{}
		if s.Items != nil && s.Items.Schema != nil {
			item = s.Items.Schema
		} else if KeepsUnknown(s) {
			return
		}
		for _, value := range v {
			dropNulls(value, item)
		}
	}
}

// fieldSchema returns the schema of a field; nil if it is not declared, and is stored as it is.
func fieldSchema(s *spec.Schema, key string) *spec.Schema {
	if p, ok := s.Properties[key]; ok {
		return &p
	}
	switch more := s.AdditionalProperties; {
	case more != nil && more.Schema != nil:
		return more.Schema
	case more != nil && more.Allows, KeepsUnknown(s):
		return nil
	}
	return &spec.Schema{} // the API server does not store it
}
