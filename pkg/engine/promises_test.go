package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// The figures that are promised, counted at the transport over many objects: requests, not time.

const many = 200

func named(i int) string { return fmt.Sprintf("w-%03d", i) }

// eachOf repeats what is done for one of the many.
func eachOf(do func(name string, i int)) {
	for i := range many {
		do(named(i), i)
	}
}

// applyMany applies as many Widgets, and waits until they are ready.
func applyMany(t *testing.T, ns string, n int, spec string) {
	t.Helper()
	for i := range n {
		testkit.Apply(t, ns, widget(named(i), spec))
	}
	for i := range n {
		waitCondition(t, widgets, ns, named(i), "Ready", "True")
	}
}

// waitMany waits until as many ConfigMaps have a value under a key.
func waitMany(t *testing.T, ns string, n int, key, value string) {
	t.Helper()
	for i := range n {
		waitData(t, ns, named(i), key, value)
	}
}

// quiet waits until no request has come for a while.
func quiet(t *testing.T, c *testkit.Counter) {
	t.Helper()
	last, since, enough := -1, time.Now(), 700*time.Millisecond
	testkit.Eventually(t, patience, func() (bool, string) {
		if n := c.Total(); n != last {
			last, since = n, time.Now()
		}
		return c.Total() == last && time.Since(since) > enough, fmt.Sprintf("requests still come: %v", c.Snapshot())
	})
}

func TestPromisedRequests(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		r, counter := startCounted(t, conf)
		counter.Reset()
		promised := func(what string, limit float64) {
			t.Helper()
			quiet(t, counter)
			if per := float64(counter.Total()) / many; per > limit {
				t.Errorf("%s: %.3f requests for each object, promised are at most %.2f: %v", what, per, limit, counter.Snapshot())
			}
			counter.Reset()
		}
		ready := func(name string, _ int) { waitCondition(t, widgets, ns, name, "Ready", "True") }

		eachOf(func(name string, i int) { testkit.Apply(t, ns, widget(name, fmt.Sprintf(`{data: {key: "%d"}}`, i))) })
		eachOf(ready)
		promised("a new object, to Ready", 2.05)

		eachOf(func(name string, _ int) {
			testkit.Patch(t, configMaps, ns, name, "somebody", `{"metadata":{"annotations":{"elsewhere.example.com/note":"x"}}}`)
		})
		promised("a foreign annotation", 0)

		eachOf(func(name string, _ int) {
			testkit.Patch(t, configMaps, ns, name, "somebody", `{"data":{"key":"tampered"}}`)
		})
		eachOf(func(name string, i int) { waitData(t, ns, name, "key", fmt.Sprint(i)) })
		exactly(t, counter, many, "one repairs each object")
		promised("drift", 1)

		eachOf(func(name string, i int) {
			testkit.Patch(t, widgets, ns, name, "somebody", fmt.Sprintf(`{"spec":{"data":{"key":"new-%d"}}}`, i))
		})
		eachOf(func(name string, i int) { waitData(t, ns, name, "key", fmt.Sprintf("new-%d", i)) })
		eachOf(ready)
		promised("a spec update", 2.05)

		r.halt()
		// The watch of an upstream shows that it is gone within this time after that of its downstream does.
		startWith(t, counter.Wrap(testkit.Config(t)), func(_ *config.Operator, o *engine.Options) { o.AfterDelete = patience }, conf).ready()
		atMostWrites(t, counter, 0, "a restart")
		for key, n := range counter.Snapshot() {
			if n > 5 {
				t.Errorf("a restart: %d × %s for %d objects; the lists alone are promised", n, key, many)
			}
		}

		counter.Reset()
		eachOf(func(name string, _ int) { testkit.Delete(t, widgets, ns, name) })
		testkit.Eventually(t, 3*patience, func() (bool, string) {
			left := len(testkit.List(t, configMaps, ns, selector(name)))
			return left == 0, fmt.Sprintf("%d ConfigMaps left", left)
		})
		waitMetric(t, 0, "corollary_upstreams", name)
		promised("a deletion with owner references", 0)
	})
}

// A resync looks at every object again and asks the API server nothing.
func TestPromisedResync(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		counter := testkit.NewCounter()
		everySecond := func(op *config.Operator, _ *engine.Options) { op.ResyncPeriod = common.Duration(time.Second) }
		startWith(t, counter.Wrap(testkit.Config(t)), everySecond, fill(widgetConfig, ns, name)).ready()
		applyMany(t, ns, 20, `{data: {key: a}}`)
		settle(t, counter)
		looks := metric(t, "corollary_reconcile_seconds", name)
		waitMetricFrom(t, looks+60, "corollary_reconcile_seconds", name)
		atMostRequests(t, counter, 0, "a resync")
	})
}

// Operators that start together look up the kinds of one group and version once. Those of a reload do so again, since
// kinds often change together with configs, and those of an unchanged config not at all.
func TestOperatorsShareDiscovery(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		const many, kinds = 12, "GET /apis/test.example.com/v1"
		ns := testkit.Namespace(t)
		var configs []string
		for i := range many {
			text := fill(widgetConfig, ns, testkit.Unique(t))
			// Operators on one kind must write different conditions.
			text = strings.NewReplacer("ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled", fmt.Sprintf("ready: Ready%d", i),
				"  downstreams: .status.downstreams\n", "", "{{ .spec.name | default .metadata.name }}", fmt.Sprintf("{{ .metadata.name }}-%d", i)).Replace(text)
			if i%2 == 0 {
				text = strings.Replace(text, "kind: Widget", "kind: Gadget", 1)
			}
			configs = append(configs, text)
		}
		r, requests := startCounted(t, configs...)
		lookUps := func() map[string]int {
			found := requests.Snapshot()
			maps.DeleteFunc(found, func(key string, _ int) bool {
				return key != "GET /version" && key != "GET /api/v1" && key != kinds && !strings.HasPrefix(key, "GET /openapi/")
			})
			return found
		}
		began := lookUps()
		for path, n := range began {
			if n > many/3 {
				t.Errorf("%d requests for %s by %d operators", n, path, many)
			}
		}
		r.reload()
		never(t, func() (bool, string) {
			return !maps.Equal(began, lookUps()), fmt.Sprintf("requests of a reload of equal configs: %v, %v before", lookUps(), began)
		})
		r.reloadTo(withKey(configs[0], "version", "two"))
		testkit.Eventually(t, patience, func() (bool, string) {
			return lookUps()[kinds] > began[kinds], "the kinds of the changed config are not requested again"
		})
	})
}

// An operator at rest has one goroutine for its queue, however many workers it may have.
func TestOperatorAtRestHasNoWorkers(t *testing.T) {
	inTurn(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		startMade(t, ns, fill(widgetConfig, ns, name))
		testkit.Eventually(t, patience, func() (bool, string) {
			var stacks bytes.Buffer
			if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
				t.Fatal(err)
			}
			n := 0
			for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
				running, _, _ := strings.Cut(stack, "created by")
				if strings.Contains(running, ".GetWithPriority(") || strings.Contains(running, ".runWorker(") {
					n++
				}
			}
			return n == 1, fmt.Sprintf("%d goroutines wait for upstreams or reconcile, want 1 of %d workers", n, workers)
		})
	})
}

// requested is a config with an annotation to ask by, and delays that no test waits for.
func requested(ns, name, change, to string) string {
	text := strings.Replace(fill(widgetConfig, ns, name), "retry: {minDelay: 1s, maxDelay: 10s}", "retry: {minDelay: 5m, maxDelay: 1h}", 1)
	text = strings.Replace(text, "  pause: {", "  reconcile: {annotation: "+name+".example.com/now}\n  pause: {", 1)
	return strings.Replace(text, change, to, 1)
}

func ask(t *testing.T, ns, name, operator, value string) {
	t.Helper()
	testkit.Patch(t, widgets, ns, name, "test", `{"metadata": {"annotations": {"`+operator+`.example.com/now": "`+value+`"}}}`)
}

// TestRequestedReconcile: a requested reconcile does not wait for the delay after a failure, and ends the backoff from
// another writer. It takes milliseconds, and a busy machine more; by itself it would be done after five minutes.
func TestRequestedReconcile(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		asked := func(value string) {
			t.Helper()
			begun := time.Now()
			ask(t, ns, "w", name, value)
			waitData(t, ns, "w", "a", "b")
			if took := time.Since(begun); took > 2*patience {
				t.Errorf("it took %s", took)
			}
		}
		faults := testkit.NewFaults()
		refused := faults.Answer(500, testkit.On("PATCH", "configmaps"))
		start(t, faults.Wrap(testkit.Config(t)), requested(ns, name, "", "")).ready()
		testkit.Apply(t, ns, widget("w", "{data: {a: b}}"))
		waitCondition(t, widgets, ns, "w", "Ready", "False")
		refused.Off()
		asked("1")
		waitCondition(t, widgets, ns, "w", "Ready", "True")
		for range 3 {
			testkit.Patch(t, configMaps, ns, "w", "rival", `{"data": {"a": "x"}}`)
			waitData(t, ns, "w", "a", "b")
		}
		testkit.Patch(t, configMaps, ns, "w", "rival", `{"data": {"a": "x"}}`)
		waitsFor(t, widgets, ns, "w", "Contested")
		asked("2")
	})
}

// TestReloadsAreNoContest: a config that is changed again and again, there and back, is followed at once.
func TestReloadsAreNoContest(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := requested(ns, name, "", "")
		r, _ := startMade(t, ns, conf)
		for i := range 8 {
			value := strconv.Itoa(i % 3)
			r.reloadTo(withKey(conf, "version", value))
			waitData(t, ns, "a", "version", value)
		}
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// TestRequestedReconcileRepeatsTheProbe: the probe is sent again, although the object has not changed.
func TestRequestedReconcileRepeatsTheProbe(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		_, counter := startCounted(t, requested(ns, "verdict", "    # downstream", "    drift: {policy: Report}"))
		applyReady(t, ns, "w", "{data: {a: b}}")
		probes := func() int {
			return len(counter.Requests(func(r testkit.Request) bool { return r.DryRun }))
		}
		testkit.Patch(t, configMaps, ns, "w", "rival", `{"data": {"a": "x"}}`)
		testkit.Eventually(t, patience, func() (bool, string) { return probes() == 1, "nothing was asked" })
		settle(t, counter)
		testkit.Patch(t, configMaps, ns, "w", "somebody", `{"metadata":{"annotations":{"theirs":"x"}}}`)
		atMostRequests(t, counter, 0, "what others change of an object that has drifted")
		ask(t, ns, "w", "verdict", "1")
		testkit.Eventually(t, patience, func() (bool, string) { return probes() == 1, "nothing was asked again" })
	})
}
