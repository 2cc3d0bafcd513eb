package informers

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
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// packed is an upstream in the cache: what watches need of it, and the whole as compressed JSON. Most upstreams are read once
// and then stay for days, and a tree of Go maps takes two to five times the memory.
type packed struct {
	identity
	text text
	// writers is what managedFields say, which text does not contain. Most upstreams share one.
	writers unique.Handle[writers]
	// extras is nil for most upstreams.
	extras *packedExtras
}

// packedExtras is what few upstreams have.
type packedExtras struct {
	// match is what watch.matchConditions say. Of an object that does not meet them, only the identity is kept.
	match       pipeline.MatchResult
	finalizers  []string          // of one that is being deleted
	annotations map[string]string // of a bookmark, where an informer reads them
}

func (p *packed) match() (result pipeline.MatchResult) {
	if p.extras != nil {
		result = p.extras.match
	}
	return result
}

// finalizers are those of an upstream that is being deleted.
func (p *packed) finalizers() []string {
	if p.extras == nil {
		return nil
	}
	return p.extras.finalizers
}

// GetAnnotations returns those of a bookmark.
func (p *packed) GetAnnotations() map[string]string {
	if p.extras == nil {
		return nil
	}
	return p.extras.annotations
}

// writers are the managers with an Apply entry in managedFields, and the versions of its kind in which an object was written.
// Each name ends with nameEnd.
type writers struct{ appliers, versions string }

// packedView is the view of upstreams, with the conditions of those that are not all.
const packedView = "packed"

// packedViewOf is the view of a pipeline's upstreams.
func packedViewOf(p *pipeline.Pipeline) string {
	if !p.HasMatchConditions() {
		return packedView
	}
	text, err := json.Marshal([]any{p.Config.Watch.MatchConditions, p.Params()})
	if err != nil {
		panic("writing conditions as JSON: " + err.Error()) // they came from JSON: cannot happen
	}
	return packedView + " " + string(text)
}

// packMatching is pack for the upstreams of a pipeline.
func (t *texts) packMatching(p *pipeline.Pipeline) cache.TransformFunc {
	if !p.HasMatchConditions() {
		return t.pack
	}
	return func(obj any) (any, error) {
		made, err := t.pack(obj)
		found, ok := made.(*packed)
		if err != nil || !ok || !found.match().IsMet() { // an informer transforms what a first watch brings twice
			return made, err
		}
		whole, err := found.unpack()
		if err != nil {
			return nil, err
		}
		made = found
		if match := p.Match(whole); !match.IsMet() {
			made = &packed{identity: found.identity, extras: &packedExtras{match: match, finalizers: found.finalizers()}}
		}
		return made, nil
	}
}

// pack is the transform of packedView. Watches bring packed objects; lists, which an informer falls back to, do not.
func (t *texts) pack(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	text, err := utiljson.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	made, _, err := packedCodec{texts: t}.Decode(text, nil, nil)
	return made, err
}

// nameEnd ends each name in writers: no name of a manager has it.
const nameEnd = "\x00"

// writersIn reads the JSON of managedFields of an object of a group. It searches for what API servers write, with operation
// after manager; within fieldsV1, quotes are escaped.
func writersIn(fields []byte, group string) unique.Handle[writers] {
	var appliers strings.Builder
	for name, after := range valuesOf("manager", fields) {
		if bytes.HasPrefix(after, []byte(`,"operation":"Apply"`)) {
			appliers.Write(name)
			appliers.WriteString(nameEnd)
		}
	}
	var versions []string
	for name := range valuesOf("apiVersion", fields) {
		if gv, err := schema.ParseGroupVersion(string(name)); err == nil && gv.Group == group {
			versions = append(versions, gv.Version+nameEnd)
		}
	}
	slices.Sort(versions)
	return unique.Make(writers{appliers.String(), strings.Join(slices.Compact(versions), "")})
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

func (p *packed) ref() operator.Ref { return operator.Ref{Namespace: p.Namespace, Name: p.Name} }

// appliedBy reports whether the manager has an Apply entry.
func (p *packed) appliedBy(manager string) bool {
	return strings.Contains(nameEnd+p.writers.Value().appliers, nameEnd+manager+nameEnd)
}

// unpack returns the object without managedFields, as a copy of its own.
func (p *packed) unpack() (*unstructured.Unstructured, error) {
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
func (p *packed) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns p itself, which never changes.
func (p *packed) DeepCopyObject() runtime.Object { return p }
