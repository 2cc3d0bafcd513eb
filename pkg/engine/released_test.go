package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// releasedConfig is widgetConfig with owner annotations alone, so that nothing but the finalizer cleans up, and with a
// Widget's spec.anything as what may be wrong with it.
func releasedConfig(t *testing.T, ns, name string) string {
	t.Helper()
	conf := replaceOnce(t, fill(widgetConfig, ns, name), "owner: {", "owner: {reference: false, ")
	conf = replaceOnce(t, conf, "data: {{ .spec.data }}",
		`data: {a: "{{ if eq .spec.anything.is "boom" }}{{ fail "boom" }}{{ end }}", b: "{{ if eq .spec.anything.is "waits" }}{{ (input "one").data.a }}{{ end }}"}`)
	return conf + `validate: [{rule: "self.spec.anything.is != 'bad'", message: it is bad}]
inputs: [{name: one, apiVersion: v1, kind: ConfigMap, fixedName: one, missing: Allow}]
`
}

// What only the finalizer cleans up holds its upstream, whatever else is wrong with that, also after "corollary
// release" has removed the finalizer, or before a config has asked for one.
func TestFinalizerIsAddedWhateverIsWrong(t *testing.T) {
	t.Parallel()
	guarded := strings.NewReplacer("    # downstream\n", "    when: 'false'\n")
	for _, row := range []struct {
		reason, anything, annotation string
		change                       func(conf string) string
		unlabeled                    bool // the object
	}{
		{"invalid", "bad", "null", nil, false},
		{"not rendered", "boom", "null", nil, false},
		{"an input is missing", "waits", "null", nil, false},
		{"paused", "fine", `"true"`, nil, false},
		{"paused and not rendered", "boom", `"true"`, nil, false},
		{"invalid, without a record", "bad", "null", func(conf string) string {
			return strings.Replace(conf, "\n  downstreams: .status.downstreams", "", 1)
		}, false},
		{"not rendered, without a record", "boom", "null", func(conf string) string {
			return strings.Replace(conf, "\n  downstreams: .status.downstreams", "", 1)
		}, false},
		{"guard holds it", "fine", "null", guarded.Replace, false},
		{"guard holds it, and it is invalid", "bad", "null", guarded.Replace, false},
		{"the config has errors", "fine", "null", func(conf string) string {
			return strings.Replace(conf, "rule: \"self", "rule: \"self.(", 1)
		}, false},
		{"the config keeps the deletion", "bad", "null", func(conf string) string {
			return strings.Replace(conf, "owner: {reference: false, ", "owner: {", 1) + "deletion: {wait: true}\n"
		}, false},
		{"paused, and no watch shows the object", "fine", `"true"`, nil, true},
		{"invalid, and no watch shows the object", "bad", "null", nil, true},
		{"whether it is selected is not known", "fine", "null", func(conf string) string {
			return watched(conf, `matchConditions: [{name: a, expression: "self.spec.anything.other == 'a' || self.spec.anything.is != 'fine'"}]`)
		}, false},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := releasedConfig(t, ns, name)
			r := start(t, testkit.Config(t), conf).ready()
			eachGuarded(func(up string) { testkit.Apply(t, ns, widget(up, `{data: {}, anything: {is: fine}}`)) })
			eachGuarded(func(up string) { waitCondition(t, widgets, ns, up, "Ready", "True") })
			testkit.Patch(t, widgets, ns, "w-000", "somebody", `{"spec":{"anything":{"is":"`+row.anything+
				`"}},"metadata":{"annotations":{"`+name+`.example.com/paused":`+row.annotation+`}}}`)
			r.halt()
			eachGuarded(func(up string) {
				testkit.Patch(t, widgets, ns, up, "somebody", `{"metadata":{"finalizers":null}}`)
			})
			if row.unlabeled {
				testkit.Patch(t, configMaps, ns, "w-000", "somebody", `{"metadata":{"labels":null}}`)
			}
			if row.change != nil {
				conf = row.change(conf)
			}
			startBroken(t, conf)
			waitThat(t, widgets, ns, "w-000", func(u *obj) bool { return len(u.GetFinalizers()) == 1 })
			testkit.Delete(t, widgets, ns, "w-000")
			waitGone(t, widgets, ns, "w-000")
			waitGone(t, configMaps, ns, "w-000")
		}))
	}
}

// The finalizer stays while an object has the owner annotation alone and waits for its turn to get the owner reference.
func TestFinalizerStaysUntilReferenced(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(ordered(ns, name), waiting, "", 1)
		testkit.Apply(t, ns, widget("w", `{data: {a: one}}`))
		r := start(t, testkit.Config(t), replaceOnce(t, conf, "owner: {", "owner: {reference: false, ")).ready()
		markUp(t, ns, "w-database", "one")
		waitData(t, ns, "w-page", "a", "one")
		waitCondition(t, widgets, ns, "w", "Ready", "True")
		r.halt()
		markUp(t, ns, "w-database", "zero")
		start(t, testkit.Config(t), conf).ready()
		eventuallyCondition(t, ns, "w", "False", "", "app: "+databaseStarts)
		never(t, func() (bool, string) {
			return len(testkit.Get(t, widgets, ns, "w").GetFinalizers()) == 0, "nothing holds w, of which app has no owner reference"
		})
		markUp(t, ns, "w-database", "one")
		waitThat(t, widgets, ns, "w", func(u *obj) bool { return len(u.GetFinalizers()) == 0 })
	})
}
