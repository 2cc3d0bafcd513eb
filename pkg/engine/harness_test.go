package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
)

var (
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets      = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "widgets"}
	gadgets      = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "gadgets"}
	plains       = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "plains"}
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	teams        = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "teams"}
	crds         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// inMemory runs a test against an API server in memory, in virtual time, in parallel with others.
func inMemory(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	bubble.Run(t, crdFiles(t), test)
}

// inTurn is inMemory, but not in parallel: for a test of what the whole process has, and for subtests that are in
// parallel already.
func inTurn(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	bubble.Test(t, crdFiles(t), test)
}

func crdFiles(t *testing.T) []string {
	t.Helper()
	paths := must.Get(filepath.Glob("../../testdata/crds/*.yaml")).In(t)
	return paths
}

// bubbled is inMemory for t.Run.
func bubbled(test func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) { inMemory(t, test) }
}

// patience is how long a test waits for what should take milliseconds: long enough for a busy machine.
const patience = 2 * time.Minute

// workers is how many upstreams of an operator are worked on at once.
const workers = 4

// widgetConfig makes a ConfigMap of each Widget in a namespace. NS and NAME are filled in by operatorFor; what a test
// changes, it replaces or adds by text.
const widgetConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: test.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .spec.name | default .metadata.name }}
      data: {{ .spec.data }}
    # downstream
conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
  owner: {annotation: NAME.example.com/owner}
  finalizer: NAME.example.com/cleanup
  pause: {annotation: NAME.example.com/paused}
status:
  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}
  downstreams: .status.downstreams
events: None
retry: {minDelay: 1s, maxDelay: 10s}
`

// selector selects what the operator of that name made.
func selector(name string) string { return name + ".example.com/managed=yes" }

// metric sums a metric's samples that bear the operator's name and the other labels (name, value, name, value …).
func metric(t testing.TB, name, operator string, labels ...string) float64 {
	t.Helper()
	engine.Poll(operator)
	families := must.Get(metrics.Registry.Gather()).In(t)
	var sum float64
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			matches := have["operator"] == operator
			for i := 0; i+1 < len(labels); i += 2 {
				matches = matches && have[labels[i]] == labels[i+1]
			}
			if matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// fill puts the test's namespace and an operator name of its own into a config.
func fill(text, ns, name string) string {
	return strings.NewReplacer("NS", ns, "NAME", name).Replace(text)
}

// running is an engine at work in this process.
type running struct {
	t    testing.TB
	stop context.CancelFunc
	done chan error
	once bool
	dir  string // of the configs: a.yaml, b.yaml …
	*engine.Engine
}

// start runs configs against cfg until the test ends or stop is called.
func start(t testing.TB, cfg *rest.Config, texts ...string) *running {
	t.Helper()
	return startWith(t, cfg, func(*config.Operator, *engine.Options) {}, texts...)
}

// writeConfigs writes configs into a new directory: a.yaml, b.yaml …
func writeConfigs(t testing.TB, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		must.Do(t, os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".yaml"), []byte(text), 0o600))
	}
	return dir
}

// startWith is start with what a config file could not say, such as a resync every second.
func startWith(t testing.TB, cfg *rest.Config, change func(*config.Operator, *engine.Options), texts ...string) *running {
	t.Helper()
	dir := writeConfigs(t, texts...)
	files, errs := load.Operators(load.Options{Files: []string{dir}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return startLoaded(t, cfg, change, dir, files, files, nil)
}

// startLoaded is startWith for configs that were loaded from dir, of which those in files are to run.
func startLoaded(t testing.TB, cfg *rest.Config, change func(*config.Operator, *engine.Options), dir string, files, loaded []*load.File, errs config.Errors) *running {
	t.Helper()
	// On a busy machine a reconciliation may take long. One that is cut off asks again, more than was promised.
	options := engine.Options{Workers: workers, DiscoveryInterval: 200 * time.Millisecond, DrainTimeout: 5 * patience, Log: logFor(t)}
	for _, f := range files {
		change(&f.Operator, &options)
	}
	grace := patience
	mgr, err := manager.New(cfg, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: options.Log, GracefulShutdownTimeout: &grace})
	if err != nil {
		t.Fatal(err)
	}
	e := must.Get(engine.New(cfg, mgr, files, options)).In(t)
	e.ReportMissing(loaded, errs)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, stop: cancel, done: make(chan error, 1), dir: dir, Engine: e}
	go func() { r.done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		r.halt()
		for _, f := range files {
			engine.Forget(f.Metadata.Name)
		}
	})
	return r
}

// logFor logs to the test as long as it runs: informers still log while they end.
func logFor(t testing.TB) logr.Logger {
	var mu sync.Mutex
	over := false
	t.Cleanup(func() { mu.Lock(); defer mu.Unlock(); over = true })
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			t.Log(prefix, args)
		}
	}, funcr.Options{Verbosity: verbosity(t)})
}

// verbosity shows every action in tests; in benchmarks the log would be what is measured.
func verbosity(t testing.TB) int {
	if _, benchmark := t.(*testing.B); benchmark {
		return 0
	}
	return 1
}

// halt stops the engine and waits until it has drained.
func (r *running) halt() {
	if r.once {
		return
	}
	r.once = true
	r.stop()
	select {
	case err := <-r.done:
		if err != nil && !errors.Is(err, context.Canceled) {
			r.t.Errorf("the engine ended with: %v", err)
		}
	case <-time.After(2 * patience):
		r.t.Error("the engine does not stop")
	}
}

// ready waits until every operator runs.
func (r *running) ready() *running {
	r.t.Helper()
	testkit.Eventually(r.t, patience, func() (bool, string) {
		err := r.Ready(nil)
		return err == nil, text(err)
	})
	return r
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// widget is a Widget in YAML.
func widget(name, spec string) string {
	return object("Widget", name, spec)
}

func object(kind, name, spec string) string {
	return "apiVersion: test.example.com/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// condition returns status, reason and message of a condition, or why there is none.
func condition(u *unstructured.Unstructured, kind string) (status, reason, message string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range list {
		m, _ := c.(map[string]any)
		if m["type"] == kind {
			status, _ = m["status"].(string)
			reason, _ = m["reason"].(string)
			message, _ = m["message"].(string)
			return status, reason, message
		}
	}
	return "", "", "no condition " + kind
}

// waitCondition waits until a condition has that status and returns the object.
func waitCondition(t *testing.T, gvr schema.GroupVersionResource, ns, name, kind, want string) *obj {
	t.Helper()
	return waitThat(t, gvr, ns, name, func(u *obj) bool {
		status, _, _ := condition(u, kind)
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		return status == want && observed == u.GetGeneration()
	})
}

// obj is any object.
type obj = unstructured.Unstructured

// waitThat waits until an object exists and is as it should be, and returns it.
func waitThat(t *testing.T, gvr schema.GroupVersionResource, ns, name string, is func(u *obj) bool) *obj {
	t.Helper()
	var u *obj
	testkit.Eventually(t, patience, func() (bool, string) {
		if u = testkit.Find(t, gvr, ns, name); u == nil {
			return false, gvr.Resource + " " + name + " does not exist"
		}
		return is(u), fmt.Sprintf("%s %s is %v, and has %v, %v", gvr.Resource, name, u.Object["status"], u.Object["data"], u.Object["metadata"])
	})
	return u
}

// waitText waits until a text is another one.
func waitText(t testing.TB, want string, text func() string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		have := text()
		return have == want, "it is " + have + ", want " + want
	})
}

// waitData waits until a ConfigMap has a value under a key.
func waitData(t *testing.T, ns, name, key, want string) *obj {
	t.Helper()
	return waitThat(t, configMaps, ns, name, func(u *obj) bool { return dataIn(u, key) == want })
}

// dataIn is the value under a key of a ConfigMap.
func dataIn(u *obj, key string) string {
	value, _, _ := unstructured.NestedString(u.Object, "data", key)
	return value
}

// waitGone waits until objects do not exist.
func waitGone(t *testing.T, gvr schema.GroupVersionResource, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Eventually(t, patience, func() (bool, string) {
			return testkit.Find(t, gvr, ns, name) == nil, gvr.Resource + " " + name + " still exists"
		})
	}
}

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// waitEvent waits for an event about an upstream.
func waitEvent(t *testing.T, ns, name, reason, text string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		var seen []string
		for _, e := range testkit.List(t, events, ns, "") {
			regarding, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			r, _, _ := unstructured.NestedString(e.Object, "reason")
			note, _, _ := unstructured.NestedString(e.Object, "note")
			seen = append(seen, regarding+": "+r+": "+note)
			if regarding == name && r == reason && strings.Contains(note, text) {
				return true, ""
			}
		}
		return false, "events are:\n" + strings.Join(seen, "\n")
	})
}

func replaceOnce(t *testing.T, text, old, replacement string) string {
	t.Helper()
	out := strings.Replace(text, old, replacement, 1)
	if out == text {
		t.Fatalf("%q is not in the config", old)
	}
	return out
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// intercepted returns a copy of a client configuration whose requests go through a function.
func intercepted(cfg *rest.Config, send func(r *http.Request, next http.RoundTripper) (*http.Response, error)) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return send(r, next) })
	})
	return cfg
}
