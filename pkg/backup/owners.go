package backup

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// owner is an owner of an object, by reference or by an operator's annotation.
type owner struct {
	uid types.UID
	// gvk is set for a reference, resource (RESOURCE.GROUP) and annotation for an annotation.
	gvk                  schema.GroupVersionKind
	resource, annotation string
	namespace, name      string
}

func (o *owner) String() string {
	what := o.resource
	if o.annotation == "" {
		what = o.gvk.Kind
	}
	if o.namespace != "" {
		return what + " " + o.namespace + "/" + o.name
	}
	return what + " " + o.name
}

func owners(u *unstructured.Unstructured, operators []Operator) []owner {
	var list []owner
	for _, ref := range u.GetOwnerReferences() {
		list = append(list, owner{uid: ref.UID, gvk: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), namespace: u.GetNamespace(),
			name: ref.Name})
	}
	seen := map[string]bool{}
	for _, o := range operators {
		for _, key := range o.Owners {
			at, uid, ok := parseMark(u.GetAnnotations()[key])
			if ok && !seen[key] && !strings.Contains(uid, ":") { // the uid of a row, which never changes
				seen[key] = true
				list = append(list, owner{uid: types.UID(uid), resource: o.Upstream, annotation: key, namespace: at[0], name: at[1]})
			}
		}
	}
	return list
}

// parseMark reads an owner annotation: namespace and name, and the uid.
func parseMark(text string) (at [2]string, uid string, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return at, "", false
	}
	return [2]string(parts), parts[2], true
}

// setOwner writes the uid that an owner has now.
func setOwner(u *unstructured.Unstructured, o owner, uid types.UID, namespace string) {
	if o.annotation != "" {
		annotations := u.GetAnnotations()
		annotations[o.annotation] = namespace + "/" + o.name + "/" + string(uid)
		u.SetAnnotations(annotations)
		return
	}
	refs := u.GetOwnerReferences()
	for i := range refs {
		if refs[i].UID == o.uid {
			refs[i].UID = uid
		}
	}
	u.SetOwnerReferences(refs)
}

// status gives a status the uids, namespaces and generation that objects have now. It recognizes a uid by its value, a namespace by
// the uid beside it.
func (t *translation) status(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		uid, _ := v["uid"].(string)
		_, moved := t.uids[types.UID(uid)]
		for key, item := range v {
			namespace, isText := item.(string)
			generation, isNumber := item.(int64)
			switch {
			case key == "namespace" && isText && moved:
				out[key] = t.namespace(namespace)
			case key == "observedGeneration" && isNumber && generation == t.oldGeneration:
				out[key] = t.generation
			case key == "observedGeneration" && isNumber && generation < t.oldGeneration: // what nobody had seen stays unseen
				out[key] = min(generation, t.generation-1)
			default:
				out[key] = t.status(item)
			}
		}
		return out
	case []any:
		return t.list(v)
	case string:
		if uid, ok := t.uids[types.UID(v)]; ok {
			return string(uid)
		}
	}
	return v
}

func (t *translation) list(v []any) any {
	out := make([]any, 0, len(v))
	for _, item := range v {
		if !t.isOfOriginal(item) {
			out = append(out, t.status(item))
		}
	}
	return out
}

// isOfOriginal reports whether an item of a status records an object that the original of a copy has still: the copy does not own it.
func (t *translation) isOfOriginal(item any) bool {
	record, _ := item.(map[string]any)
	uid, isRecord := record["uid"].(string)
	_, hasName := record["objectName"]
	now := t.uids[types.UID(uid)]
	return t.copied && isRecord && hasName && uid != "" && (now == "" || now == types.UID(uid))
}

type translation struct {
	uids                      map[types.UID]types.UID
	namespace                 func(string) string
	oldGeneration, generation int64
	copied                    bool // to another namespace: the original may exist
}
