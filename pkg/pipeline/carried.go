package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// previousOf is what conventions.previous says, but for what the config names still (or again): that is not previous.
func previousOf(conv *config.Conventions) drift.Previous {
	var out drift.Previous
	before := conv.Previous
	if before == nil {
		return out
	}
	if before.FieldManager != conv.FieldManager {
		out.Manager = before.FieldManager
	}
	if h := before.Hash; h != nil {
		if key := (drift.Key{Annotation: h.Annotation, Label: h.Label}); key != (drift.Key{Annotation: conv.Hash.Annotation, Label: conv.Hash.Label}) && !named(conv, key) {
			out.Hash = key
		}
	}
	if o := before.Owner; o != nil && o.Annotation != conv.Owner.Annotation && !named(conv, drift.Key{Annotation: o.Annotation}) {
		out.OwnerAnnotation = o.Annotation
	}
	return out
}

// named tells whether conventions give objects something else under the key: then it says nothing of the past.
func named(conv *config.Conventions, key drift.Key) bool {
	_, label := conv.Labels[key.Label]
	_, annotation := conv.Annotations[key.Annotation]
	return label || annotation || key.Annotation != "" && (key.Annotation == conv.Hash.Annotation || key.Annotation == conv.Owner.Annotation) ||
		key.Label != "" && key.Label == conv.Hash.Label
}

// carried is about an object of ours that bears names of before, or is marked in the way that the config has left: it
// gets the ones of now whatever happens to drift, since one day the config will no longer know those. What is made once
// only gets the marks and keeps everything else.
func carried(s *subject) (Outcome, bool) {
	live := s.facts.Live
	once := s.Downstream.Config.UpdatePolicy == config.UpdateCreateOnly
	if !live.Outdated && !s.markedOtherwise(once) {
		return Outcome{}, false
	}
	message := fmt.Sprintf("%s still uses names from conventions.previous", s.wish.Target)
	if once {
		return Outcome{State: StateUpdate, Action: ActionRemark, Message: message, Carried: true}, true
	}
	return Outcome{State: StateUpdate, Action: ActionApply, Message: message, Carried: true}, true
}

// markedOtherwise tells whether the object bears an owner reference where the config wants the annotation, or the other
// way round. An apply that left it so is not repeated: then somebody else owns that mark too.
func (s *subject) markedOtherwise(once bool) bool {
	live, uid := s.facts.Live, s.in.Upstream.GetUID()
	if _, settled := settled(s); settled && !once {
		return false
	}
	if !s.wish.Reference {
		return slices.ContainsFunc(live.Owners, func(o drift.OwnerRef) bool { return o.UID == uid && o.Controller })
	}
	_, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked == string(uid)
}

// FormerMarks are what says under names of before that an object of downstream i is ours.
func (p *Pipeline) FormerMarks(i int) Marks {
	var m Marks
	before := p.Downstreams[i].View.Previous
	if before.Manager != "" {
		m.Managers = []string{before.Manager}
	}
	if before.Hash.Label != "" {
		m.Labels = append(m.Labels, before.Hash.Label)
	}
	for _, key := range []string{before.Hash.Annotation, before.OwnerAnnotation} {
		if key != "" {
			m.Annotations = append(m.Annotations, key)
		}
	}
	return m
}

// FormerManager is the field manager that the config named before; "" where there is none.
func (p *Pipeline) FormerManager() string { return p.previous.Manager }

// FormerFinalizer is the finalizer that the config named before; "" where there is none.
func (p *Pipeline) FormerFinalizer() string {
	conv := p.Config.Conventions
	if conv.Previous == nil || conv.Previous.Finalizer == conv.Finalizer {
		return ""
	}
	return conv.Previous.Finalizer
}

// BearsOwner tells whether an object has an owner annotation under the name of now or of before.
func (p *Pipeline) BearsOwner(u *unstructured.Unstructured) bool {
	return bears(u, drift.Key{Annotation: p.Config.Conventions.Owner.Annotation}) || bears(u, drift.Key{Annotation: p.previous.OwnerAnnotation})
}

// BearsHash tells whether an object has a hash under the name of now or of before.
func (p *Pipeline) BearsHash(u *unstructured.Unstructured) bool {
	return bears(u, p.hashKey) || bears(u, p.previous.Hash)
}

func bears(u *unstructured.Unstructured, key drift.Key) bool {
	return key.Annotation != "" && u.GetAnnotations()[key.Annotation] != "" || key.Label != "" && u.GetLabels()[key.Label] != ""
}

// Remarked is what to apply to an object that is made once only, so that it has the marks of doc, the document of downstream i,
// in the place of its previous ones: what our manager owns of it, as it is, and these. An apply is what makes them ours in
// the API server's record. The hash stays the one that the live object has: it tells what was made. off are the marks that go.
func (p *Pipeline) Remarked(doc map[string]any, i int, owner types.UID, obj *unstructured.Unstructured, hash string) (out map[string]any, off Marks) {
	now, off := p.Marks(owner, i), p.FormerMarks(i)
	owned, _ := drift.Project(obj, p.Config.Conventions.FieldManager)
	out = maps.Clone(owned)
	if out == nil {
		out = map[string]any{}
	}
	meta, docMeta := maps.Clone(asMap(out["metadata"])), asMap(doc["metadata"])
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
		off.Annotations = append(off.Annotations, p.Config.Conventions.Owner.Annotation)
	} else {
		delete(meta, "ownerReferences")
		off.OwnerUID = owner
	}
	meta["labels"] = exchanged(meta["labels"], docMeta["labels"], now.Labels, off.Labels)
	meta["annotations"] = exchanged(meta["annotations"], docMeta["annotations"], now.Annotations, off.Annotations)
	if hash != "" && p.hashKey.Label != "" {
		setText(meta, "labels", p.hashKey.Label, hash)
	} else if hash != "" {
		setText(meta, "annotations", p.hashKey.Annotation, hash)
	}
	return out, off
}

// exchanged returns have without the keys of off, and with what want has under keys.
func exchanged(have, want any, keys, off []string) map[string]any {
	out := maps.Clone(asMap(have))
	if out == nil {
		out = map[string]any{}
	}
	for _, key := range off {
		delete(out, key)
	}
	for _, key := range keys {
		if s, ok := asMap(want)[key].(string); ok {
			out[key] = s
		}
	}
	return out
}
