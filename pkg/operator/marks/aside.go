package marks

import (
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// ShardLabelValue is the value of that label.
func ShardLabelValue(shard int) string { return strconv.Itoa(shard) }

// WithShard returns a document that is to be sent with the label of a shard, if the config has one.
func WithShard(s *operator.Settings, doc map[string]any, shard int) map[string]any {
	if s.ShardLabel() == "" {
		return doc
	}
	return withMeta(doc, "labels", s.ShardLabel(), ShardLabelValue(shard))
}

// Aside are the fields of downstreams that say who applied them, and nothing of the desired state.
func Aside(s *operator.Settings) (fields []fieldpath.Path) {
	if key := s.TokenKey(); key != "" {
		fields = append(fields, fieldpath.New("metadata", "annotations", key))
	}
	if key := RolloutKey(s); key != "" {
		fields = append(fields, fieldpath.New("metadata", "annotations", key))
	}
	if key := s.ShardLabel(); key != "" {
		fields = append(fields, fieldpath.New("metadata", "labels", key))
	}
	return fields
}

// KeepAside gives an object that a write would leave the values of these fields before it, where it has none: they say
// who applied it, which only a process that runs knows. It returns their paths.
func KeepAside(s *operator.Settings, before, after *unstructured.Unstructured) []fieldpath.Path {
	fields := Aside(s)
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

// WithToken returns a document that is to be sent with the fencing token of the activation, if the config has a place
// for it.
func WithToken(s *operator.Settings, doc map[string]any, token string) map[string]any {
	if s.TokenKey() == "" || token == "" {
		return doc
	}
	return withMeta(doc, "annotations", s.TokenKey(), token)
}

// RolloutKey is the annotation that says in which rollout an object was applied; "" for none.
func RolloutKey(s *operator.Settings) string {
	if r := s.Config.Conventions.Rollout; r != nil {
		return r.Annotation
	}
	return ""
}

// WithRollout returns a document that is to be sent with the mark of a rollout, if the config has a place for it.
func WithRollout(s *operator.Settings, doc map[string]any, mark string) map[string]any {
	if RolloutKey(s) == "" || mark == "" {
		return doc
	}
	return withMeta(doc, "annotations", RolloutKey(s), mark)
}

// withMeta is a document with one more label or annotation. It does not change the one that it is given.
func withMeta(doc map[string]any, part, key, value string) map[string]any {
	meta := maps.Clone(operator.AsMap(doc["metadata"]))
	if meta == nil {
		meta = map[string]any{}
	}
	entries := maps.Clone(operator.AsMap(meta[part]))
	if entries == nil {
		entries = map[string]any{}
	}
	entries[key] = value
	meta[part] = entries
	doc = maps.Clone(doc)
	doc["metadata"] = meta
	return doc
}
