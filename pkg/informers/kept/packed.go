// Package kept makes of the objects that watches bring what a cache keeps of them: upstreams and inputs as compressed
// JSON, with what is asked of them without reading that.
package kept

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Packed is an upstream in the cache: what watches need of it, and the whole as JSON. Most upstreams are read
// once and then stay for days, and a tree of Go maps takes two to five times the memory.
type Packed struct {
	identity
	text text
	// Writers is what managedFields say, which text does not contain. Most upstreams share one.
	Writers unique.Handle[Writers]
	// extras is nil for most upstreams.
	extras *packedExtras
}

// packedExtras is what few upstreams have.
type packedExtras struct {
	// match is what watch.matchConditions say. Of an object that does not meet them, only the identity is kept.
	match       desired.MatchResult
	finalizers  []string          // of one that is being deleted
	annotations map[string]string // of a bookmark, where an informer reads them
}

// MatchResult is what the match conditions said when the object was packed.
func (p *Packed) MatchResult() (result desired.MatchResult) {
	if p.extras != nil {
		result = p.extras.match
	}
	return result
}

// Finalizers are those of an upstream that is being deleted.
func (p *Packed) Finalizers() []string {
	if p.extras == nil {
		return nil
	}
	return p.extras.finalizers
}

// GetAnnotations returns those of a bookmark.
func (p *Packed) GetAnnotations() map[string]string {
	if p.extras == nil {
		return nil
	}
	return p.extras.annotations
}

// Writers are the managers with an Apply entry in managedFields, and the versions of its kind in which an object was
// written. Each name ends with nameEnd.
type Writers struct{ appliers, Versions string }

// PackedView is the view of upstreams, with the conditions of those that are not all.
const PackedView = "packed"

// PackedViewOf is the view of a pipeline's upstreams.
func PackedViewOf(p *desired.Renderer) string {
	if !p.HasMatchConditions() {
		return PackedView
	}
	text, err := json.Marshal([]any{p.Config.Watch.MatchConditions, p.Params})
	if err != nil {
		panic("writing conditions as JSON: " + err.Error()) // they came from JSON: cannot happen
	}
	return PackedView + " " + string(text)
}

// PackMatching is pack for the upstreams of a pipeline.
func (t *Texts) PackMatching(p *desired.Renderer) func(any) (any, error) {
	if !p.HasMatchConditions() {
		return t.Pack
	}
	return func(obj any) (any, error) {
		made, err := t.Pack(obj)
		found, ok := made.(*Packed)
		if err != nil || !ok || !found.MatchResult().IsMet() { // an informer transforms what a first watch brings twice
			return made, err
		}
		whole, err := found.Unpack()
		if err != nil {
			return nil, err
		}
		made = found
		if match := p.Match(whole); !match.IsMet() {
			made = &Packed{identity: found.identity, extras: &packedExtras{match: match, finalizers: found.Finalizers()}}
		}
		return made, nil
	}
}

// Pack is the transform of packedView. Watches bring packed objects; lists, which an informer falls back to, do not.
func (t *Texts) Pack(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	text, err := utiljson.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	made, _, err := PackedCodec{Texts: t}.Decode(text, nil, nil)
	return made, err
}

// NameEnd ends each name in writers: no name of a manager has it.
const NameEnd = "\x00"

// writersIn reads the JSON of managedFields of an object of a group. It searches for what API servers write, with
// operation after manager; within fieldsV1, quotes are escaped.
func writersIn(fields []byte, group string) unique.Handle[Writers] {
	var appliers strings.Builder
	for name, after := range valuesOf("manager", fields) {
		if bytes.HasPrefix(after, []byte(`,"operation":"Apply"`)) {
			appliers.Write(name)
			appliers.WriteString(NameEnd)
		}
	}
	var versions []string
	for name := range valuesOf("apiVersion", fields) {
		if gv, err := schema.ParseGroupVersion(string(name)); err == nil && gv.Group == group {
			versions = append(versions, gv.Version+NameEnd)
		}
	}
	slices.Sort(versions)
	return unique.Make(Writers{appliers.String(), strings.Join(slices.Compact(versions), "")})
}

// valuesOf are the strings under a key in JSON, and what follows them.
func valuesOf(key string, text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(value, after []byte) bool) {
		for start := []byte(`"` + key + `":"`); ; {
			_, rest, ok := bytes.Cut(text, start)
			if !ok {
				return
			}
			value, after, _ := bytes.Cut(rest, []byte(`"`))
			if !yield(value, after) {
				return
			}
			text = after
		}
	}
}

// Ref is where the object is.
func (p *Packed) Ref() operator.Ref { return operator.Ref{Namespace: p.Namespace, Name: p.Name} }

// AppliedBy reports whether the manager has an Apply entry.
func (p *Packed) AppliedBy(manager string) bool {
	return strings.Contains(NameEnd+p.Writers.Value().appliers, NameEnd+manager+NameEnd)
}

// Unpack returns the object without managedFields, as a copy of its own.
func (p *Packed) Unpack() (*unstructured.Unstructured, error) {
	object, err := p.text.object()
	if err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", p.Namespace, p.Name, err)
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetManagedFields(nil)
	if metadata, ok := object["metadata"].(map[string]any); ok { // whoever keeps these keeps no second copy
		share(metadata, "namespace", p.Namespace)
		share(metadata, "name", p.Name)
		share(metadata, "uid", string(p.UID))
		share(metadata, "resourceVersion", p.ResourceVersion)
	}
	return u, nil
}

// share has a field use the memory of an equal text.
func share(fields map[string]any, field, text string) {
	if fields[field] == text {
		fields[field] = text
	}
}

// GetObjectKind and DeepCopyObject make it a runtime.Object, as an informer requires.
func (p *Packed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns p itself, which never changes.
func (p *Packed) DeepCopyObject() runtime.Object { return p }
