package drift

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// readMarks fills in who applied the marks that say whose the object is. Only the exact paths of the marks count, and only
// as places that are owned themselves: the API server takes those from every entry that a create sends along, but leaves
// paths in it that the object does not have.
func (v *View) readMarks(l *Live, u *unstructured.Unstructured, es []entry) {
	annotation := v.ownerAnnotation(u)
	for i := range es {
		e := &es[i]
		if e.operation != "Apply" || e.subresource != "" {
			continue
		}
		metadata, _ := e.owned.field("metadata")
		ours := e.manager == v.Manager || e.manager == v.Previous.Manager && e.manager != ""
		if ours {
			markRefs(l.Owners, metadata)
		}
		annotations, _ := metadata.field("annotations")
		if mark, ok := annotations.field(annotation); annotation != "" && ok && mark.member() {
			l.MarkApplied = l.MarkApplied || ours
			l.MarkTheirs = l.MarkTheirs || !ours
		}
	}
}

// ownerAnnotation is the key that OwnerMark was read from; "" where the object has none.
func (v *View) ownerAnnotation(u *unstructured.Unstructured) string {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, key := range []string{v.OwnerAnnotation, v.Previous.OwnerAnnotation} {
		if (Key{Annotation: key}).read(metadata) != "" {
			return key
		}
	}
	return ""
}

// markRefs notes which owner references metadata, of an entry of ours, owns. Their list is keyed by uid alone.
func markRefs(refs []OwnerRef, metadata fields) {
	if len(refs) == 0 {
		return
	}
	owned, _ := metadata.field("ownerReferences")
	for key, below := range owned {
		uid, isKey := strings.CutPrefix(key, `k:{"uid":"`)
		uid, closed := strings.CutSuffix(uid, `"}`)
		node, isNode := below.(map[string]any)
		if !isKey || !closed || !isNode || !fields(node).member() {
			continue
		}
		for i := range refs {
			refs[i].Applied = refs[i].Applied || string(refs[i].UID) == uid
		}
	}
}
