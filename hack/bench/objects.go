package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/corollary-dev/corollary/hack/bench/work"
)

// definition is the CustomResourceDefinition of Widget.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bench.example.com}
spec:
  group: bench.example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                data: {type: object, additionalProperties: {type: string}}
            status:
              type: object
              properties:
                observedGeneration: {type: integer}
                conditions:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [type]
                  items:
                    type: object
                    required: [type, status, reason, lastTransitionTime]
                    properties:
                      type: {type: string}
                      status: {type: string}
                      reason: {type: string}
                      message: {type: string}
                      observedGeneration: {type: integer}
                      lastTransitionTime: {type: string, format: date-time}
`

// operatorConfig is the same work for Corollary. NS and RESYNC are replaced.
const operatorConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: corollary}
watch: {apiVersion: bench.example.com/v1, kind: Widget, namespaces: [NS]}
inputs:
  - {name: settings, apiVersion: v1, kind: ConfigMap, fixedName: ` + work.Settings + `}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: "{{ .metadata.name }}"
        annotations: {` + work.RegionAnnotation + `: '{{ (input "settings").data.region }}'}
      data: {{ .spec.data }}
conventions:
  fieldManager: corollary
  labels: {` + work.ManagedLabel + `: corollary}
  hash: {annotation: bench.example.com/hash}
  owner: {reference: true}
status:
  conditions: {ready: Ready}
events: None
resyncPeriod: RESYNC
`

// writers is how many objects are written at once.
const writers = 8

// cluster writes what happens to the objects of one run.
type cluster struct {
	widgets, configMaps dynamic.ResourceInterface
	names               []string
	size                int // bytes of data in each object
	wanted              int // changes a second under load

	// What the last phase measured itself.
	latencies []time.Duration
	rate      float64

	changes int // of all loads: each sets another value
}

// newCluster is about so many objects of a kind, whose names begin with prefix.
func newCluster(
	cfg *rest.Config, kind schema.GroupVersionResource, namespace, prefix string, objects, size int,
) (*cluster, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	c := &cluster{
		widgets:    client.Resource(kind).Namespace(namespace),
		configMaps: client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace),
		names:      make([]string, objects),
		size:       size,
	}
	for i := range c.names {
		c.names[i] = fmt.Sprintf("%s-%06d", prefix, i)
	}
	return c, nil
}

// each calls do for every object whose position is a multiple of step, several at once.
func (c *cluster) each(ctx context.Context, step int, do func(ctx context.Context, i int, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := 0; i < len(c.names); i += step {
		group.Go(func() error { return do(ctx, i, c.names[i]) })
	}
	return group.Wait()
}

// createInput creates what all Widgets read.
func (c *cluster) createInput(ctx context.Context) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": work.Settings},
		"data": map[string]any{"region": "first"},
	}}
	_, err := c.configMaps.Create(ctx, u, metav1.CreateOptions{})
	return err
}

// changeInput changes what all Widgets read.
func (c *cluster) changeInput(ctx context.Context) error {
	return merge(ctx, c.configMaps, work.Settings, `{"data":{"region":"second"}}`)
}

// create creates the Widgets.
func (c *cluster) create(ctx context.Context) error {
	return c.each(ctx, 1, func(ctx context.Context, i int, name string) error {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": work.GroupVersion.String(), "kind": "Widget",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"data": c.data(i)},
		}}
		_, err := c.widgets.Create(ctx, u, metav1.CreateOptions{})
		return err
	})
}

// update changes one value of each Widget.
func (c *cluster) update(ctx context.Context) error {
	return c.patch(ctx, c.widgets, 1, `{"spec":{"data":{"key.0":"changed"}}}`)
}

// foreignChange changes a label of each ConfigMap that no program owns.
func (c *cluster) foreignChange(ctx context.Context) error {
	return c.patch(ctx, c.configMaps, 1, `{"metadata":{"labels":{"foreign":"yes"}}}`)
}

// drift changes a value of each ConfigMap that the program owns.
func (c *cluster) drift(ctx context.Context) error { return c.driftEvery(ctx, 1) }

func (c *cluster) driftEvery(ctx context.Context, step int) error {
	return c.patch(ctx, c.configMaps, step, `{"data":{"key.1":"edited"}}`)
}

// delete deletes the Widgets; the garbage collector deletes their ConfigMaps.
func (c *cluster) delete(ctx context.Context) error {
	return c.each(ctx, 1, func(ctx context.Context, _ int, name string) error {
		return c.widgets.Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// edits is how many objects are edited one after the other, and loadTime how long changes go on.
const (
	edits    = 100
	loadTime = 10 * time.Second
)

// repairs edits one ConfigMap at a time, and waits until the edit is undone.
func (c *cluster) repairs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, name := range c.names[:min(edits, len(c.names))] {
		if err := c.repair(ctx, name); err != nil {
			return fmt.Errorf("ConfigMap %s was not repaired: %w", name, err)
		}
	}
	return nil
}

// repair edits a ConfigMap, and waits until the edit is undone. The API server ends watches of all ConfigMaps if many
// change.
func (c *cluster) repair(ctx context.Context, name string) error {
	w, err := c.configMaps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := merge(ctx, c.configMaps, name, `{"data":{"key.1":"edited"}}`); err != nil {
		return err
	}
	began, edited := time.Now(), false
	for event := range w.ResultChan() {
		u, is := event.Object.(*unstructured.Unstructured)
		if !is {
			continue
		}
		value, _, _ := unstructured.NestedString(u.Object, "data", "key.1")
		if edited && value != "edited" {
			c.latencies = append(c.latencies, time.Since(began))
			return nil
		}
		edited = edited || value == "edited"
	}
	return errors.Join(errors.New("the watch ended"), context.Cause(ctx))
}

// load changes one Widget after the other, wanted times a second, or as often as the API server takes it.
func (c *cluster) load(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	limit, began, before := rate.NewLimiter(rate.Limit(c.wanted), 1), time.Now(), c.changes
	for ; time.Since(began) < loadTime; c.changes++ {
		if err := limit.Wait(ctx); err != nil {
			break // the group has the reason
		}
		n := c.changes
		group.Go(func() error {
			return merge(ctx, c.widgets, c.names[n%len(c.names)], fmt.Sprintf(`{"spec":{"data":{"key.0":"%d"}}}`, n))
		})
	}
	err := group.Wait()
	c.rate = float64(c.changes-before) / time.Since(began).Seconds()
	return err
}

func (c *cluster) patch(ctx context.Context, of dynamic.ResourceInterface, step int, patch string) error {
	return c.each(ctx, step, func(ctx context.Context, _ int, name string) error { return merge(ctx, of, name, patch) })
}

func merge(ctx context.Context, of dynamic.ResourceInterface, name, patch string) error {
	_, err := of.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "bench"})
	return err
}

// data looks like settings: words that repeat in keys, values that do not.
func (c *cluster) data(i int) map[string]any {
	random := rand.New(rand.NewPCG(uint64(i), 1))
	words := strings.Fields(`cache timeout seconds enabled region endpoint retries backend
		pool limit replicas prefix bucket level format interval`)
	data := map[string]any{"key.0": "first", "key.1": "second"}
	for size := len(`"key.0":"first","key.1":"second"`); size < c.size; {
		key := fmt.Sprintf("%s.%s.%d", words[random.IntN(len(words))], words[random.IntN(len(words))], len(data))
		value := fmt.Sprintf("%s-%08x", words[random.IntN(len(words))], random.Uint32())
		data[key] = value
		size += len(key) + len(value) + len(`"":"",`)
	}
	return data
}
