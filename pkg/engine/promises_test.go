package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
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
		everySecond := func(op *config.Operator, _ *engine.Options) { op.ResyncPeriod = config.Duration(time.Second) }
		startWith(t, counter.Wrap(testkit.Config(t)), everySecond, fill(widgetConfig, ns, name)).ready()
		applyMany(t, ns, 20, `{data: {key: a}}`)
		settle(t, counter)
		looks := metric(t, "corollary_reconcile_seconds", name)
		testkit.Eventually(t, patience, func() (bool, string) {
			n := metric(t, "corollary_reconcile_seconds", name) - looks
			return n >= 60, fmt.Sprintf("%.0f looks since", n)
		})
		atMostRequests(t, counter, 0, "a resync")
	})
}
