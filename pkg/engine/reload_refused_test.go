package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// badConfigs are ways in which a config can be wrong, some of which only the API server knows of.
var badConfigs = []struct{ reason, from, to, says string }{
	{"an unknown key", "events: None", "evints: None", "evints"},
	{"a template that does not parse", "data: {{ .spec.data }}", "data: {{ .spec.data", "downstreams[0].template"},
	{"a field that the schema lacks", "data: {{ .spec.data }}", "data: {{ .spec.dta }}", "the schema has no .spec.dta: did you mean data?"},
	{"a type that only the API server's schema shows", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", "validate[0].rule"},
}

// gadgetsOf is a config for the other kind.
func gadgetsOf(ns, name string) string {
	return strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Gadget", 1)
}

// TestReloadOfABadNewFile: a process that is ready stays so, whatever is wrong with a file that is added. What is wrong is told of
// until it is fixed.
func TestReloadOfABadNewFile(t *testing.T) {
	t.Parallel()
	for _, test := range append(badConfigs, struct{ reason, from, to, says string }{"no YAML at all", "downstreams:\n", "downstreams: [\n", "b.yaml"}) {
		t.Run(test.reason, bubbled(func(t *testing.T) {
			ns, name, second := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
			r := start(t, testkit.Config(t), fill(widgetConfig, ns, name)).ready()
			good := gadgetsOf(ns, second)
			r.rewrite("b.yaml", replaceOnce(t, good, test.from, test.to))
			testkit.Eventually(t, patience, func() (bool, string) {
				r.mustBeReady()
				err := text(r.Reloaded(nil))
				return strings.Contains(err, test.says), err
			})
			metricIs(t, 0, "corollary_config_reloads_total", second, "result", "Applied")
			r.rewrite("b.yaml", good)
			waitState(t, second, "Running")
			r.mustSay()
			metricIs(t, 0, "corollary_config_reload_failed", second)
			metricIs(t, 1, "corollary_config_reloads_total", second, "result", "Applied")
		}))
	}
}

// TestReloadRenamesWithErrors: an operator works on as long as the config that is to take its place cannot be put to work, though
// that has another name.
func TestReloadRenamesWithErrors(t *testing.T) {
	t.Parallel()
	for _, test := range append(badConfigs,
		struct{ reason, from, to, says string }{"a kind that is not served", "kind: Widget", "kind: Wodget", "Wodget"},
		struct{ reason, from, to, says string }{"it drops the finalizer in use", "finalizer: NAME.example.com/cleanup", "finalizer: NAME.example.com/renamed", "upstreams still have"},
	) {
		for _, file := range []string{"a.yaml", "b.yaml"} {
			t.Run(test.reason+" in "+file, bubbled(func(t *testing.T) {
				ns, other, name, renamed := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
				conf := elsewhere(fill(widgetConfig, ns, name), other, ns)
				r := start(t, testkit.Config(t), conf).ready()
				applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
				before := testkit.Get(t, configMaps, other, "a")

				good := replaceOnce(t, conf, "name: "+name+"}", "name: "+renamed+"}")
				r.write("a.yaml", "")
				r.rewrite(file, replaceOnce(t, good, strings.ReplaceAll(test.from, "NAME", name), strings.ReplaceAll(test.to, "NAME", name)))
				waitState(t, name, "ReloadFailed")
				if err := r.Reloaded(nil); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "choose another") {
					t.Errorf("it says %v", err)
				}
				r.mustBeReady()
				metricIs(t, 0, "corollary_operator_state", renamed)
				testkit.Apply(t, ns, widget("b", `{namespace: `+other+`, data: {key: value}}`))
				waitData(t, other, "b", "key", "value")

				r.rewrite(file, good)
				waitState(t, renamed, "Running")
				r.mustSay()
				metricIs(t, 0, "corollary_operator_state", name)
				testkit.Patch(t, configMaps, other, "a", "somebody", `{"data":{"key":"changed"}}`)
				waitData(t, other, "a", "key", "value")
				mustBeSame(t, configMaps, before, "the downstream is not made anew")
			}))
		}
	}
}

// TestReloadChecksAgainstWhatRuns: what a file says counts once its operator works by it. Until then nothing else may claim the
// names that it works by.
func TestReloadChecksAgainstWhatRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, from, to string
		runs             bool // whether the operator that claims the names runs already
	}{
		{"the change does not fit the schema, and a new file claims its field manager", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", false},
		{"the change waits for a kind, and a new file claims its field manager", "kind: Widget", "kind: Wodget", false},
		{"the change does not fit the schema, and another operator claims its field manager", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", true},
		{"the file is broken, and a new one claims its field manager", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\n", "not: an operator\n", false},
	} {
		t.Run(test.reason, bubbled(func(t *testing.T) {
			ns, name, second := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
			conf, before := fill(widgetConfig, ns, name), gadgetsOf(ns, second)
			texts := []string{conf}
			if test.runs {
				texts = append(texts, before)
			}
			r := start(t, testkit.Config(t), texts...).ready()

			moved := replaceOnce(t, conf, "fieldManager: "+name, "fieldManager: "+name+"-new")
			claims := replaceOnce(t, before, "fieldManager: "+second, "fieldManager: "+name)
			r.write("a.yaml", replaceOnce(t, moved, test.from, test.to))
			r.rewrite("b.yaml", claims)
			waitState(t, name, "ReloadFailed")
			r.waitSays("b.yaml:", "field manager")
			testkit.Apply(t, ns, object("Gadget", "g", `{data: {key: value}}`))
			if test.runs {
				waitState(t, second, "ReloadFailed")
				if by := waitData(t, ns, "g", "key", "value").GetManagedFields(); by[0].Manager != second {
					t.Errorf("it was written by %s", by[0].Manager)
				}
			} else {
				metricIs(t, 0, "corollary_operator_state", second)
			}
			testkit.Delete(t, gadgets, ns, "g")
			waitGone(t, configMaps, ns, "g")

			r.write("a.yaml", moved)
			testkit.Eventually(t, patience, func() (bool, string) {
				r.reload() // again, as the command does
				err := r.Reloaded(nil)
				return err == nil, text(err)
			})
			waitState(t, second, "Running")
		}))
	}
}
