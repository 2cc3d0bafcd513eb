package drift

import (
	"cmp"
	"slices"
	"strings"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Live is what is remembered of a live object: a few hundred bytes for any object. It is never changed once made, so it
// can be shared without locks. It implements runtime.Object and metav1.Object, as a watch's cache demands.
type Live struct {
	APIVersion, Kind string
	Namespace, Name  string
	UID              types.UID
	ResourceVersion  string
	Generation       int64
	// Hash is the value under the hash key, or under the previous one where that has none; "" where neither has.
	Hash string
	// Owners are the metadata.ownerReferences.
	Owners []OwnerRef
	// OwnerMark is the value of the owner annotation, or of the previous one if there is none; "" where neither is.
	OwnerMark string
	// MarkApplied: our manager, or the previous one, owns OwnerMark by apply. See OwnerRef.Applied.
	MarkApplied bool
	// MarkTheirs: another manager owns OwnerMark by apply.
	MarkTheirs bool
	// Unselected: the object lacks the labels that its watch selects by. A watch never shows one; whoever reads one says so.
	Unselected bool
	// P is the digest of the projection: the live values of our fields, with exclusive fields whole and initial fields
	// left out. It is zero where Managed is false.
	P Sum
	// Initial has one element for each initial field of the view, in its order.
	Initial []InitialField
	// Status and StatusMessage are kstatus' verdict on the whole object, generation included. The message of a Current
	// object says nothing more and is left out.
	Status        kstatus.Status
	StatusMessage string
	// Kept is what the view's Keep names, or the whole object without managedFields; nil for nothing. It must not be
	// changed.
	Kept map[string]any

	// Deleting: the object has a deletionTimestamp.
	Deleting bool
	// Managed: our manager has applied to the object, or the previous one has.
	Managed bool
	// CoOwned: a field that we own is owned by another manager too, so that leaving it out would not remove it.
	CoOwned bool
	// Foreign: another manager owns a field of the object itself (no subresource) that we do not own.
	Foreign bool
	// Extra: an exclusive field has keys that we do not own.
	Extra bool
	// StatusWritten: somebody has written the object's status.
	StatusWritten bool
	// NeedsTakeover: a manager of View.TakeoverManagers has an entry for the object itself, which is to become ours before the next apply.
	NeedsTakeover bool
	// HasPreviousNames: the object uses a name of View.Previous.
	HasPreviousNames bool
}

// OwnerRef is one of metadata.ownerReferences, as far as it is needed: ownership goes by uid.
type OwnerRef struct {
	Kind, Name string
	UID        types.UID
	Controller bool
	// Applied: our manager, or the previous one, owns the reference by apply, in the API server's own record. Only an apply
	// under that name, or a write to managedFields of an object that exists, can have put it there.
	Applied bool
}

// live reads u. Nothing of the result lies in u's memory, so that the whole object can go.
func (v *View) live(u *unstructured.Unstructured) *Live {
	metadata, _ := u.Object["metadata"].(map[string]any)
	l := &Live{
		APIVersion:      intern(text(u.Object, "apiVersion")),
		Kind:            intern(text(u.Object, "kind")),
		Namespace:       intern(text(metadata, "namespace")),
		Name:            text(metadata, "name"),
		UID:             types.UID(text(metadata, "uid")),
		ResourceVersion: text(metadata, "resourceVersion"),
		Hash:            cmp.Or(v.Hash.read(metadata), v.Previous.Hash.read(metadata)),
		Owners:          ownerRefs(metadata),
		Deleting:        text(metadata, "deletionTimestamp") != "",
	}
	l.Generation, _ = metadata["generation"].(int64)
	l.OwnerMark = cmp.Or(Key{Annotation: v.OwnerAnnotation}.read(metadata), Key{Annotation: v.Previous.OwnerAnnotation}.read(metadata))
	l.HasPreviousNames = v.Previous.presentIn(metadata)
	v.readFields(l, u)
	l.Status, l.StatusMessage = statusOf(u)
	l.Kept = v.keptCopy(u.Object)
	l.compact()
	return l
}

// readFields fills in what managedFields tells.
func (v *View) readFields(l *Live, u *unstructured.Unstructured) {
	es := entries(u)
	our := split(es, v.Manager)
	if our < 0 && v.Previous.Manager != "" {
		our = split(es, v.Previous.Manager)
	}
	v.readTakeover(l, es)
	v.readMarks(l, u, es)
	l.StatusWritten = slices.ContainsFunc(es, entry.writesStatus)
	var owned fields
	if l.Managed = our >= 0; l.Managed {
		owned = es[our].owned
		l.P = v.sum(u.Object, owned)
	}
	for i := range es {
		if i == our || l.CoOwned && l.Foreign || v.Previous.Manager != "" && es[i].applied(v.Previous.Manager) {
			continue
		}
		shared, more := overlap(owned, es[i].owned, l.Managed)
		l.CoOwned = l.CoOwned || shared
		l.Foreign = l.Foreign || more && es[i].subresource == ""
	}
	l.Extra = v.extra(u.Object, owned, es, our)
	l.Initial = v.initial(u.Object, es, our)
}

// writesStatus reports whether the entry has anything of the status.
func (e entry) writesStatus() bool {
	_, ok := e.owned.field("status")
	return ok
}

// overlap compares what two managers own below one place: shared, whether some place is owned by both, and more, whether
// theirs has a field that ours has not. managed is false if ours is not there at all.
func overlap(ours, theirs fields, managed bool) (shared, more bool) {
	for key, below := range theirs {
		their, ok := below.(map[string]any)
		if !ok || key == ownDot {
			continue
		}
		our, ok := ours.below(key)
		if !managed || !ok {
			more = true
			continue
		}
		s, m := overlap(our, their, true)
		shared = shared || s || our.member() && fields(their).member()
		more = more || m
	}
	return shared, more
}

// statusOf asks kstatus. It takes objects of odd shapes for an error, which leaves us knowing nothing of their status.
func statusOf(u *unstructured.Unstructured) (kstatus.Status, string) {
	r, err := kstatus.Compute(u)
	switch {
	case err != nil:
		return kstatus.UnknownStatus, cut("computing the status: " + err.Error())
	case r.Status == kstatus.CurrentStatus:
		return r.Status, ""
	default:
		return r.Status, cut(r.Message)
	}
}

// maxStatusMessage bounds what is kept of a message that others write.
const maxStatusMessage = 1024

func cut(s string) string {
	if len(s) <= maxStatusMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxStatusMessage], "") + " …"
}

// keptCopy returns a copy of what the view keeps of obj.
func (v *View) keptCopy(obj map[string]any) map[string]any {
	if v.KeepWhole {
		whole := make(map[string]any, len(obj))
		for k, value := range obj {
			if metadata, ok := value.(map[string]any); ok && k == "metadata" {
				value = withoutManagedFields(metadata)
			}
			whole[k] = value
		}
		return runtime.DeepCopyJSON(whole)
	}
	var out map[string]any
	for _, chain := range v.Keep {
		out = keep(out, obj, chain)
	}
	return out
}

func withoutManagedFields(metadata map[string]any) map[string]any {
	out := make(map[string]any, len(metadata))
	for k, value := range metadata {
		if k != "managedFields" {
			out[k] = value
		}
	}
	return out
}

// keep copies what stands at the end of chain in obj to the same place in out, making out where it is nil. Where the
// chain leaves the maps, what stands there is kept, so that an expression finds what it would find in the object.
func keep(out, obj map[string]any, chain []string) map[string]any {
	if len(chain) == 0 {
		return out
	}
	value, ok := obj[chain[0]]
	if !ok {
		return out
	}
	if out == nil {
		out = make(map[string]any, 1)
	}
	below, isMap := value.(map[string]any)
	if len(chain) == 1 || !isMap {
		out[chain[0]] = runtime.DeepCopyJSONValue(value)
		return out
	}
	have, _ := out[chain[0]].(map[string]any)
	if kept := keep(have, below, chain[1:]); kept != nil {
		out[chain[0]] = kept
	} else {
		out[chain[0]] = map[string]any{} // it is there, only what is asked of it is not
	}
	return out
}

func ownerRefs(metadata map[string]any) []OwnerRef {
	list, _ := metadata["ownerReferences"].([]any)
	if len(list) == 0 {
		return nil
	}
	out := make([]OwnerRef, 0, len(list))
	for _, item := range list {
		ref, ok := item.(map[string]any)
		if !ok {
			continue
		}
		controller, _ := ref["controller"].(bool)
		out = append(out, OwnerRef{
			Kind:       intern(text(ref, "kind")),
			Name:       text(ref, "name"),
			UID:        types.UID(text(ref, "uid")),
			Controller: controller,
		})
	}
	return out
}

func text(m map[string]any, field string) string {
	s, _ := m[field].(string)
	return s
}

// compact moves the strings that are this object's own into one piece of memory: together they take less than the sum
// of theirs, and none keeps a larger one alive.
func (l *Live) compact() {
	own := []*string{&l.Name, (*string)(&l.UID), &l.ResourceVersion, &l.Hash, &l.OwnerMark, &l.StatusMessage}
	for i := range l.Owners {
		own = append(own, &l.Owners[i].Name, (*string)(&l.Owners[i].UID))
	}
	var all strings.Builder
	size := 0
	for _, s := range own {
		size += len(*s)
	}
	all.Grow(size)
	for _, s := range own {
		all.WriteString(*s)
	}
	rest := all.String()
	for _, s := range own {
		*s, rest = rest[:len(*s)], rest[len(*s):]
	}
}
