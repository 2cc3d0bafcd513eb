package desired

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// InYAML is a scalar as its author knows it.
func InYAML(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

// AllowedMetadata are the fields of metadata that a template may set.
var AllowedMetadata = []string{"annotations", "labels", "name", "namespace"}

// checkMetadata holds the template to name, namespace, labels and annotations, and these to their types.
func checkMetadata(meta map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if !slices.Contains(AllowedMetadata, key) {
			return redact.Errorf("metadata.%v is set: a template may set %s there and nothing else", key,
				strings.Join(AllowedMetadata, ", "))
		}
	}
	for _, key := range []string{"name", "namespace"} {
		if _, ok := meta[key].(string); !ok && meta[key] != nil {
			return redact.Errorf("metadata.%s is %v, not a string: quote it", key, InYAML(meta[key]))
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		entries, ok := meta[key].(map[string]any)
		if !ok && meta[key] != nil {
			return redact.Errorf("metadata.%s is %v, not a map: write KEY: VALUE below it", key, InYAML(meta[key]))
		}
		texts := make(map[string]string, len(entries))
		for _, k := range slices.Sorted(maps.Keys(entries)) {
			s, ok := entries[k].(string)
			if !ok {
				return redact.Errorf("metadata.%s[%v] is %v, not a string: quote it", key, k, InYAML(entries[k]))
			}
			texts[k] = s
		}
		if errs := checkTexts(key, texts); len(errs) > 0 {
			return textErrors(errs)
		}
	}
	return nil
}

func checkTexts(key string, texts map[string]string) field.ErrorList {
	at := field.NewPath("metadata", key)
	if key == "labels" {
		return metavalidation.ValidateLabels(texts, at)
	}
	return validation.ValidateAnnotations(texts, at)
}

// NameProblems checks a name as its kind wants it. Most kinds take a DNS subdomain; those whose names become host or
// label names take a DNS label; RBAC names may hold anything that fits a path segment.
func NameProblems(gk schema.GroupKind, name string) []string {
	switch {
	case gk.Group == "rbac.authorization.k8s.io":
		return content.IsPathSegmentName(name)
	case gk.Group == "" && gk.Kind == "Service":
		return validation.NameIsDNSLabel(name, false)
	case gk.Group == "" && gk.Kind == "Namespace":
		return validation.NameIsDNSLabel(name, false)
	}
	return validation.NameIsDNSSubdomain(name, false)
}

// textErrors are the errors of labels or annotations, and their text without values.
func textErrors(list field.ErrorList) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) }) // found in maps
	shown := make([]string, len(list))
	for i, e := range list {
		shown[i] = fmt.Sprintf("%s: %s: %s", e.Field, e.Type, e.Detail)
	}
	return redact.New(list.ToAggregate(), shown...)
}
