//go:build controlplane

package engine_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// detour sends requests to another API server once it is taken.
type detour struct {
	to    *url.URL
	via   http.RoundTripper
	taken atomic.Bool
}

func (d *detour) wrap(cfg *rest.Config) *rest.Config {
	return intercepted(cfg, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !d.taken.Load() {
			return next.RoundTrip(r)
		}
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host, r.Host = d.to.Scheme, d.to.Host, ""
		return d.via.RoundTrip(r)
	})
}

// A cluster that is set back to an older state, as by a restored etcd, is noticed before anything is written by what was seen
// of the newer one: watches would wait there for versions that are yet to come, and show nothing until then. The older state is
// that of an API server of its own.
func TestClusterIsSetBack(t *testing.T) {
	var crds []string
	for _, file := range crdFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, string(text))
	}
	older, err := controlplane.Start(t.Context(), controlplane.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := older.Stop(); err != nil {
			t.Error(err)
		}
	})
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := fill(widgetConfig, ns, name)
	client, err := dynamic.NewForConfig(older.Config())
	if err != nil {
		t.Fatal(err)
	}
	apply := func(gvr schema.GroupVersionResource, namespace, text string) {
		t.Helper()
		obj := testkit.Parse(t, text)
		if _, err := client.Resource(gvr).Namespace(namespace).Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	copied := func() *unstructured.Unstructured {
		cm, err := client.Resource(configMaps).Namespace(ns).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			return &unstructured.Unstructured{}
		}
		return cm
	}
	holds := func(value string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			have, _, _ := unstructured.NestedString(copied().Object, "data", "key")
			return have == value, "the data are " + have
		})
	}
	apply(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+ns+"}}")
	apply(widgets, ns, widget("a", `{data: {key: older}}`))
	before := start(t, older.Config(), conf).ready()
	holds("older")
	before.halt()
	uid := copied().GetUID()

	httpClient, err := rest.HTTPClientFor(older.Config())
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(older.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	d, faults := &detour{to: to, via: httpClient.Transport}, testkit.NewFaults()
	start(t, faults.Wrap(d.wrap(testkit.Config(t))), conf).ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: newer}}`))
	testkit.Apply(t, ns, widget("late", `{data: {key: newer}}`))
	waitData(t, ns, "a", "key", "newer")
	waitData(t, ns, "late", "key", "newer")
	for i := range 3000 { // the newer state has later versions
		if _, err := testkit.TryApply(t, ns, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: noise}, data: {i: '%d'}}", i)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 && version(t, testkit.Get(t, configMaps, ns, "noise")) > version(t, copied())+2000 {
			break
		}
	}
	testkit.Apply(t, ns, widget("a", `{data: {key: newest}}`))
	waitData(t, ns, "a", "key", "newest")

	d.taken.Store(true)
	faults.Cut(func(*http.Request) bool { return true })
	never(t, func() (bool, string) {
		cm := copied()
		value, _, _ := unstructured.NestedString(cm.Object, "data", "key")
		_, err := client.Resource(configMaps).Namespace(ns).Get(t.Context(), "late", metav1.GetOptions{})
		return cm.GetUID() != uid || value != "older" || err == nil, fmt.Sprintf("what was seen of the newer state was written: %v, late: %v", cm.Object, err)
	})
	apply(widgets, ns, widget("a", `{data: {key: again}}`))
	holds("again")
}

// version is an object's resource version as a number.
func version(t *testing.T, obj *unstructured.Unstructured) int {
	t.Helper()
	n, err := strconv.Atoi(obj.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
