package prove

import (
	"maps"
)

// withMapsOf is an object with empty labels and annotations where it has none and another one has some: then they
// differ in these, not as a whole.
func withMapsOf(obj, other map[string]any) map[string]any {
	mine, _ := obj["metadata"].(map[string]any)
	theirs, _ := other["metadata"].(map[string]any)
	if mine == nil {
		return obj
	}
	metadata := maps.Clone(mine)
	for _, name := range []string{"labels", "annotations"} {
		if texts, ok := theirs[name].(map[string]any); ok && len(texts) > 0 && mine[name] == nil {
			metadata[name] = map[string]any{}
		}
	}
	with := maps.Clone(obj)
	with["metadata"] = metadata
	return with
}
