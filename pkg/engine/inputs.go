package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// input is an input as the cache keeps it: what is read of it, as compressed JSON, and the digest of that. An event that
// leaves the digest as it was is no news.
type input struct {
	metav1.ObjectMeta // name, namespace, uid and resourceVersion only
	digest            drift.Sum
	text              []byte
}

// GetObjectKind makes it a runtime.Object, as a watch's cache demands.
func (i *input) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns i itself, which never changes.
func (i *input) DeepCopyObject() runtime.Object { return i }

// keepInput is the transform of an input's view.
func keepInput(view pipeline.InputView) cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		cut := view.Cut(u.Object)
		text, err := utiljson.Marshal(cut)
		if err != nil {
			return nil, fmt.Errorf("packing %s/%s: %w", u.GetNamespace(), u.GetName(), err)
		}
		return &input{digest: drift.Digest(cut), text: compressed(text), ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		}}, nil
	}
}

// Digest implements Input.
func (i *input) Digest() drift.Sum { return i.digest }

// Unpack implements Input.
func (i *input) Unpack() (map[string]any, error) {
	obj := map[string]any{}
	if err := unpackInto(i.text, &obj); err != nil {
		return nil, fmt.Errorf("unpacking %s/%s: %w", i.Namespace, i.Name, err)
	}
	return obj, nil
}

// openInput joins the watches of an input: one object where the config fixes name and namespace, else those of that name,
// or all, in the namespaces in which upstreams are watched.
func (s *session) openInput(i int, source *pipeline.InputSource, heard func(watchKey, error)) error {
	s.caches.inputs[i] = stores{}
	if source.Kind.Missing != nil {
		return nil //nolint:nilerr // the watches of the kind are opened once it is there
	}
	namespaces := s.pipeline.Config.Watch.Namespaces
	switch {
	case source.Config.Namespace != "":
		namespaces = []string{source.Config.Namespace}
	case !s.pipeline.Upstream.Namespaced: // of a Namespace, the own one is itself
		namespaces = nil
	}
	for _, ns := range namespacesOf(namespaces, source.Kind.Namespaced) {
		key := watchKey{Identity: s.acting, GVR: source.Kind.GVR, Namespace: ns, View: "input " + source.View.ID()}
		if name := source.Config.FixedName; name != "" {
			key.Fields = "metadata.name=" + name
		}
		sub, err := s.engine.watches.subscribe(key, keepInput(source.View), s.inputHandler(i), heard)
		if err != nil {
			return err
		}
		s.caches.inputs[i][ns] = sub
	}
	return nil
}

// inputHandler queues the upstreams that read an input, behind what a person or another controller has just done to one
// of them: one input may have many readers. Then they are counted first; one is its author's business.
func (s *session) inputHandler(i int) cache.ResourceEventHandler {
	wake := func(obj any) {
		refs := s.readers.of(i, refsOf(obj))
		if len(refs) > 1 {
			s.batch.join(refs)
		}
		s.enqueue(priorityReaders, refs...)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial { // nobody has read anything before the first lists are in
				wake(obj)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok := before.(*input)
			if a, is := after.(*input); ok && is && a.UID == b.UID && a.digest == b.digest {
				return
			}
			wake(after)
		},
		DeleteFunc: wake,
	}
}

// readers knows which upstreams read an input, there or not.
type readers struct {
	mu sync.Mutex
	by map[inputKey]map[pipeline.Ref]struct{}
}

type inputKey struct {
	input int
	at    pipeline.Ref
}

// move takes an upstream from the inputs that it read to those that it reads now.
func (r *readers) move(reader pipeline.Ref, from, to []pipeline.InputRef) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, ref := range from {
		key := inputKey{i, ref.At}
		if i < len(to) && to[i].At == ref.At {
			continue
		}
		delete(r.by[key], reader)
		if len(r.by[key]) == 0 {
			delete(r.by, key)
		}
	}
	for i, ref := range to {
		if ref.At.Name == "" {
			continue
		}
		if r.by == nil {
			r.by = map[inputKey]map[pipeline.Ref]struct{}{}
		}
		key := inputKey{i, ref.At}
		if r.by[key] == nil {
			r.by[key] = map[pipeline.Ref]struct{}{}
		}
		r.by[key][reader] = struct{}{}
	}
}

// of lists the readers of an input's objects.
func (r *readers) of(input int, objects []pipeline.Ref) []pipeline.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []pipeline.Ref
	for _, at := range objects {
		list = slices.Grow(list, len(r.by[inputKey{input, at}]))
		for reader := range r.by[inputKey{input, at}] {
			list = append(list, reader)
		}
	}
	return list
}

// findInputs says where the upstream's inputs stand and takes them from the caches as they are now. The upstream is
// entered as a reader first: what changes from then on wakes it.
func (l *look) findInputs(ctx context.Context) {
	if len(l.pipeline.Inputs) == 0 {
		return
	}
	r := l.record
	if r.inputsOf != l.upstream.GetResourceVersion() || r.inputs == nil {
		refs := l.pipeline.InputRefs(ctx, l.upstream)
		l.readers.move(l.ref, r.inputs, refs)
		if r.inputs, r.inputsOf = refs, l.upstream.GetResourceVersion(); ctx.Err() != nil {
			r.inputsOf = "" // an evaluation that was cut short says nothing about the upstream
		}
	}
	l.found = make([]Input, len(r.inputs))
	digests := make([]any, len(r.inputs))
	for i, ref := range r.inputs {
		if l.found[i] = l.cache.Input(i, ref.At); l.found[i] != nil {
			digest := l.found[i].Digest()
			digests[i] = string(digest[:])
		} else if ref.Err != nil {
			digests[i] = []any{ref.Err.Error()}
		}
	}
	l.read = drift.Digest(digests)
	l.unpacked = nil
}

// inputsRead are the inputs as findInputs found them.
func (l *look) inputsRead() pipeline.Inputs {
	if l.unpacked == nil {
		in := l.pipeline.InputsAt(l.record.inputs, func(s *pipeline.InputSource, _ pipeline.Ref) map[string]any {
			if l.found[s.Index] == nil {
				return nil
			}
			obj, err := l.found[s.Index].Unpack()
			if err != nil { // it was packed by this process: a mistake of this program
				panic(err)
			}
			return obj
		})
		in = in.Sharing(l.larger)
		l.unpacked = &in
	}
	return *l.unpacked
}

// document is the whole document to send for downstream i; live is nil at creation.
func (l *look) document(w *pipeline.Wish, i int, live *drift.Live) (map[string]any, error) {
	return l.pipeline.Document(w, i, l.upstream, l.inputsRead(), live)
}
