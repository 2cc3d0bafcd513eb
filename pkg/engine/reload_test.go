package engine_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// write gives one of the config files a new text; an empty one removes it. reload is what the command does then.
func (r *running) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	err := os.Remove(path)
	if text != "" {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
}

func (r *running) reload() {
	files, errs := load.Operators(load.Options{Files: []string{r.dir}})
	r.Reload(r.t.Context(), files, errs)
}

// rewrite gives one of the config files a new text, and reloads.
func (r *running) rewrite(name, text string) {
	r.t.Helper()
	r.write(name, text)
	r.reload()
}

// mustSay fails if what Reloaded says lacks one of these texts, or if it says something and there are none.
func (r *running) mustSay(texts ...string) {
	r.t.Helper()
	have := text(r.Reloaded(nil))
	for _, want := range texts {
		if !strings.Contains(have, want) {
			r.t.Errorf("it says %q, want %q", have, want)
		}
	}
	if (have == "") != (len(texts) == 0) {
		r.t.Errorf("it says %q", have)
	}
}

// waitSays waits until Reloaded says all of these texts.
func (r *running) waitSays(texts ...string) { r.t.Helper(); r.waitError(r.Reloaded, texts) }

// waitUnready waits until Ready says all of these texts.
func (r *running) waitUnready(texts ...string) { r.t.Helper(); r.waitError(r.Ready, texts) }

func (r *running) waitError(check func(*http.Request) error, texts []string) {
	r.t.Helper()
	testkit.Eventually(r.t, patience, func() (bool, string) {
		have := text(check(nil))
		return !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(have, want) }), "it says " + have
	})
}

// changeTo gives the only config file a new text, and waits until that is at work.
func (r *running) changeTo(operator, changed string) {
	r.t.Helper()
	applied := func() float64 { return metric(r.t, "corollary_config_reloads_total", operator, "result", "Applied") }
	before := applied()
	r.reloadTo(changed)
	testkit.Eventually(r.t, patience, func() (bool, string) {
		return applied() > before, "the change is not at work: " + text(r.Reloaded(nil))
	})
}

// never watches for a second that something does not happen.
func never(t *testing.T, bad func() (bool, string)) {
	t.Helper()
	began := time.Now()
	testkit.Eventually(t, patience, func() (bool, string) {
		if happened, what := bad(); happened {
			t.Fatal(what)
		}
		return time.Since(began) > time.Second, "watching"
	})
}

// waitState waits until the metric shows that an operator is in that state, and in no other.
func waitState(t *testing.T, name, reason string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		all := metric(t, "corollary_operator_state", name)
		return all == 1 && metric(t, "corollary_operator_state", name, "reason", reason) == 1, "the operator is not " + reason
	})
}

// withKey is a config whose ConfigMaps have one more key.
func withKey(text, key, value string) string {
	return strings.Replace(text, "data: {{ .spec.data }}", "data: {"+key+": \""+value+"\"}", 1)
}

// A changed config takes over: what exists follows, nothing that both versions watch is listed again, and the other
// operator is not touched at all.
func TestReloadChangesOneOperator(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name, other := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
		r, counter := startCounted(t, fill(widgetConfig, ns, name), gadgetsOf(ns, other))
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		testkit.Apply(t, ns, object("Gadget", "g", `{data: {key: value}}`))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitCondition(t, gadgets, ns, "g", "Ready", "True")
		counter.Reset()

		r.reload() // nothing has changed
		never(t, func() (bool, string) {
			return counter.Total() > 0 || listed(counter) > 0, fmt.Sprint(counter.Snapshot())
		})

		r.reloadTo(withKey(fill(widgetConfig, ns, name), "version", "two"))
		waitData(t, ns, "a", "version", "two")
		waitState(t, name, "Running")
		r.ready()
		if n := listed(counter); n > 0 {
			t.Errorf("%d lists and watches for kinds that were watched already: %v", n, counter.Snapshot())
		}
		metricIs(t, 1, "corollary_renders_total", other)
		r.mustSay()
		metricIs(t, 1, "corollary_config_reloads_total", name, "result", "Applied")
		testkit.Apply(t, ns, widget("b", `{}`))
		waitData(t, ns, "b", "version", "two")
	})
}

// listed counts lists and watches.
func listed(c *testkit.Counter) int {
	n := 0
	for what, times := range c.Snapshot() {
		if strings.HasPrefix(what, "LIST ") || strings.HasPrefix(what, "WATCH ") {
			n += times
		}
	}
	return n
}

// A bad config changes nothing: the last good one stays active, with new upstreams too, and says why until it is fixed.
func TestReloadRefusesABadConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, from, to, says string }{
		{"no YAML at all", "downstreams:", "downstreams: [", ""},
		{"an unknown key", "watch:", "watcch:", "watcch"},
		{"a kind that only the API server knows to be unknown", "kind: Widget", "kind: Wodget", "KindMissing"},
		{"a type that only the API server's schema shows", "downstreams:", "validate:\n  - rule: self.spec.data == 3\ndownstreams:", "ConfigRefused"},
	} {
		t.Run(test.reason, spaced(func(t *testing.T, ns, name string) {
			good := strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: All", 1)
			r := start(t, testkit.Config(t), good).ready()
			r.reloadTo(strings.Replace(good, test.from, test.to, 1))
			waitState(t, name, "ReloadFailed")
			r.mustBeReady()
			r.mustSay(test.says)
			metricIs(t, 1, "corollary_config_reload_failed", name)
			waitEvent(t, "default", name, "ReloadFailed", test.says)
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitData(t, ns, "a", "key", "value")

			r.reload() // what is still bad is reported once
			metricIs(t, 1, "corollary_config_reloads_total", name, "result", "Failed")
			r.reloadTo(withKey(good, "version", "two"))
			waitData(t, ns, "a", "version", "two")
			waitState(t, name, "Running")
			waitEvent(t, "default", name, "Reloaded", "")
			r.mustSay()
			metricIs(t, 0, "corollary_config_reload_failed", name)
		}))
	}
}

// A file that comes begins an operator; one that goes ends its operator and deletes nothing.
func TestReloadOfADirectory(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		second := testkit.Unique(t)
		r := start(t, testkit.Config(t), fill(widgetConfig, ns, name)).ready()
		r.rewrite("b.yaml", gadgetsOf(ns, second))
		testkit.Apply(t, ns, object("Gadget", "g", `{data: {key: value}}`))
		waitCondition(t, gadgets, ns, "g", "Ready", "True")

		r.write("moved.yaml", gadgetsOf(ns, second)) // the same operator in another file
		r.rewrite("b.yaml", "")
		metricIs(t, 1, "corollary_config_reloads_total", second)
		r.rewrite("moved.yaml", "")
		for _, name := range []string{"corollary_operator_state", "corollary_objects", "corollary_config_reloads_total"} {
			metricIs(t, 0, name, second)
		}
		testkit.Patch(t, configMaps, ns, "g", "somebody", `{"data":{"key":"changed"}}`)
		never(t, func() (bool, string) {
			cm := testkit.Find(t, configMaps, ns, "g")
			return cm == nil || !strings.Contains(fmt.Sprint(cm.Object["data"]), "changed"), "the operator that is gone still works"
		})
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitData(t, ns, "a", "key", "value")
	})
}
