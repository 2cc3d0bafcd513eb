package marks

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// BeforeHashPrefix begins the hash of such an object. It distinguishes one from a downstream of the same kind, labels
// and owner, whatever becomes of the template that named it.
const BeforeHashPrefix = "before-"

// IsBeforeObject reports whether a live object of ours was made by deletion.before.
func IsBeforeObject(live *drift.Live) bool { return strings.HasPrefix(live.Hash, BeforeHashPrefix) }

// MadeForDeletion reports whether live was made by deletion.before for the deletion of the upstream with this uid, as
// far as the API server's own record shows.
func MadeForDeletion(live *drift.Live, upstream types.UID) bool {
	return IsBeforeObject(live) && Applied(live, upstream)
}

// HasOurFinalizer reports whether a deletion.before object has the config's finalizer, current or previous.
func HasOurFinalizer(s *operator.Settings, live *drift.Live) bool {
	return live != nil && slices.ContainsFunc(s.Config.Conventions.Finalizers(), func(name string) bool {
		return slices.Contains(KeptFinalizers(live), any(name))
	})
}

// KeptFinalizers are the finalizers of a live object of deletion.before, which its view keeps.
func KeptFinalizers(live *drift.Live) []any {
	meta, _ := live.Kept["metadata"].(map[string]any)
	list, _ := meta["finalizers"].([]any)
	return list
}

// Owns reports whether live is the downstream of the upstream with this uid. trusted is Facts.Trusted. There are two
// witnesses, and an object's own marks are neither: anyone who may create the kind can write them.
//
//   - A uid that we know or that is recorded. It holds while the marks are stripped, until another owner's are there.
//   - The mark in our own entry of managedFields: see Applied.
func Owns(live *drift.Live, uid types.UID, trusted bool) bool {
	if trusted && (Marked(live, uid) || !OwnedByOther(live, uid)) {
		return true
	}
	return Applied(live, uid)
}

// OwnsFor is Owns for an object that belongs to d: what was done as Fields does not prove that a whole object is
// ours, whoever records its uid.
func OwnsFor(d *operator.Downstream, live *drift.Live, uid types.UID, trusted bool) bool {
	return (d.OwnsFields() || !IsOfFields(live.Hash)) && Owns(live, uid, trusted)
}

// FieldsHashPrefix begins the hash of documents that are only fields of an object of others (ownership: Fields).
const FieldsHashPrefix = "fields-"

// IsOfFields reports whether a hash is that of fields of an object of others.
func IsOfFields(hash string) bool { return strings.HasPrefix(hash, FieldsHashPrefix) }

// Applied reports whether live has the mark of the upstream with this uid, and the API server records that our field
// manager applied it. The record exists with the object, in the same request. Anyone who may only create the kind
// cannot write it: on a create, the API server attributes every field to that request, and an apply takes the right to
// patch, too. Anyone who may patch the kind can add any field to an object of ours as well, or have the garbage
// collector delete it.
func Applied(live *drift.Live, uid types.UID) bool {
	if !Marked(live, uid) {
		return false
	}
	for _, ref := range live.Owners {
		if ref.UID == uid && ref.Applied {
			return true
		}
	}
	_, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked == string(uid) && live.MarkApplied
}

// LeftBy reports whether live has the owner annotation of an upstream that is known to be gone, or of an earlier
// upstream of the same namespace and name: of two of one name, the other one is gone. Where another field manager
// applies the annotation, it may be about another kind of upstream, which is there.
func LeftBy(live *drift.Live, upstream operator.Ref, uid types.UID) bool {
	if controlledByOther(live, uid) {
		return false
	}
	ref, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked != string(uid) && (live.MarkVoid || ref == upstream && !live.MarkTheirs)
}

// EarlierMark says, in words that follow the object's name, what LeftBy finds. The annotation does not name the kind
// of its upstream, so it may be one of another operator.
func EarlierMark(live *drift.Live, kind string) string {
	at, uid, _ := ParseOwnerMark(live.OwnerMark)
	if live.MarkVoid {
		return fmt.Sprintf("has the owner annotation of %s (uid %s), and there is no such %s", at, uid, kind)
	}
	return fmt.Sprintf("has the owner annotation of another %s (uid %s): of an earlier %s, "+
		"or of an upstream of another kind whose operator has the same conventions", at, uid, kind)
}

// HasLostOwner reports whether live was applied by our field manager with a hash, and has no owner mark that says for
// which upstream: the garbage collector removes the reference to an owner that is gone from an object that has another
// owner, or with --cascade=orphan.
func HasLostOwner(live *drift.Live) bool {
	applied := func(ref drift.OwnerRef) bool { return ref.Applied || ref.Controller }
	return live.Managed && live.Hash != "" && live.OwnerMark == "" && !IsBeforeObject(live) &&
		!slices.ContainsFunc(live.Owners, applied)
}

// LostOwner says, in words that follow the object's name, what HasLostOwner finds, and what keeps the object.
func LostOwner(live *drift.Live) string {
	var others []string
	for _, ref := range live.Owners {
		others = append(others, fmt.Sprintf("%s %s (uid %s)", ref.Kind, ref.Name, ref.UID))
	}
	text := "was created by this operator, and has no owner mark of an upstream any more"
	if len(others) > 0 {
		text += "; the owner reference of " + strings.Join(others, ", ") + " keeps it from being garbage collected"
	}
	return text
}

// Marked reports whether live has the mark of the upstream with this uid. A plain owner reference, of which an object
// may have many, is none on what another one controls.
func Marked(live *drift.Live, uid types.UID) bool {
	plain := false
	for _, ref := range live.Owners {
		if ref.UID == uid && ref.Controller {
			return true
		}
		plain = plain || ref.UID == uid
	}
	_, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked == string(uid) || plain && !OwnedByOther(live, uid)
}

// OwnedByOther reports whether live has a controller or an owner annotation that is not this upstream. An annotation
// that names nobody counts as none.
func OwnedByOther(live *drift.Live, uid types.UID) bool {
	if controlledByOther(live, uid) {
		return true
	}
	_, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ok && marked != string(uid) && !live.MarkVoid
}

// NamesOther returns the upstream that the owner annotation of live names, if that decides whether live belongs to
// another upstream than the one of this uid.
func NamesOther(live *drift.Live, uid types.UID) (ref operator.Ref, other types.UID, ok bool) {
	ref, marked, ok := ParseOwnerMark(live.OwnerMark)
	return ref, types.UID(marked), ok && marked != string(uid) && !controlledByOther(live, uid)
}

func controlledByOther(live *drift.Live, uid types.UID) bool {
	return slices.ContainsFunc(live.Owners, func(ref drift.OwnerRef) bool { return ref.Controller && ref.UID != uid })
}

// OwnerIn names the owner of live in a message about an upstream; empty if it has none. earlier reports that it is an
// upstream of the same namespace and name that is gone, whose reference we applied: the garbage collector deletes live.
// Where kind and name are the upstream's own, the uids tell the two apart.
func OwnerIn(live *drift.Live, upstream *unstructured.Unstructured) (owner string, earlier bool) {
	self := operator.Ref{Namespace: upstream.GetNamespace(), Name: upstream.GetName()}
	uids := func(uid string) string { return fmt.Sprintf(" (uid %s, ours is %s)", uid, upstream.GetUID()) }
	for _, ref := range live.Owners {
		at := operator.Ref{Name: ref.Name}
		if ref.Kind == upstream.GetKind() && self.Namespace != "" {
			at.Namespace = live.Namespace
		}
		text := ref.Kind + " " + at.String()
		switch {
		case !ref.Controller, ref.Kind == "" && ref.UID == upstream.GetUID():
			continue
		case ref.Kind == "":
			return ref.Name + " of another operator", false
		case ref.Kind != upstream.GetKind() || at != self || ref.UID == upstream.GetUID():
			return text, false
		case ref.Applied:
			return "an earlier " + text + uids(string(ref.UID)) + ", which is gone", true
		}
		return "another " + text + uids(string(ref.UID)), false
	}
	at, uid, ok := ParseOwnerMark(live.OwnerMark)
	switch {
	case !ok:
		return "", false
	case at == self && uid != string(upstream.GetUID()):
		return "another " + at.String() + uids(uid), false
	}
	return at.String(), false
}

// ReferenceLegal reports whether an owner reference from a downstream at target to the upstream is legal and wanted:
// a namespaced owner may own in its own namespace only, a cluster-scoped one anywhere. What shall outlive its upstream
// has no reference, since the garbage collector would take it.
func ReferenceLegal(s *operator.Settings, d *operator.Downstream, upstreamNamespace string, target operator.Ref) bool {
	if r := s.Config.Conventions.Owner.Reference; r != nil && !*r {
		return false
	}
	if d.Config.DeletionPolicy == config.DeletionOrphan {
		return false
	}
	return upstreamNamespace == "" || upstreamNamespace == target.Namespace
}

// OwnerMark is the value of the owner annotation, which is there where a reference is not legal: namespace/name/uid of
// the upstream. Only the uid says who owns; the rest is for people, and to find the upstream again.
func OwnerMark(upstream *unstructured.Unstructured) string {
	return upstream.GetNamespace() + "/" + upstream.GetName() + "/" + string(upstream.GetUID())
}

// ParseOwnerMark splits an owner annotation. A malformed one gives ok false.
func ParseOwnerMark(mark string) (ref operator.Ref, uid string, ok bool) {
	parts := strings.Split(mark, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return operator.Ref{}, "", false
	}
	return operator.Ref{Namespace: parts[0], Name: parts[1]}, parts[2], true
}
