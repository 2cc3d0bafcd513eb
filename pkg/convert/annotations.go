package convert

// Annotations are those of an object; nil if it has none, or no valid metadata.
func Annotations(obj map[string]any) map[string]any {
	metadata, _ := obj["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}
