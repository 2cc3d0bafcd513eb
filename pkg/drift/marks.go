package drift

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift/managed"
)

// readMarks sets who applied the owner marks, and the name of the downstream, where that is ours. Only the exact paths
// of the marks count, and only as owned places: when an object is created, the API server removes these from the
// entries that the client sent, but keeps paths that the object does not have.
func (v *View) readMarks(l *Live, u *unstructured.Unstructured, es []managed.Entry) {
	annotation := v.ownerAnnotation(u)
	written, _ := u.Object["metadata"].(map[string]any)
	for i := range es {
		e := &es[i]
		if e.Operation != "Apply" || e.Subresource != "" {
			continue
		}
		metadata, _ := e.Owned.Field("metadata")
		ours := e.Manager == v.Manager || e.Manager == v.Previous.Manager && e.Manager != ""
		if ours {
			markRefs(l.Owners, metadata)
		}
		annotations, _ := metadata.Field("annotations")
		if mark, ok := annotations.Field(annotation); annotation != "" && ok && mark.IsMember() {
			l.MarkApplied = l.MarkApplied || ours
			l.MarkTheirs = l.MarkTheirs || !ours
		}
		if name, ok := annotations.Field(v.NameAnnotation); ours && v.NameAnnotation != "" && ok && name.IsMember() {
			l.Downstream = intern(Key{Annotation: v.NameAnnotation}.read(written))
		}
	}
}

// ownerAnnotation returns the key of OwnerMark, or "".
func (v *View) ownerAnnotation(u *unstructured.Unstructured) string {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, key := range []string{v.OwnerAnnotation, v.Previous.OwnerAnnotation} {
		if (Key{Annotation: key}).read(metadata) != "" {
			return key
		}
	}
	return ""
}

// markRefs sets which owner references are owned by metadata, of an entry of ours. The list is keyed by uid alone.
func markRefs(refs []OwnerRef, metadata managed.Fields) {
	if len(refs) == 0 {
		return
	}
	owned, _ := metadata.Field("ownerReferences")
	for key, below := range owned {
		uid, isKey := strings.CutPrefix(key, `k:{"uid":"`)
		uid, closed := strings.CutSuffix(uid, `"}`)
		node, isNode := below.(map[string]any)
		if !isKey || !closed || !isNode || !managed.Fields(node).IsMember() {
			continue
		}
		for i := range refs {
			refs[i].Applied = refs[i].Applied || string(refs[i].UID) == uid
		}
	}
}
