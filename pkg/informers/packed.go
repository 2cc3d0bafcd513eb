package informers

import (
	"bytes"
	"fmt"
	"strings"
	"unique"

	"github.com/klauspost/compress/s2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// packed is an upstream as the cache keeps it: what watches ask for, and the whole as compressed JSON, as it came. Most
// upstreams are looked at once and then lie for days, and a tree of Go maps takes two to five times the room.
type packed struct {
	metav1.ObjectMeta // name, namespace, uid and resourceVersion; the finalizers of one that is being deleted
	text              []byte
	// appliers are the managers that have an Apply entry in managedFields, which text is without.
	appliers unique.Handle[string]
}

// packedView names the view of upstreams.
const packedView = "packed"

// pack is the transform of packedView. Watches bring packed objects; lists, which an informer falls back to, do not.
func pack(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	text, err := utiljson.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	fields, err := utiljson.Marshal(u.GetManagedFields())
	if err != nil {
		return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	p := &packed{text: compressed(text), appliers: appliersIn(fields), ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
	}}
	if u.GetDeletionTimestamp() != nil {
		p.Finalizers = u.GetFinalizers()
	}
	return p, nil
}

// applierEnd ends each name in packed.appliers: no name of a manager has it.
const applierEnd = "\x00"

// appliersIn lists the managers that have an Apply entry in the text of managedFields. It looks for what API servers write,
// in which operation follows manager; within fieldsV1 quotes are escaped.
func appliersIn(fields []byte) unique.Handle[string] {
	var names strings.Builder
	for {
		_, rest, ok := bytes.Cut(fields, []byte(`"manager":"`))
		if !ok {
			return unique.Make(names.String())
		}
		name, after, _ := bytes.Cut(rest, []byte(`"`))
		if bytes.HasPrefix(after, []byte(`,"operation":"Apply"`)) {
			names.Write(name)
			names.WriteString(applierEnd)
		}
		fields = after
	}
}

// appliedBy tells whether the manager has an Apply entry.
func (p *packed) appliedBy(manager string) bool {
	return strings.Contains(applierEnd+p.appliers.Value(), applierEnd+manager+applierEnd)
}

// compressed returns the text compressed, in no more room than it takes.
func compressed(text []byte) []byte { return bytes.Clone(s2.Encode(nil, text)) }

// unpack returns the object without managedFields, as a copy of its own.
func (p *packed) unpack() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := unpackInto(p.text, &u.Object); err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", p.Namespace, p.Name, err)
	}
	u.SetManagedFields(nil)
	return u, nil
}

// unpackInto reads what compressed made of JSON.
func unpackInto(text []byte, into *map[string]any) error {
	plain, err := s2.Decode(nil, text)
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(plain, into)
}

// GetObjectKind and DeepCopyObject make it a runtime.Object, as a watch's cache demands.
func (p *packed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns p itself, which never changes.
func (p *packed) DeepCopyObject() runtime.Object { return p }
