//go:build controlplane

package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// The real binary is killed again and again in the middle of creations, changes, renames, moves between namespaces and
// deletions. When it is left alone at last, nothing is lost, nothing doubled, nothing orphaned.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "corollary")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/corollary").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	conf := replaceOnce(t, elsewhere(fill(widgetConfig, ns, name), other, ns), "name: {{ .metadata.name }}", "name: {{ .spec.name }}")
	conf += "guard: {maxDeleted: 100%}\n" // what is edited while it is dead counts at a start
	unheld := followUnheld(t, ns)
	end := churn(t, rand.New(rand.NewPCG(1, 2)), ns, other) // the same story each time; the moments of the kills differ anyway
	dir := writeConfigs(t, conf)
	for range 12 {
		log, kill := runProgram(t, binary, dir)
		testkit.Eventually(t, patience, func() (bool, string) {
			return strings.Contains(log.String(), "acting"), "it does nothing:\n" + log.String()
		})
		<-time.After(rand.N(800 * time.Millisecond))
		kill()
	}
	end()
	runProgram(t, binary, dir)
	testkit.Eventually(t, 2*patience, func() (bool, string) { return allInPlace(t, ns, other, name, unheld) })
}

// followUnheld watches the Widgets of a namespace until the test ends, and reports whether the API server deleted one
// without waiting for its finalizer: it looks for finalizers once, and then asks the storage for the uid alone. Nobody
// can hold such an object.
func followUnheld(t *testing.T, ns string) func(uid string) bool {
	t.Helper()
	var deleted sync.Map
	client := testkit.Dynamic(t).Resource(widgets).Namespace(ns)
	list := must.Get(client.List(t.Context(), metav1.ListOptions{})).In(t)
	// The API server ends a watch that does not keep up, as on a busy machine; it is taken up again where it ended.
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return client.Watch(ctx, o)
	}}
	events := must.Get(watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), watcher)).In(t)
	go func() {
		for e := range events.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type == watch.Deleted && u.GetDeletionTimestamp() == nil && len(u.GetFinalizers()) > 0 {
				deleted.Store(string(u.GetUID()), true)
			}
		}
	}()
	return func(uid string) bool { _, ok := deleted.Load(uid); return ok }
}

// runProgram starts the binary with the configs in dir. It runs until the test ends or kill is called; a failed test
// shows what it logged.
func runProgram(t *testing.T, binary, dir string) (log *logText, kill func()) {
	t.Helper()
	log = &logText{}
	cmd := exec.Command(binary, "run", "--config", dir, "--kubeconfig", testkit.Kubeconfig(t), "--metrics-bind-address", "0",
		"--health-probe-bind-address", "0", "--zap-log-level", "debug")
	cmd.Stdout, cmd.Stderr = log, log
	must.Do(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		if kill(); t.Failed() {
			t.Log(log.String())
		}
	})
	return log, kill
}

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

// A cluster that is set back to an older state, as by a restored etcd, is noticed before anything is written by what
// was seen of the newer one: watches would wait there for versions that are yet to come, and show nothing until then.
// The older state is that of an API server of its own.
func TestClusterIsSetBack(t *testing.T) {
	var crds []string
	for _, file := range crdFiles(t) {
		text := must.Get(os.ReadFile(file)).In(t)
		crds = append(crds, string(text))
	}
	older := must.Get(controlplane.Start(t.Context(), controlplane.Options{CRDs: crds})).In(t)
	t.Cleanup(func() {
		if err := older.Stop(); err != nil {
			t.Error(err)
		}
	})
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	conf := fill(widgetConfig, ns, name)
	client := must.Get(dynamic.NewForConfig(older.Config())).In(t)
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

	httpClient := must.Get(rest.HTTPClientFor(older.Config())).In(t)
	to := must.Get(url.Parse(older.Config().Host)).In(t)
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
	n := must.Get(strconv.Atoi(obj.GetResourceVersion())).In(t)
	return n
}
