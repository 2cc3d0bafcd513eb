package memcluster

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/memcluster/answers"
	"github.com/corollary-dev/corollary/pkg/memcluster/catalog"
	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
	"github.com/corollary-dev/corollary/pkg/memcluster/store"
)

// Cluster is an API server and its store. It is safe for concurrent use and has no goroutines: it handles every request
// in the caller's goroutine, one at a time.
type Cluster struct {
	anyNamespace bool
	clock        func() time.Time

	store   *store.Store // its lock guards all that follows
	catalog *catalog.Catalog
	served  map[string]map[string]any // the spec by which each CustomResourceDefinition is served, by its name
	ids     ids
}

// Option is an option of New.
type Option func(*Cluster)

// WithDelivery sets the function that decides when each watch delivers each event; by default every event is delivered
// at once. f is called with the cluster locked: it must not send requests.
func WithDelivery(f func(store.Watch, store.Event) store.Delivery) Option {
	return func(c *Cluster) { c.store.Deliver = f }
}

// WithAnyNamespace allows objects in namespaces that do not exist.
func WithAnyNamespace() Option {
	return func(c *Cluster) { c.anyNamespace = true }
}

// WithClock sets the clock for creationTimestamp and deletionTimestamp; the default is time.Now.
func WithClock(now func() time.Time) Option {
	return func(c *Cluster) { c.clock = now }
}

// WithUIDs sets the function that makes uids. n differs in every call; the default is the number itself, as the last
// digits.
func WithUIDs(uid func(n int) types.UID) Option {
	return func(c *Cluster) { c.ids.uid = uid }
}

// New returns a cluster without objects, not even namespaces. It serves the built-in kinds and those of the
// CustomResourceDefinitions, for example from kinds.Definitions.
func New(definitions []*unstructured.Unstructured, options ...Option) (*Cluster, error) {
	c := &Cluster{
		clock:   time.Now,
		ids:     ids{uid: func(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)) }},
		store:   store.New(func(store.Watch, store.Event) store.Delivery { return store.Delivery{} }),
		catalog: catalog.New(),
		served:  map[string]map[string]any{},
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
		// typed clients send protobuf
		ContentConfig: rest.ContentConfig{ContentType: answers.AsJSON, AcceptContentTypes: answers.AsJSON}}
}

// Define serves the kinds of CustomResourceDefinitions, and stores the definitions as objects. It replaces existing
// definitions.
func (c *Cluster) Define(definitions ...*unstructured.Unstructured) error {
	c.store.Lock()
	defer c.store.Unlock()
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
	c.store.Lock()
	defer c.store.Unlock()
	r := c.catalog.ResourceOf(object.GroupVersionKind())
	if r == nil {
		return nil, fmt.Errorf("%s %s is not served", object.GroupVersionKind().GroupVersion(), object.GetKind())
	}
	return c.put(r, object).DeepCopy(), nil
}

// Objects returns the objects of a resource, ordered by namespace and name. They must not be changed.
func (c *Cluster) Objects(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	c.store.Lock()
	defer c.store.Unlock()
	r := c.catalog.Resources[gvr]
	if r == nil {
		return nil
	}
	var list []*unstructured.Unstructured
	for _, stored := range c.store.Objects[r.Stored()] {
		if u, err := r.View(stored); err == nil {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(resource.NameOf(a).String(), resource.NameOf(b).String())
	})
	return list
}

// Compact drops the history: a watch or a list at an earlier resourceVersion gets 410 Expired from now on.
func (c *Cluster) Compact() { c.store.Compact() }

func (c *Cluster) now() metav1.Time { return metav1.NewTime(c.clock()).Rfc3339Copy() }

func (c *Cluster) put(r *resource.Resource, object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	old := c.store.Get(r.Stored(), resource.NameOf(object))
	if old != nil && object.GetUID() == "" {
		object.SetUID(old.GetUID())
	}
	if object.GetUID() == "" {
		object.SetUID(c.ids.newUID())
	}
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(c.now())
	}
	if r.HasGeneration() && object.GetGeneration() == 0 {
		object.SetGeneration(1)
	}
	return c.store.Commit(r, old, object)
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
