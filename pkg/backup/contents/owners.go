// Package contents says what is in an archived object, and changes it for the cluster that it is restored into: owners,
// names, status, and the fields that only one object at one moment has. It makes no requests.
package contents

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

// Owner is an owner of an object, by reference or by an operator's annotation.
type Owner struct {
	UID types.UID
	// GVK is set for a reference, resource (RESOURCE.GROUP) and annotation for an annotation.
	GVK                  schema.GroupVersionKind
	Resource, Annotation string
	Namespace, Name      string
}

func (o *Owner) String() string {
	what := o.Resource
	if o.Annotation == "" {
		what = o.GVK.Kind
	}
	if o.Namespace != "" {
		return what + " " + o.Namespace + "/" + o.Name
	}
	return what + " " + o.Name
}

// Owners are the owners that an object names, by reference or by the annotation of one of the operators.
func Owners(u *unstructured.Unstructured, operators []archive.Operator) []Owner {
	var list []Owner
	for _, ref := range u.GetOwnerReferences() {
		list = append(list, Owner{UID: ref.UID, GVK: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
			Namespace: u.GetNamespace(),
			Name:      ref.Name})
	}
	seen := map[string]bool{}
	for _, o := range operators {
		for _, key := range o.Owners {
			at, uid, ok := ParseMark(u.GetAnnotations()[key])
			if ok && !seen[key] && !strings.Contains(uid, ":") { // the uid of a row, which never changes
				seen[key] = true
				list = append(list, Owner{UID: types.UID(uid), Resource: o.Upstream, Annotation: key,
					Namespace: at[0], Name: at[1]})
			}
		}
	}
	return list
}

// ParseMark reads an owner annotation: namespace and name, and the uid.
func ParseMark(text string) (at [2]string, uid string, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return at, "", false
	}
	return [2]string(parts), parts[2], true
}

// SetOwner writes the uid that an owner has now.
func SetOwner(u *unstructured.Unstructured, o Owner, uid types.UID, namespace string) {
	if o.Annotation != "" {
		annotations := u.GetAnnotations()
		annotations[o.Annotation] = namespace + "/" + o.Name + "/" + string(uid)
		u.SetAnnotations(annotations)
		return
	}
	refs := u.GetOwnerReferences()
	for i := range refs {
		if refs[i].UID == o.UID {
			refs[i].UID = uid
		}
	}
	u.SetOwnerReferences(refs)
}

// Status gives a status the uids, namespaces and generation that objects have now. It recognizes a uid by its value, a
// namespace by the uid beside it.
func (t *Translation) Status(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		uid, _ := v["uid"].(string)
		_, moved := t.UIDs[types.UID(uid)]
		for key, item := range v {
			namespace, isText := item.(string)
			generation, isNumber := item.(int64)
			switch {
			case key == "namespace" && isText && moved:
				out[key] = t.Namespace(namespace)
			case key == "observedGeneration" && isNumber && generation == t.OldGeneration:
				out[key] = t.Generation
			case key == "observedGeneration" && isNumber && generation < t.OldGeneration: // what nobody had seen stays unseen
				out[key] = min(generation, t.Generation-1)
			default:
				out[key] = t.Status(item)
			}
		}
		return out
	case []any:
		return t.list(v)
	case string:
		if uid, ok := t.UIDs[types.UID(v)]; ok && !t.Others[types.UID(v)] {
			return string(uid)
		}
	}
	return v
}

func (t *Translation) list(v []any) any {
	out := make([]any, 0, len(v))
	for _, item := range v {
		if !t.isOfAnother(item) {
			out = append(out, t.Status(item))
		}
	}
	return out
}

// isOfAnother reports whether an item of a status records an object that is of another owner by now, or that the
// original of a copy has still: an operator takes what is recorded for its own.
func (t *Translation) isOfAnother(item any) bool {
	record, _ := item.(map[string]any)
	uid, isRecord := record["uid"].(string)
	_, hasName := record["objectName"]
	now := t.UIDs[types.UID(uid)]
	return t.Others[types.UID(uid)] || t.Copied && isRecord && hasName && uid != "" && (now == "" || now == types.UID(uid))
}

// Translation says what the uids, namespaces and the generation of the backup are now.
type Translation struct {
	UIDs                      map[types.UID]types.UID
	Others                    map[types.UID]bool // archived uids that an object of another owner has replaced
	Namespace                 func(string) string
	OldGeneration, Generation int64
	Copied                    bool // to another namespace: the original may exist
}

// Is compares the places in annotations too: in a plan, an owner that is missing has the uid of the backup.
func (o *Owner) Is(other Owner) bool {
	samePlace := o.Namespace == other.Namespace && o.Name == other.Name
	return o.UID == other.UID && (samePlace || o.Annotation == "" || other.Annotation == "")
}
