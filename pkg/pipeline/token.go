package pipeline

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// tokenKey is the annotation that holds the fencing token of the activation; "" for none.
func (p *Pipeline) tokenKey() string {
	if t := p.Config.Conventions.ActivationToken; t != nil {
		return t.Annotation
	}
	return ""
}

// aside are the fields of downstreams that say who applied them, and nothing of the desired state.
func (p *Pipeline) aside() (fields []fieldpath.Path) {
	if key := p.tokenKey(); key != "" {
		fields = append(fields, fieldpath.New("metadata", "annotations", key))
	}
	if key := p.ShardLabel(); key != "" {
		fields = append(fields, fieldpath.New("metadata", "labels", key))
	}
	return fields
}

// KeepAside gives an object that a write would leave the values of these fields before it, where it has none: they say who applied it,
// which only a process that runs knows. It returns their paths.
func (p *Pipeline) KeepAside(before, after *unstructured.Unstructured) []fieldpath.Path {
	fields := p.aside()
	for _, path := range fields {
		if before == nil || after == nil {
			continue
		}
		value, had := fieldpath.Get(before.Object, path)
		if _, has := fieldpath.Get(after.Object, path); had && !has {
			_ = fieldpath.Set(after.Object, path, value) // metadata of an object is a map, and so are its labels
		}
	}
	return fields
}

// WithToken returns a document that is to be sent with the fencing token of the activation, if the config has a place for it.
func (p *Pipeline) WithToken(doc map[string]any, token string) map[string]any {
	if p.tokenKey() == "" || token == "" {
		return doc
	}
	return withMeta(doc, "annotations", p.tokenKey(), token)
}

// withMeta is a document with one more label or annotation. It does not change the one that it is given.
func withMeta(doc map[string]any, part, key, value string) map[string]any {
	meta := maps.Clone(asMap(doc["metadata"]))
	if meta == nil {
		meta = map[string]any{}
	}
	entries := maps.Clone(asMap(meta[part]))
	if entries == nil {
		entries = map[string]any{}
	}
	entries[key] = value
	meta[part] = entries
	doc = maps.Clone(doc)
	doc["metadata"] = meta
	return doc
}
