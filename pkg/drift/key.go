package drift

// Key is an annotation or a label. Exactly one is set.
type Key struct{ Annotation, Label string }

// read returns the value of the key in an object's metadata, or "".
func (k Key) read(metadata map[string]any) string {
	if k.Label != "" {
		return textAt(metadata, "labels", k.Label)
	}
	if k.Annotation != "" {
		return textAt(metadata, "annotations", k.Annotation)
	}
	return ""
}

func textAt(metadata map[string]any, field, key string) string {
	m, _ := metadata[field].(map[string]any)
	s, _ := m[key].(string)
	return s
}
