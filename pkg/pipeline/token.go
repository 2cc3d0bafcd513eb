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
func (p *Pipeline) aside() []fieldpath.Path {
	if p.tokenKey() == "" {
		return nil
	}
	return []fieldpath.Path{fieldpath.New("metadata", "annotations", p.tokenKey())}
}

// WithToken returns a document that is to be sent with the fencing token of the activation, if the config has a place for it.
func (p *Pipeline) WithToken(doc map[string]any, token string) map[string]any {
	if p.tokenKey() == "" || token == "" {
		return doc
	}
	meta := maps.Clone(asMap(doc["metadata"]))
	if meta == nil {
		meta = map[string]any{}
	}
	annotations := maps.Clone(asMap(meta["annotations"]))
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[p.tokenKey()] = token
	meta["annotations"] = annotations
	doc = maps.Clone(doc)
	doc["metadata"] = meta
	return doc
}
