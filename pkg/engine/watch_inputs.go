package engine

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

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
	namespaces := s.Pipeline.Config.Watch.Namespaces
	switch {
	case source.Config.Namespace != "":
		namespaces = []string{source.Config.Namespace}
	case !s.Pipeline.Upstream.Namespaced: // of a Namespace, the own one is itself
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
		refs := s.ReadersOf(i, refsOf(obj)...)
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
