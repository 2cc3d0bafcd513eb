package memcluster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/memcluster"
	"github.com/corollary-dev/corollary/pkg/memcluster/store"
)

var (
	configMapsOf = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgetsOf    = schema.GroupVersionResource{Group: "mem.example.com", Version: "v1", Resource: "widgets"}
)

// newCluster returns a cluster with the kinds of testdata and a namespace.
func newCluster(t testing.TB, ns string, options ...memcluster.Option) *memcluster.Cluster {
	t.Helper()
	definitions := must.Get(kinds.Definitions("testdata/crds")).In(t)
	cluster := must.Get(memcluster.New(definitions, options...)).In(t)
	active := map[string]any{"spec": map[string]any{"finalizers": []any{"kubernetes"}}, "status": map[string]any{"phase": "Active"}}
	must.Get(cluster.Put(object("v1", "Namespace", "", ns, active))).In(t)
	return cluster
}

// memory returns a cluster with the namespace default, and a client for it.
func memory(t testing.TB, options ...memcluster.Option) (*memcluster.Cluster, dynamic.Interface) {
	t.Helper()
	cluster := newCluster(t, "default", options...)
	client := must.Get(dynamic.NewForConfig(cluster.Config())).In(t)
	return cluster, client
}

func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		u.Object[key] = value
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func configMap(name, value string) *unstructured.Unstructured {
	return object("v1", "ConfigMap", "default", name, map[string]any{"data": map[string]any{"k": value}})
}

func applyTo(t testing.TB, client dynamic.Interface, gvr schema.GroupVersionResource,
	u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	force := metav1.ApplyOptions{FieldManager: "test", Force: true}
	out := must.Get(client.Resource(gvr).Namespace("default").Apply(t.Context(), u.GetName(), u, force)).In(t)
	return out
}

// log records what informers see.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) handler() cache.ResourceEventHandler {
	add := func(what string, o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			what, o = what+" unseen", gone.Obj
		}
		u := o.(*unstructured.Unstructured)
		value, _, _ := unstructured.NestedString(u.Object, "data", "k")
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", what, u.GetName(), value)))
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { add("add", o) }, DeleteFunc: func(o any) { add("delete", o) },
		UpdateFunc: func(_, o any) { add("update", o) }}
}

func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// inform starts an informer of ConfigMaps whose list and watch may be changed, and returns what it sees.
func inform(t *testing.T, client dynamic.Interface, tweak dynamicinformer.TweakListOptionsFunc) *log {
	t.Helper()
	seen := &log{}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, configMapsOf, "default", 0, cache.Indexers{}, tweak).Informer()
	must.Get(informer.AddEventHandler(seen.handler())).In(t)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	synctest.Wait()
	return seen
}

// advance advances the virtual time.
func advance(d time.Duration) { <-time.After(d) }

func expect(t *testing.T, seen *log, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := seen.take(); !slices.Equal(got, want) {
		t.Errorf("the informer saw %q, want %q", got, want)
	}
}

// TestInformers: client-go's informers work with the cluster in virtual time.
func TestInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, client := memory(t)
		applyTo(t, client, configMapsOf, configMap("a", "1"))
		seen := inform(t, client, nil)
		expect(t, seen, "add a 1")
		applyTo(t, client, configMapsOf, configMap("b", "1"))
		applyTo(t, client, configMapsOf, configMap("a", "2"))
		applyTo(t, client, configMapsOf, configMap("a", "2"))
		must.Do(t, client.Resource(configMapsOf).Namespace("default").Delete(t.Context(), "b", metav1.DeleteOptions{}))
		expect(t, seen, "add b 1", "update a 2", "delete b 1")

		cluster.Compact() // open watches continue
		applyTo(t, client, configMapsOf, configMap("c", "1"))
		expect(t, seen, "add c 1")
		before := time.Now()
		advance(3 * time.Hour) // many times the timeout of a reflector's watches
		synctest.Wait()
		applyTo(t, client, configMapsOf, configMap("c", "2"))
		expect(t, seen, "update c 2")
		advance(time.Minute)
		applyTo(t, client, configMapsOf, configMap("c", "2"))
		expect(t, seen) // the second apply changes nothing
		must.Same(t, 3*time.Hour+time.Minute, time.Since(before), "passed")
	})
}

// TestNoChange: applying a value again that the server normalizes changes nothing: managedFields keep their times.
func TestNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := memory(t)
		quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
		quota := object("v1", "ResourceQuota", "default", "a", map[string]any{"spec": map[string]any{"hard": map[string]any{"cpu": "1000m"}}})
		before := applyTo(t, client, quotas, quota)
		advance(time.Minute)
		if after := applyTo(t, client, quotas, quota); after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("it was written again: %v", after)
		}
	})
}

// TestRatcheting: an error that an object had before its definition changed does not prevent other changes.
func TestRatcheting(t *testing.T) {
	cluster, client := memory(t)
	spec := map[string]any{"size": int64(1), "min": int64(2), "name": "TOO-LONG-NAME"}
	must.Get(cluster.Put(object("mem.example.com/v1", "Widget", "default", "a", map[string]any{"spec": spec}))).In(t)
	widgets := client.Resource(widgetsOf).Namespace("default")
	patch := func(text string) error {
		_, err := widgets.Patch(t.Context(), "a", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
		t.Errorf("a label was refused: %v", err)
	}
	if err := patch(`{"spec":{"size":0}}`); !apierrors.IsInvalid(err) {
		t.Errorf("a change of what the rule is about was answered %v", err)
	}
}

// TestDelivery: each watch delivers each event when WithDelivery says so.
func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		_, client := memory(t, memcluster.WithDelivery(func(w store.Watch, e store.Event) store.Delivery {
			switch {
			case w.Labels.Empty() || e.Type != watch.Added:
				return store.Delivery{}
			case e.Object.GetName() == "held":
				return store.Delivery{Held: release}
			}
			return store.Delivery{After: time.Minute}
		}))
		seen, late := inform(t, client, nil), inform(t, client, func(o *metav1.ListOptions) { o.LabelSelector = "!none" })
		applyTo(t, client, configMapsOf, configMap("late", "1"))
		expect(t, seen, "add late 1")
		expect(t, late)
		advance(59 * time.Second)
		applyTo(t, client, configMapsOf, configMap("late", "2"))
		expect(t, late)
		advance(2 * time.Second)
		expect(t, late, "add late 1", "update late 2")
		applyTo(t, client, configMapsOf, configMap("held", "1"))
		advance(time.Hour)
		expect(t, late)
		close(release)
		expect(t, late, "add held 1")
	})
}

// TestGone: a watch or a list at a version before Compact gets 410.
func TestGone(t *testing.T) {
	cluster, client := memory(t)
	maps := client.Resource(configMapsOf).Namespace("default")
	old := applyTo(t, client, configMapsOf, configMap("a", "1")).GetResourceVersion()
	applyTo(t, client, configMapsOf, configMap("a", "2"))
	cluster.Compact()
	applyTo(t, client, configMapsOf, configMap("a", "3"))
	exact := metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := maps.List(t.Context(), exact); !apierrors.IsResourceExpired(err) {
		t.Errorf("the list was answered %v, want 410", err)
	}
	w := must.Get(maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old})).In(t)
	defer w.Stop()
	event := <-w.ResultChan()
	if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
		t.Errorf("the watch told %s %v, want ERROR with 410", event.Type, err)
	}
}

// TestConcurrentClients: concurrent requests are safe, and no write is lost.
func TestConcurrentClients(t *testing.T) {
	cluster, client := memory(t)
	widget := object("mem.example.com/v1", "Widget", "default", "owner", map[string]any{"spec": map[string]any{}})
	owner := applyTo(t, client, widgetsOf, widget)
	w := must.Get(client.Resource(configMapsOf).Namespace("default").Watch(t.Context(), metav1.ListOptions{})).In(t)
	const clients, writes = 8, 20
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			configMaps := client.Resource(configMapsOf).Namespace("default")
			for n := range writes {
				u := configMap("shared", "x")
				u.Object["data"] = map[string]any{fmt.Sprintf("k%d", i): fmt.Sprint(n)}
				if _, err := configMaps.Apply(t.Context(), "shared", u, metav1.ApplyOptions{FieldManager: fmt.Sprint("m", i)}); err != nil {
					t.Error(err)
				}
				own := configMap(fmt.Sprintf("own-%d-%d", i, n), "x")
				own.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "mem.example.com/v1", Kind: "Widget", Name: "owner", UID: owner.GetUID()}})
				if _, err := configMaps.Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
				if _, err := configMaps.List(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
				cluster.CollectGarbage()
			}
		})
	}
	all.Wait()
	shared := must.Get(client.Resource(configMapsOf).Namespace("default").Get(t.Context(), "shared", metav1.GetOptions{})).In(t)
	if data, _, _ := unstructured.NestedStringMap(shared.Object, "data"); len(data) != clients || data["k0"] != fmt.Sprint(writes-1) {
		t.Errorf("the ConfigMap that all applied to has %v", data)
	}
	must.Do(t, client.Resource(widgetsOf).Namespace("default").Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	if done := cluster.CollectGarbage(); len(done) != clients*writes {
		t.Errorf("the garbage collector did %d things for %d objects: %v", len(done), clients*writes, done)
	}
	left, err := client.Resource(configMapsOf).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 {
		t.Errorf("%v, %v are left of what the Widget owned", left, err)
	}
	counts := map[watch.EventType]int{}
	for range clients * writes * 3 { // one event for each write: to shared, to own, and the deletion of own
		counts[(<-w.ResultChan()).Type]++
	}
	w.Stop()
	want := map[watch.EventType]int{watch.Added: clients*writes + 1, watch.Modified: clients*writes - 1, watch.Deleted: clients * writes}
	if !maps.Equal(counts, want) {
		t.Errorf("the watch told %v, want %v", counts, want)
	}
}

// TestRefused: unsupported requests are refused with a message.
func TestRefused(t *testing.T) {
	cluster, client := memory(t)
	applyTo(t, client, configMapsOf, configMap("a", "1"))
	tests := []struct{ method, path, contentType, body, want string }{
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", `{"spec": {"conversion": {"strategy": "Webhook"}}}`, "conversion by webhooks"},
		{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", "{}", "authorization"},
		{"GET", "/apis/apps/v1/namespaces/default/deployments/a/scale", "", "", "the subresource scale"},
		{"GET", "/api/v1/watch/configmaps", "", "", "set the parameter watch"},
		{"GET", "/api/v1/pods?fieldSelector=spec.hostNetwork%3Dtrue", "", "", "the field selector spec.hostNetwork"},
	}
	for _, test := range tests {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "http://memcluster"+test.path, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", test.contentType)
		response, err := cluster.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		must.Do(t, response.Write(&text))
		_ = response.Body.Close() // it is in memory
		if response.StatusCode != http.StatusNotImplemented || !strings.Contains(text.String(), "the cluster in memory does not support") ||
			!strings.Contains(text.String(), test.want) {
			t.Errorf("%s %s was answered %s, want 501 that says %q", test.method, test.path, text.String(), test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Resource(configMapsOf).Namespace("default").Get(ctx, "a", metav1.GetOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was canceled was answered %v", err)
	}
}

// TestDefinitionsThatAreRefused: New returns what is wrong with a definition.
func TestDefinitionsThatAreRefused(t *testing.T) {
	definitions := must.Get(kinds.Definitions("testdata/crds/gadgets.yaml")).In(t)
	tests := map[string]struct {
		value any
		path  []string
	}{
		"conversion by webhooks":            {map[string]any{"strategy": "Webhook"}, []string{"spec", "conversion"}},
		"no version is served":              {[]any{}, []string{"spec", "versions"}},
		"spec.group, spec.names.kind":       {"", []string{"spec", "group"}},
		"schema.openAPIV3Schema":            {[]any{map[string]any{"name": "v1", "served": true, "storage": true}}, []string{"spec", "versions"}},
		`CustomResourceDefinition "gadgets`: {map[string]any{"strategy": "Webhook"}, []string{"spec", "conversion"}},
	}
	for want, test := range tests {
		definition := definitions[0].DeepCopy()
		must.Do(t, unstructured.SetNestedField(definition.Object, test.value, test.path...))
		if _, err := memcluster.New([]*unstructured.Unstructured{definition}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that says %q", err, want)
		}
	}
}

// TestKinds: pkg/kinds finds the same by discovery and OpenAPI as in files.
func TestKinds(t *testing.T) {
	cluster, _ := memory(t)
	live := must.Get(discovered.New(cluster.Config())).In(t)
	offline := must.Get(kinds.Offline("testdata/crds")).In(t)
	for _, gvk := range []schema.GroupVersionKind{widgetsOf.GroupVersion().WithKind("Widget"), {Version: "v1", Kind: "ConfigMap"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Version: "v1", Kind: "Namespace"}, {Group: "mem.example.com", Version: "v1beta1", Kind: "Gadget"}} {
		want := must.Get(offline.Kind(gvk)).In(t)
		got := must.Get(live.Kind(gvk)).In(t)
		if got.GVR != want.GVR || got.Namespaced != want.Namespaced || got.HasStatus != want.HasStatus || got.SchemaErr != nil {
			t.Errorf("%s is %+v, want %+v", gvk, got, want)
		}
	}
	if _, err := live.Kind(widgetsOf.GroupVersion().WithKind("Nothing")); !kinds.IsNotDefined(err) {
		t.Errorf("a kind that is not there is %v", err)
	}
	if v, err := live.Version(); err != nil || !strings.HasPrefix(v.String(), kinds.BuiltinVersion()) {
		t.Errorf("the version is %v, %v", v, err)
	}
	for _, aggregated := range []bool{true, false} {
		client := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config())
		client.UseLegacyDiscovery = !aggregated
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil || len(lists) < 20 {
			t.Errorf("discovery found %d groups, %v", len(lists), err)
		}
	}
}

// BenchmarkApply measures applies that change one value, through client-go.
func BenchmarkApply(b *testing.B) {
	bench := func(name string, gvr schema.GroupVersionResource, document func(i int) *unstructured.Unstructured) {
		b.Run(name, func(b *testing.B) {
			_, client := memory(b)
			for i := 0; b.Loop(); i++ {
				applyTo(b, client, gvr, document(i))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
	bench("ConfigMap", configMapsOf, func(i int) *unstructured.Unstructured { return configMap("a", fmt.Sprint(i)) })
	bench("Widget", widgetsOf, func(i int) *unstructured.Unstructured {
		spec := map[string]any{"size": int64(i % 100), "color": "red", "tags": []any{"a", "b"}}
		return object("mem.example.com/v1", "Widget", "default", "a", map[string]any{"spec": spec})
	})
}
