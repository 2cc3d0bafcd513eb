package marks

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// PreviousOf returns the names of conventions.previous, without those that the config uses now.
func PreviousOf(conv *config.Conventions) drift.Previous {
	var out drift.Previous
	previous := conv.Previous
	if previous == nil {
		return out
	}
	if previous.FieldManager != conv.FieldManager {
		out.Manager = previous.FieldManager
	}
	if h := previous.Hash; h != nil {
		key := drift.Key{Annotation: h.Annotation, Label: h.Label}
		current := drift.Key{Annotation: conv.Hash.Annotation, Label: conv.Hash.Label}
		if key != current && !isCurrentKey(conv, key) {
			out.Hash = key
		}
	}
	if o := previous.Owner; o != nil && o.Annotation != conv.Owner.Annotation &&
		!isCurrentKey(conv, drift.Key{Annotation: o.Annotation}) {
		out.OwnerAnnotation = o.Annotation
	}
	return out
}

// isCurrentKey reports whether the conventions use the key now, for something else: then it proves nothing about the
// past.
func isCurrentKey(conv *config.Conventions, key drift.Key) bool {
	_, label := conv.Labels[key.Label]
	_, annotation := conv.Annotations[key.Annotation]
	return label || annotation ||
		key.Annotation != "" && (key.Annotation == conv.Hash.Annotation || key.Annotation == conv.Owner.Annotation) ||
		key.Label != "" && key.Label == conv.Hash.Label
}

// PreviousMarks returns the previous names of the marks that make an object of downstream i ours.
func PreviousMarks(s *operator.Settings, i int) Marks {
	var m Marks
	previous := s.Downstreams[i].View.Previous
	if previous.Manager != "" {
		m.Managers = []string{previous.Manager}
	}
	if previous.Hash.Label != "" {
		m.Labels = append(m.Labels, previous.Hash.Label)
	}
	for _, key := range []string{previous.Hash.Annotation, previous.OwnerAnnotation} {
		if key != "" {
			m.Annotations = append(m.Annotations, key)
		}
	}
	return m
}

// PreviousManager returns the field manager of conventions.previous, or "".
func PreviousManager(s *operator.Settings) string { return s.Previous.Manager }

// PreviousFinalizer returns the finalizer of conventions.previous, or "".
func PreviousFinalizer(s *operator.Settings) string {
	conv := s.Config.Conventions
	if conv.Previous == nil || conv.Previous.Finalizer == conv.Finalizer {
		return ""
	}
	return conv.Previous.Finalizer
}

// HasOwnerMark reports whether an object has the owner annotation, under its current or its previous key.
func HasOwnerMark(s *operator.Settings, u *unstructured.Unstructured) bool {
	return hasKey(u, drift.Key{Annotation: s.Config.Conventions.Owner.Annotation}) ||
		hasKey(u, drift.Key{Annotation: s.Previous.OwnerAnnotation})
}

// OwnerMarks are the owner annotations of an object, under their current and their previous key; empty for none.
func OwnerMarks(s *operator.Settings, u *unstructured.Unstructured) []string {
	all := u.GetAnnotations()
	return []string{all[s.Config.Conventions.Owner.Annotation], all[s.Previous.OwnerAnnotation]}
}

// HasHash reports whether an object has a hash, under its current or its previous key.
func HasHash(s *operator.Settings, u *unstructured.Unstructured) bool {
	return hasKey(u, s.Hash) || hasKey(u, s.Previous.Hash)
}

func hasKey(u *unstructured.Unstructured, key drift.Key) bool {
	return key.Annotation != "" && u.GetAnnotations()[key.Annotation] != "" || key.Label != "" &&
		u.GetLabels()[key.Label] != ""
}

// WithCurrentMarks returns what to apply to an object with updatePolicy CreateOnly so that it has the current marks
// instead of the previous ones: the fields that our manager owns, unchanged, and the marks of doc, the document of
// downstream i. The live object keeps its hash, which is the hash of what was created. off are the marks to remove.
func WithCurrentMarks(
	s *operator.Settings, doc map[string]any, i int, owner types.UID, obj *unstructured.Unstructured, hash string,
) (out map[string]any, off Marks) {
	now, off := Of(s, owner, i), PreviousMarks(s, i)
	owned, _ := drift.Project(obj, s.Config.Conventions.FieldManager)
	out = maps.Clone(owned)
	if out == nil {
		out = map[string]any{}
	}
	meta, docMeta := maps.Clone(operator.AsMap(out["metadata"])), operator.AsMap(doc["metadata"])
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], out["metadata"] = obj.GetName(), meta
	if ns := obj.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}
	out["apiVersion"], out["kind"] = doc["apiVersion"], doc["kind"]
	if refs, ok := docMeta["ownerReferences"]; ok {
		meta["ownerReferences"] = refs
		off.Annotations = append(off.Annotations, s.Config.Conventions.Owner.Annotation)
	} else {
		delete(meta, "ownerReferences")
		off.OwnerUID = owner
	}
	meta["labels"] = replaceKeys(meta["labels"], docMeta["labels"], now.Labels, off.Labels)
	meta["annotations"] = replaceKeys(meta["annotations"], docMeta["annotations"], now.Annotations, off.Annotations)
	if hash != "" && s.Hash.Label != "" {
		setText(meta, "labels", s.Hash.Label, hash)
	} else if hash != "" {
		setText(meta, "annotations", s.Hash.Annotation, hash)
	}
	return out, off
}

// WithOwnerAnnotation returns what to apply to an object of downstream i so that it has the owner annotation in the
// place of the owner reference: the fields that our manager owns, otherwise unchanged. off are the marks to remove.
func WithOwnerAnnotation(
	s *operator.Settings, upstream *unstructured.Unstructured, i int, obj *unstructured.Unstructured, hash string,
) (out map[string]any, off Marks) {
	doc := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": map[string]any{
		"annotations": map[string]any{s.Config.Conventions.Owner.Annotation: OwnerMark(upstream)}}}
	return WithCurrentMarks(s, doc, i, upstream.GetUID(), obj, hash)
}

// replaceKeys returns a copy of have without the keys in off, and with want's values of keys.
func replaceKeys(have, want any, keys, off []string) map[string]any {
	out := maps.Clone(operator.AsMap(have))
	if out == nil {
		out = map[string]any{}
	}
	for _, key := range off {
		delete(out, key)
	}
	for _, key := range keys {
		if s, ok := operator.AsMap(want)[key].(string); ok {
			out[key] = s
		}
	}
	return out
}
