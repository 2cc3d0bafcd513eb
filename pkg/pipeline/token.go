package pipeline

import (
	"maps"

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
