package marks

import (
	"maps"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// Drop takes the keys of conventions out of what the template gave: a template that copies the upstream's labels
// or annotations must not let them say who owns the document, or pause an operator that shares the conventions.
func Drop(s *operator.Settings, doc map[string]any) {
	for _, key := range s.Config.Conventions.Keys() {
		dropText(doc, "annotations", key.Annotation)
		dropText(doc, "labels", key.Label)
	}
}

func dropText(doc map[string]any, part, key string) {
	meta := doc["metadata"].(map[string]any)
	entries := operator.AsMap(meta[part])
	if _, ok := entries[key]; ok {
		entries = maps.Clone(entries)
		delete(entries, key)
		meta[part] = entries
	}
}

// Put adds who owns the document and its hash, last of all.
func Put(s *operator.Settings, doc map[string]any, upstream *unstructured.Unstructured, w *operator.DesiredObject) {
	meta := doc["metadata"].(map[string]any)
	if w.Reference {
		meta["ownerReferences"] = []any{map[string]any{
			"apiVersion": upstream.GetAPIVersion(),
			"kind":       upstream.GetKind(),
			"name":       upstream.GetName(),
			"uid":        string(upstream.GetUID()),
			"controller": true,
		}}
	} else {
		setText(meta, "annotations", s.Config.Conventions.Owner.Annotation, OwnerMark(upstream))
	}
	if s.Hash.Label != "" {
		setText(meta, "labels", s.Hash.Label, w.Hash)
	} else {
		setText(meta, "annotations", s.Hash.Annotation, w.Hash)
	}
}

func setText(meta map[string]any, part, key, value string) {
	entries := operator.AsMap(meta[part])
	if entries == nil {
		entries = map[string]any{}
		meta[part] = entries
	}
	entries[key] = value
}

// Marks say on an object that it is ours.
type Marks struct {
	// OwnerUID is the upstream's, in an owner reference.
	OwnerUID types.UID
	// Labels and Annotations are keys.
	Labels      []string
	Annotations []string
	// Managers are the field managers before the one that the config names now.
	Managers []string
}

// Of are what is taken off an object of downstream i when it is released.
func Of(s *operator.Settings, owner types.UID, i int) Marks {
	d := s.Downstreams[i]
	m := Marks{OwnerUID: owner}
	if conv := &s.Config.Conventions; !d.OwnsFields() {
		m.Labels = slices.AppendSeq(m.Labels, maps.Keys(conv.Labels))
		m.Annotations = slices.AppendSeq(m.Annotations, maps.Keys(conv.Annotations))
	}
	if s.Hash.Label != "" {
		m.Labels = append(m.Labels, s.Hash.Label)
	} else {
		m.Annotations = append(m.Annotations, s.Hash.Annotation)
	}
	if key := s.Config.Conventions.Owner.Annotation; key != "" {
		m.Annotations = append(m.Annotations, key)
	}
	if key := s.NameKey(); key != "" {
		m.Annotations = append(m.Annotations, key)
	}
	if key := s.TokenKey(); key != "" {
		m.Annotations = append(m.Annotations, key)
	}
	if key := RolloutKey(s); key != "" {
		m.Annotations = append(m.Annotations, key)
	}
	if key := s.ShardLabel(); key != "" {
		m.Labels = append(m.Labels, key)
	}
	before := PreviousMarks(s, i)
	m.Labels, m.Annotations = append(m.Labels, before.Labels...), append(m.Annotations, before.Annotations...)
	m.Managers = before.Managers
	sort.Strings(m.Labels)
	sort.Strings(m.Annotations)
	return m
}

// Fields are the fields of an object that hold its owner annotation and its hash, as the API server writes their paths.
func Fields(s *operator.Settings) []string {
	fields := []string{".metadata.annotations." + s.Config.Conventions.Owner.Annotation}
	if s.Hash.Label != "" {
		return append(fields, ".metadata.labels."+s.Hash.Label)
	}
	return append(fields, ".metadata.annotations."+s.Hash.Annotation)
}
