package drift

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// Live is what is kept of a live object: a few hundred bytes for any object. It is immutable, so it can be shared
// without locks. It implements runtime.Object and metav1.Object, as the cache of a watch requires.
type Live struct {
	NoMetadata
	Identity
	// Hash is the value of the hash key, or else of the previous one, or "".
	Hash string
	// Owners are the metadata.ownerReferences.
	Owners []OwnerRef
	Marks
	Projection
	// Status and StatusMessage are the result of kstatus for the whole object, generation included. The message of a
	// Current object has no further information and is omitted; that of a Terminating one names its finalizers.
	Status        kstatus.Status
	StatusMessage string
	// Kept is what the view's Keep selects, or the whole object without managedFields; nil for nothing. It must not be
	// changed.
	Kept map[string]any

	// MarkApplied means that our manager, or the previous one, owns OwnerMark by apply. See OwnerRef.Applied.
	MarkApplied bool
	// MarkTheirs means that another manager owns OwnerMark by apply.
	MarkTheirs bool
	// MarkVoid means that the upstream that OwnerMark names does not exist. The object itself does not say that.
	MarkVoid bool
	// Unselected means that the object lacks the labels that its watch selects. It is never true in a watch; other readers
	// set it.
	Unselected bool
	// Deleting means that the object has a deletionTimestamp.
	Deleting bool
	// Copied means that the API server's record of our apply is older than the object, by more than a request can take:
	// someone has copied another one with it.
	Copied bool
	// StatusWritten means that the status of the object was written.
	StatusWritten bool
	// HasPreviousNames means that the object uses a name of View.Previous.
	HasPreviousNames bool
}

// maxCreation is more than a create takes from the record of its apply to the creationTimestamp, which is set after
// admission, on clocks that differ a little.
const maxCreation = time.Minute

// Identity says which object it is, and which state of it.
type Identity struct {
	APIVersion, Kind string
	Namespace, Name  string
	UID              types.UID
	ResourceVersion  string
	Generation       int64
	// Created is the metadata.creationTimestamp, in seconds since 1970; 0 if there is none.
	Created int64
}

// Projection is what managedFields say of our fields.
type Projection struct {
	// P is the digest of the projection: the live values of our fields, with whole exclusive fields and without initial
	// fields. It is zero if Managed is false.
	P canonical.Sum
	// Shape is a digest of which fields we own, without their values. It can be compared within one process; see
	// managed.Fields.Shape.
	Shape uint32
	// Managed means that our manager, or the previous one, has applied to the object.
	Managed bool
	// CoOwned means that another manager owns one of our fields too, so that omitting it would not remove it.
	CoOwned bool
	// Extra means that an exclusive field has keys that we do not own.
	Extra bool
	// NeedsTakeover means that a manager of View.TakeoverManagers has an entry for the object itself, which must become
	// ours before the next apply.
	NeedsTakeover bool
	// Initial has the state of each initial field of the view, in the same order.
	Initial []InitialField
	// Secret is what is kept of a Secret; nil for any other kind.
	Secret *Secret
}

// Marks are the annotations that say whose an object is.
type Marks struct {
	// OwnerMark is the value of the owner annotation, or else of the previous one, or "".
	OwnerMark string
	// Downstream is the name of its downstream in the config, if our manager owns that annotation by apply; "" otherwise.
	Downstream string
}

// Secret is what is kept of a Secret besides, or known of a desired one.
type Secret struct {
	// Keys are the keys of its data that we own, or give, in order. An apply that omits one removes a value that may exist
	// nowhere else.
	Keys []string
	// Others are the keys of other managers, if the view has generated fields: one that was generated may be theirs by
	// now.
	Others []string
	// Values are the digests of its generated values, if the view has generated fields.
	Values []canonical.Sum
	// Content is the digest of all that we own, or give, but for the name and our marks.
	Content canonical.Sum
	// HeldBy names the finalizers, if the view has generated fields; empty if there are none.
	HeldBy string
}

// EqualsExceptVersion reports whether all that is kept of two states of an object is the same, except for the resource
// version.
func (l *Live) EqualsExceptVersion(other *Live) bool {
	if l == nil || other == nil {
		return false
	}
	same := *other
	same.ResourceVersion = l.ResourceVersion
	return reflect.DeepEqual(l, &same)
}

// OwnerRef has the needed part of an item of metadata.ownerReferences: ownership is decided by uid.
type OwnerRef struct {
	// Kind is empty for the owner that an annotation of another operator names; then Name says which annotation, too.
	Kind, Name string
	UID        types.UID
	Controller bool
	// Applied means that our manager, or the previous one, owns the reference by apply, according to the API server. Only
	// an apply by that manager, or a write to managedFields of an existing object, can have caused it.
	Applied bool
}

// live converts u. The result shares no memory with u, so that the whole object can be freed.
func (v *View) live(u *unstructured.Unstructured) *Live {
	metadata, _ := u.Object["metadata"].(map[string]any)
	l := &Live{
		Identity: Identity{
			APIVersion:      intern(text(u.Object, "apiVersion")),
			Kind:            intern(text(u.Object, "kind")),
			Namespace:       intern(text(metadata, "namespace")),
			Name:            text(metadata, "name"),
			UID:             types.UID(text(metadata, "uid")),
			ResourceVersion: text(metadata, "resourceVersion"),
		},
		Hash:     cmp.Or(v.Hash.read(metadata), v.Previous.Hash.read(metadata)),
		Owners:   ownerRefs(metadata),
		Deleting: text(metadata, "deletionTimestamp") != "",
	}
	l.Generation, _ = metadata["generation"].(int64)
	if created, err := time.Parse(time.RFC3339, text(metadata, "creationTimestamp")); err == nil {
		l.Created = created.Unix()
	}
	l.OwnerMark = cmp.Or(Key{Annotation: v.OwnerAnnotation}.read(metadata),
		Key{Annotation: v.Previous.OwnerAnnotation}.read(metadata))
	l.HasPreviousNames = v.Previous.presentIn(metadata)
	v.readFields(l, u)
	if !l.Managed && l.Hash == "" && l.OwnerMark == "" && len(l.Owners) == 0 {
		l.Owners = markedByOthers(metadata)
	}
	l.Status, l.StatusMessage = statusOf(u)
	l.Kept = v.keptCopy(u.Object)
	l.compact()
	return l
}

// readFields sets what depends on managedFields.
func (v *View) readFields(l *Live, u *unstructured.Unstructured) {
	es := managed.Entries(u)
	our := managed.Find(es, v.Manager)
	if our < 0 && v.Previous.Manager != "" {
		our = managed.Find(es, v.Previous.Manager)
	}
	v.readTakeover(l, es)
	v.readMarks(l, u, es)
	l.StatusWritten = slices.ContainsFunc(es, managed.Entry.WritesStatus)
	var owned managed.Fields
	if l.Managed = our >= 0; l.Managed {
		owned = es[our].Owned
		l.Copied = es[our].IsOlderThan(l.Created, maxCreation)
		l.P, l.Shape = v.sum(u.Object, owned), owned.Shape(u.Object)
	}
	if l.Managed || v.Generated > 0 {
		l.Secret = v.secretOf(u, owned)
	}
	for i, e := range es {
		isOurs := i == our || v.Previous.Manager != "" && e.Applied(v.Previous.Manager)
		l.CoOwned = l.CoOwned || l.Managed && !isOurs && owned.Overlaps(e.Owned)
	}
	l.Extra = v.extra(u.Object, owned, es, our)
	l.Initial = v.initial(u.Object, es, our)
}

// Content is Secret.Content of a desired document.
func (v *View) Content(doc map[string]any) canonical.Sum { return v.content(shape(doc, v.leftOut())) }

func (v *View) content(projection map[string]any) canonical.Sum {
	out := map[string]any{}
	for key, value := range projection {
		if key != "metadata" {
			out[key] = value
		}
	}
	metadata, _ := projection["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		all, _ := metadata[field].(map[string]any)
		for key, value := range all {
			isMark := field == "annotations" && slices.Contains([]string{v.OwnerAnnotation,
				v.NameAnnotation, v.Hash.Annotation}, key) ||
				field == "labels" && key == v.Hash.Label
			if !isMark {
				out[field+"/"+key] = value
			}
		}
	}
	return canonical.ExactDigest(out)
}

func (v *View) secretOf(u *unstructured.Unstructured, owned managed.Fields) *Secret {
	if u.GetKind() != "Secret" || u.GetAPIVersion() != "v1" {
		return nil
	}
	s := &Secret{Content: v.content(v.projection(u.Object, owned))}
	if v.Generated > 0 {
		s.HeldBy = intern(cut(heldBy(u.GetFinalizers())))
		for _, p := range v.Initial[len(v.Initial)-v.Generated:] {
			if value, ok := fieldpath.Get(u.Object, p); ok && value != nil {
				s.Values = append(s.Values, canonical.ExactDigest(map[string]any{"value": value}))
			}
		}
	}
	below, _ := owned.Field("data")
	data, _ := u.Object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		_, isOurs := below.Field(key)
		switch {
		case data[key] == nil: // a key without a value
		case isOurs:
			s.Keys = append(s.Keys, intern(key))
		case v.Generated > 0:
			s.Others = append(s.Others, intern(key))
		}
	}
	return s
}

// statusOf returns the status of kstatus. It fails for invalid objects; their status is unknown.
func statusOf(u *unstructured.Unstructured) (kstatus.Status, string) {
	compute := kstatus.Compute
	if hasOnlyKindRule(u.Object) {
		if rule := kstatus.GetLegacyConditionsFn(u); rule != nil {
			compute = rule
		}
	}
	r, err := compute(u)
	switch {
	case err != nil:
		return kstatus.UnknownStatus, cut("computing the status: " + err.Error())
	case r.Status == kstatus.CurrentStatus:
		return r.Status, ""
	case r.Status == kstatus.TerminatingStatus:
		return r.Status, cut(heldBy(u.GetFinalizers()))
	default:
		return r.Status, cut(r.Message)
	}
}

// hasOnlyKindRule reports whether the general rules of kstatus have nothing to say about an object, so that the rule of
// its kind alone counts. They convert its status by reflection, which takes longer than the rule of a ConfigMap.
func hasOnlyKindRule(obj map[string]any) bool {
	metadata, ok := obj["metadata"].(map[string]any)
	_, isNumber := metadata["generation"].(int64)
	return ok && (isNumber || metadata["generation"] == nil) &&
		metadata["deletionTimestamp"] == nil && obj["status"] == nil
}

// maxStatusMessage limits a message that others write.
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

// keep copies what is at the end of chain in obj to the same place in out, and creates out if it is nil. If the chain
// reaches a value that is not a map, that value is copied, so that an expression has the same result.
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
		out[chain[0]] = map[string]any{} // the map exists, the field does not
	}
	return out
}

// ownerMark is the form of an owner annotation: namespace/name/uid.
var ownerMark = regexp.MustCompile(`^[a-z0-9-]*/[^/]+/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// markedByOthers are the owners that annotations of other operators name, whatever their keys.
func markedByOthers(metadata map[string]any) (list []OwnerRef) {
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if mark, _ := annotations[key].(string); ownerMark.MatchString(mark) {
			at := strings.LastIndexByte(mark, '/')
			name := strings.TrimPrefix(mark[:at], "/") + " (annotation " + key + ")"
			list = append(list, OwnerRef{Name: name, UID: types.UID(mark[at+1:]), Controller: true})
		}
	}
	return list
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

// heldBy names finalizers; anybody may add any number of them.
func heldBy(finalizers []string) string {
	const shown = 3
	if len(finalizers) == 0 {
		return ""
	}
	if more := len(finalizers) - shown; more > 0 {
		finalizers = append(slices.Clone(finalizers[:shown]), fmt.Sprintf("%d more", more))
	}
	return "finalizers hold it: " + strings.Join(finalizers, ", ")
}

func text(m map[string]any, field string) string {
	s, _ := m[field].(string)
	return s
}

// compact copies the strings that are unique to this object into one allocation: this uses less memory, and keeps no
// larger string alive.
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
