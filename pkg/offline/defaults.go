package offline

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// FillDefaults sets the defaults of a schema in a value, in place, as the API server does for custom resources: a field
// that is missing, or null but not nullable, gets its default. Defaults inside a map apply only if that map exists.
func FillDefaults(value any, s *spec.Schema) {
	switch v := value.(type) {
	case map[string]any:
		for name := range s.Properties {
			property := s.Properties[name]
			have, ok := v[name]
			if property.Default != nil && (!ok || have == nil && !property.Nullable) {
				v[name] = runtime.DeepCopyJSONValue(property.Default)
			}
			FillDefaults(v[name], &property)
		}
		if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
			return
		}
		for name := range v {
			if _, declared := s.Properties[name]; !declared {
				FillDefaults(v[name], s.AdditionalProperties.Schema)
			}
		}
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return
		}
		for _, item := range v {
			FillDefaults(item, s.Items.Schema)
		}
	}
}
