package kinds

import (
	"k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

// AcceptsMetadata reports whether the API server takes labels and annotations from a webhook. One object with others
// would make every list of the kind fail.
func AcceptsMetadata(obj map[string]any) bool {
	metadata, _ := obj["metadata"].(map[string]any)
	text := map[string]map[string]string{}
	for _, name := range []string{"labels", "annotations"} {
		value, ok := metadata[name]
		if !ok {
			continue
		}
		entries, ok := value.(map[string]any)
		if !ok {
			return false
		}
		text[name] = map[string]string{}
		for key, value := range entries {
			if text[name][key], ok = value.(string); !ok {
				return false
			}
		}
	}
	return len(metavalidation.ValidateLabels(text["labels"], nil)) == 0 &&
		len(validation.ValidateAnnotations(text["annotations"], nil)) == 0
}
