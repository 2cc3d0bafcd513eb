package memcluster

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Cluster is an API server and its store. It is safe for concurrent use and has no goroutines: it handles every request in the
// caller's goroutine, one at a time.
type Cluster struct {
	deliver      func(Watch, Event) Delivery
	anyNamespace bool
	clock        func() time.Time
	uid          func(n int) types.UID

	mu        sync.Mutex
	resources map[schema.GroupVersionResource]*resource
	objects   map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured
	// version is the resourceVersion of the last write, forgotten that of the last event that was removed from history.
	version, forgotten uint64
	history            []change
	watches            map[*stream]struct{}
	documents          map[schema.GroupVersion]*document // OpenAPI of custom kinds, created on first use
	served             map[string]map[string]any         // the spec by which each CustomResourceDefinition is served, by its name
	lastID             int                               // of the uids and generated names
}

// Option is an option of New.
type Option func(*Cluster)

// WithDelivery sets the function that decides when each watch delivers each event; by default every event is delivered at once.
// f is called with the cluster locked: it must not send requests.
func WithDelivery(f func(Watch, Event) Delivery) Option {
	return func(c *Cluster) { c.deliver = f }
}

// WithAnyNamespace allows objects in namespaces that do not exist.
func WithAnyNamespace() Option {
	return func(c *Cluster) { c.anyNamespace = true }
}

// WithClock sets the clock for creationTimestamp and deletionTimestamp; the default is time.Now.
func WithClock(now func() time.Time) Option {
	return func(c *Cluster) { c.clock = now }
}

// WithUIDs sets the function that makes uids. n differs in every call; the default is the number itself, as the last digits.
func WithUIDs(uid func(n int) types.UID) Option {
	return func(c *Cluster) { c.uid = uid }
}

// New returns a cluster without objects, not even namespaces. It serves the built-in kinds and those of the
// CustomResourceDefinitions, for example from kinds.Definitions.
func New(definitions []*unstructured.Unstructured, options ...Option) (*Cluster, error) {
	c := &Cluster{
		deliver:   func(Watch, Event) Delivery { return Delivery{} },
		clock:     time.Now,
		uid:       func(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)) },
		resources: builtinResources(),
		objects:   map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured{},
		version:   1, // as in etcd: the first write makes 2, and no object ever has 1
		forgotten: 1,
		watches:   map[*stream]struct{}{},
		documents: map[schema.GroupVersion]*document{},
		served:    map[string]map[string]any{},
	}
	for _, o := range options {
		o(c)
	}
	if err := c.Define(definitions...); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a client configuration for the cluster.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{Host: "http://memcluster", Transport: c, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: asJSON, AcceptContentTypes: asJSON}} // typed clients send protobuf
}

// Define serves the kinds of CustomResourceDefinitions, and stores the definitions as objects. It replaces existing
// definitions.
func (c *Cluster) Define(definitions ...*unstructured.Unstructured) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, definition := range definitions {
		if err := c.define(definition); err != nil {
			return fmt.Errorf("CustomResourceDefinition %q: %w", definition.GetName(), err)
		}
	}
	return nil
}

// Put creates or replaces an object as it is: no validation, no defaults, no managedFields. It sets a missing uid,
// resourceVersion, generation and creationTimestamp. It returns the stored object.
func (c *Cluster) Put(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resourceOf(object.GroupVersionKind())
	if r == nil {
		return nil, fmt.Errorf("%s %s is not served", object.GroupVersionKind().GroupVersion(), object.GetKind())
	}
	return c.put(r, object).DeepCopy(), nil
}

// Objects returns the objects of a resource, ordered by namespace and name. They must not be changed.
func (c *Cluster) Objects(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resources[gvr]
	if r == nil {
		return nil
	}
	var list []*unstructured.Unstructured
	for _, stored := range c.objects[gvr.GroupResource()] {
		if u, err := r.view(stored); err == nil {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(nameOf(a).String(), nameOf(b).String())
	})
	return list
}

func (c *Cluster) now() metav1.Time { return metav1.NewTime(c.clock()).Rfc3339Copy() }

func (c *Cluster) put(r *resource, object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	old := c.objects[r.GVR.GroupResource()][nameOf(object)]
	if old != nil && object.GetUID() == "" {
		object.SetUID(old.GetUID())
	}
	if object.GetUID() == "" {
		object.SetUID(c.newUID())
	}
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(c.now())
	}
	if r.hasGeneration() && object.GetGeneration() == 0 {
		object.SetGeneration(1)
	}
	return c.commit(r, old, object)
}

// RoundTrip implements http.RoundTripper: it responds as an API server does.
func (c *Cluster) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		var err error
		body, err = io.ReadAll(request.Body)
		_ = request.Body.Close() // it was read completely
		if err != nil {
			return nil, err
		}
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	return c.serve(request, body), nil
}

// resourceOf returns the resource of a kind; nil if it is not served.
func (c *Cluster) resourceOf(gvk schema.GroupVersionKind) *resource {
	for _, r := range c.resources {
		if r.GVK == gvk {
			return r
		}
	}
	return nil
}

func nameOf(u *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
}

// newUID uses a counter, so that every run has the same uids.
func (c *Cluster) newUID() types.UID {
	c.lastID++
	return c.uid(c.lastID)
}
