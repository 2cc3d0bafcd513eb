// Command floor makes the requests of the benchmark's work and does nothing else: it watches Widgets, applies a
// ConfigMap and writes a status for each new generation. It compares nothing, repairs nothing and keeps only
// generations, so no operator can cost less.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus/collectors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/hack/bench/work"
)

const (
	name    = "floor"
	workers = 10
	queued  = 200_000 // at most; API servers end the watch of a client that does not read
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, work.ParseFlags())
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o work.Options) error {
	cfg, err := o.Config()
	if err != nil {
		return err
	}
	metrics.Registry.MustRegister(collectors.NewGoCollector()) // a controller would do that
	server, err := metricsserver.NewServer(metricsserver.Options{BindAddress: o.Metrics}, cfg, nil)
	if err != nil {
		return fmt.Errorf("creating the metrics server: %w", err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	widgets := client.Resource(work.GroupVersion.WithResource("widgets")).Namespace(o.Namespace)
	configMaps := client.Resource(schema.GroupVersionResource{Version: "v1",
		Resource: "configmaps"}).Namespace(o.Namespace)
	queue := make(chan *unstructured.Unstructured, queued)
	failed := make(chan error, workers+1)
	go func() { failed <- server.Start(ctx) }()
	for range workers {
		go func() {
			for w := range queue {
				if err := write(ctx, widgets, configMaps, w); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	go func() {
		seen := map[types.UID]int64{}
		for ctx.Err() == nil { // API servers end watches
			if err := feed(ctx, widgets, seen, queue); err != nil {
				failed <- err
				return
			}
		}
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// feed queues each Widget whose generation is not the one that was seen, until the watch ends.
func feed(
	ctx context.Context, widgets dynamic.ResourceInterface, seen map[types.UID]int64,
	queue chan<- *unstructured.Unstructured,
) error {
	yes := true
	w, err := widgets.Watch(ctx, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		return fmt.Errorf("watching Widgets: %w", err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case !ok || event.Type == watch.Bookmark:
		case event.Type == watch.Deleted:
			delete(seen, u.GetUID())
		case seen[u.GetUID()] != u.GetGeneration():
			seen[u.GetUID()] = u.GetGeneration()
			observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
			if observed != u.GetGeneration() {
				queue <- u
			}
		}
	}
	return nil
}

func write(ctx context.Context, widgets, configMaps dynamic.ResourceInterface, w *unstructured.Unstructured) error {
	spec, _ := w.Object["spec"].(map[string]any)
	document := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": spec["data"],
		"metadata": map[string]any{
			"name": w.GetName(), "labels": map[string]any{work.ManagedLabel: name},
			"annotations": map[string]any{work.RegionAnnotation: "first"},
			"ownerReferences": []any{map[string]any{
				"apiVersion": work.GroupVersion.String(), "kind": "Widget", "name": w.GetName(),
				"uid": string(w.GetUID()), "controller": true,
			}},
		},
	}
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: name, Force: &force}
	if _, err := configMaps.Patch(ctx, w.GetName(), types.ApplyPatchType, text, options); err != nil {
		return fmt.Errorf("applying ConfigMap %s: %w", w.GetName(), err)
	}
	patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"",`+
		`"observedGeneration":%[1]d,"lastTransitionTime":"2000-01-01T00:00:00Z"}]}}`, w.GetGeneration())
	_, err = widgets.Patch(ctx, w.GetName(), types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: name}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of Widget %s: %w", w.GetName(), err)
	}
	return nil
}
