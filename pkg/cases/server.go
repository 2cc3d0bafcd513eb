package cases

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/offline"
)

// server does in memory what an API server does with a write as far as decisions depend on it: server-side apply
// by the API server's own library, who owns which field, uid, generation, and the defaults of custom kinds. It knows no
// admission, no defaults of built-in kinds, and no controller.
type server struct {
	kinds kinds.Source
	made  int
}

// apply is a forced apply of a document over the live object, nil where none stands. Neither is changed.
func (s *server) apply(live *unstructured.Unstructured, document map[string]any, manager string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document)}
	fields, err := s.fieldManager(u.GroupVersionKind(), "")
	if err != nil {
		return nil, err
	}
	base := live
	if base == nil {
		base = blank(u.GroupVersionKind())
	}
	out, err := fields.Apply(base.DeepCopy(), u, manager, true)
	if err != nil {
		return nil, err
	}
	return s.store(live, out.(*unstructured.Unstructured)), nil
}

// write is a plain write by somebody else, of the object or of its status.
func (s *server) write(live, changed *unstructured.Unstructured, manager, subresource string) (*unstructured.Unstructured, error) {
	fields, err := s.fieldManager(live.GroupVersionKind(), subresource)
	if err != nil {
		return nil, err
	}
	out, err := fields.Update(live.DeepCopy(), changed.DeepCopy(), manager)
	if err != nil {
		return nil, err
	}
	return s.store(live, out.(*unstructured.Unstructured)), nil
}

// store gives an object what only an API server gives. live is what stood before; nil for a new one.
func (s *server) store(live, u *unstructured.Unstructured) *unstructured.Unstructured {
	gvk := u.GroupVersionKind()
	if kind, err := s.kinds.Kind(gvk); err == nil && kind.Schema != nil && !kinds.IsBuiltin(gvk.GroupKind()) {
		offline.FillDefaults(u.Object, kind.Schema)
	}
	for _, entry := range u.GetManagedFields() {
		var owned map[string]any
		if entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) == nil {
			fillKeys(u.Object, owned)
		}
	}
	if live == nil {
		s.admit(u)
		return u
	}
	if !equality.Semantic.DeepEqual(asked(live), asked(u)) {
		u.SetGeneration(max(live.GetGeneration(), 1) + 1)
	}
	return u
}

// fillKeys gives items of keyed lists the keys that they leave out, a port's protocol: the names of the items in a manager's
// fields have the defaults, of which an object without a schema at hand says nothing.
func fillKeys(value any, owned map[string]any) {
	for name, below := range owned {
		fields, _ := below.(map[string]any)
		if field, ok := strings.CutPrefix(name, "f:"); ok {
			if m, ok := value.(map[string]any); ok {
				fillKeys(m[field], fields)
			}
		}
		var keys map[string]any
		if text, ok := strings.CutPrefix(name, "k:"); !ok || utiljson.Unmarshal([]byte(text), &keys) != nil {
			continue
		}
		list, _ := value.([]any)
		if item := keyedItem(list, keys); item != nil {
			for key, value := range keys {
				item[key] = value
			}
			fillKeys(item, fields)
		}
	}
}

// keyedItem finds the item that has the keys: all of them, or else those that it has.
func keyedItem(list []any, keys map[string]any) map[string]any {
	for _, partly := range []bool{false, true} {
		for _, item := range list {
			m, ok := item.(map[string]any)
			for key, value := range keys {
				have, there := m[key]
				ok = ok && (there && have == value || partly && !there)
			}
			if ok {
				return m
			}
		}
	}
	return nil
}

// admit gives an object the uid and version that it lacks. The uids are the same in every run.
func (s *server) admit(u *unstructured.Unstructured) {
	s.made++
	if u.GetUID() == "" {
		setDefault(u, "uid", fmt.Sprintf("00000000-0000-0000-0000-%012d", s.made))
	}
	setDefault(u, "resourceVersion", fmt.Sprint(s.made))
	if u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
}

func setDefault(u *unstructured.Unstructured, field, value string) {
	meta, _ := u.Object["metadata"].(map[string]any)
	if have, _ := meta[field].(string); have == "" && meta != nil {
		meta[field] = value
	}
}

// asked is what of an object a new generation counts changes of.
func asked(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}

func (s *server) fieldManager(gvk schema.GroupVersionKind, subresource string) (*managedfields.FieldManager, error) {
	types, err := s.types(gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", gvk.Kind, err)
	}
	return managedfields.NewDefaultCRDFieldManager(types, asIs{}, asIs{}, asIs{}, gvk, gvk.GroupVersion(), subresource, nil)
}

// builtinTypes are the types of the kinds that client-go knows. Reading them takes a moment, so it is done where a case
// needs them.
var builtinTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(clientscheme.Scheme)
})

// types tells which lists of a kind are keyed and which maps atomic. Of a kind without a schema every list is atomic, as
// for the API server.
func (s *server) types(gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	if clientscheme.Scheme.Recognizes(gvk) {
		return builtinTypes(), nil
	}
	kind, err := s.kinds.Kind(gvk)
	if err == nil && kind.Schema != nil {
		return customTypes(kind)
	}
	return managedfields.NewDeducedTypeConverter(), nil
}

// customTypes are the types of a custom kind. Its own schema says nothing of metadata, which is the same for all.
func customTypes(kind *kinds.Kind) (managedfields.TypeConverter, error) {
	whole := *kind.Schema
	whole.Properties = make(map[string]spec.Schema, len(kind.Schema.Properties)+3)
	for name, property := range kind.Schema.Properties {
		whole.Properties[name] = property
	}
	whole.Properties["metadata"] = metadataSchema()
	for _, name := range []string{"apiVersion", "kind"} {
		whole.Properties[name] = *spec.StringProperty()
	}
	whole.Extensions = make(spec.Extensions, len(kind.Schema.Extensions)+1)
	for name, extension := range kind.Schema.Extensions {
		whole.Extensions[name] = extension
	}
	whole.Extensions["x-kubernetes-group-version-kind"] = []any{
		map[string]any{"group": kind.GVK.Group, "version": kind.GVK.Version, "kind": kind.GVK.Kind},
	}
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"custom": &whole}, false)
}

// metadataSchema is the schema of metadata as far as server-side apply asks for it.
func metadataSchema() spec.Schema {
	text := spec.StringProperty
	owner := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"apiVersion": *text(), "kind": *text(), "name": *text(), "uid": *text(),
		"controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	}}}
	owner.AddExtension("x-kubernetes-map-type", "atomic")
	keyed := spec.ArrayProperty(owner)
	keyed.AddExtension("x-kubernetes-list-type", "map")
	keyed.AddExtension("x-kubernetes-list-map-keys", []any{"uid"})
	set := spec.ArrayProperty(text())
	set.AddExtension("x-kubernetes-list-type", "set")
	m := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"labels": *spec.MapProperty(text()), "annotations": *spec.MapProperty(text()),
		"ownerReferences": *keyed, "finalizers": *set, "generation": *spec.Int64Property(),
	}}}
	for _, name := range []string{"name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
		"selfLink"} {
		m.Properties[name] = *text()
	}
	m.Properties["deletionGracePeriodSeconds"] = *spec.Int64Property()
	anything := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	anything.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	m.Properties["managedFields"] = *spec.ArrayProperty(anything)
	return m
}

func blank(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// asIs converts and defaults nothing: there is one version of everything here.
type asIs struct{}

// Convert implements runtime.ObjectConvertor.
func (asIs) Convert(any, any, any) error {
	return fmt.Errorf("there is one version of everything here")
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (asIs) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (asIs) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return blank(gvk), nil }
