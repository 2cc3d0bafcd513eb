package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// An edit of the config deletes nothing, whatever was selected, lost its label, or was said of it before: by any of the
// selectors, what a wider config has made again is left over when the config is narrowed again, at a reload and at a
// start.
func TestNarrowedAgain(t *testing.T) {
	t.Parallel()
	for kind, selection := range map[string]string{
		"label":     `labelSelector: {matchLabels: {served: "yes"}}`,
		"namespace": `namespaceSelector: {matchLabels: {served: "yes"}}`,
		"condition": `matchConditions: [{name: served, expression: "self.metadata.?labels.served.orValue('no') == 'yes'"}]`,
	} {
		for _, between := range []string{"is wider", "asks for the new value", "does not write the status"} {
			for _, how := range []string{"reload", "start"} {
				t.Run(kind+"/"+between+"/"+how, spaced(func(t *testing.T, ns, name string) {
					conf := fill(widgetConfig, ns, name) + "guard: {maxDeleted: 100%}\n"
					narrow := watched(conf, selection)
					serve := func(value string) {
						labels := `{"metadata":{"labels":{"served":` + value + `}}}`
						if kind == "namespace" {
							testkit.Patch(t, namespaces, "", ns, "somebody", labels)
							return
						}
						testkit.Patch(t, widgets, ns, "a", "somebody", labels)
					}
					testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
					serve(`"yes"`)
					r := start(t, testkit.Config(t), narrow).ready()
					waitCondition(t, widgets, ns, "a", "Ready", "True")
					<-time.After(time.Minute)
					serve(`"no"`)
					waitGone(t, configMaps, ns, "a")
					<-time.After(time.Minute)
					switch between {
					case "is wider":
						r = r.become(how, conf)
					case "asks for the new value":
						r = r.become(how, watched(conf, strings.NewReplacer(`"yes"`, `"no"`, "'yes'", "'no'").Replace(selection)))
					default:
						r = r.become(how, replaceOnce(t, conf, "status:\n", "status:\n  enabled: false\n"))
					}
					waitData(t, ns, "a", "key", "value")
					<-time.After(time.Minute)
					r.become(how, narrow)
					<-time.After(10 * time.Minute)
					mustExist(t, configMaps, ns, "a", "only the config has changed")
					waitCondition(t, widgets, ns, "a", "Ready", "Unknown")
				}))
			}
		}
	}
}

// What one operator does not select by its namespace is another one's, which is in another process: nothing of it is
// said to be left over.
func TestOthersAreNotLeftOver(t *testing.T) {
	inSpaces(t, func(t *testing.T, one, two, name string) {
		conf := func(ns, name, selector string) string {
			return strings.Replace(fill(widgetConfig, ns, name), "namespaces: ["+ns+"]", "namespaceSelector: {matchLabels: {"+selector+"}}", 1)
		}
		for _, ns := range []string{one, two} {
			testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"of":"`+ns+`","all":"yes"}}}`)
		}
		testkit.Apply(t, one, widget("a", "{data: {key: value}}"))
		first := start(t, testkit.Config(t), conf(one, name, "of: "+one)).ready()
		waitCondition(t, widgets, one, "a", "Ready", "True")
		<-time.After(time.Minute)
		was := fmt.Sprint(testkit.Get(t, widgets, one, "a").Object["status"])
		first.halt()
		other := strings.ReplaceAll(conf(two, name+"-two", "of: "+two), "name: config", "name: other")
		second := start(t, testkit.Config(t), other).ready()
		<-time.After(time.Minute)
		second.reloadTo(strings.Replace(other, "of: "+two, "of: "+two+", all: \"yes\"", 1))
		<-time.After(10 * time.Minute)
		if is := fmt.Sprint(testkit.Get(t, widgets, one, "a").Object["status"]); is != was {
			t.Errorf("the status of the other operator's upstream was\n%s\nand is\n%s", was, is)
		}
	})
}

// servedOnly selects by a label of the upstream, or of its namespace.
var servedOnly = map[string]string{
	"label":     `labelSelector: {matchLabels: {served: "yes"}}`,
	"namespace": `namespaceSelector: {matchLabels: {served: "yes"}}`,
}

// serve gives the upstream a and its namespace that label.
func serve(t *testing.T, ns, value string) {
	t.Helper()
	labels := `{"metadata":{"labels":{"served":"` + value + `"}}}`
	testkit.Patch(t, namespaces, "", ns, "somebody", labels)
	testkit.Patch(t, widgets, ns, "a", "somebody", labels)
}

// What a standby has seen of a namespace under another config deletes nothing once it leads.
func TestNarrowedAgainWhileStandingBy(t *testing.T) {
	for kind, selection := range servedOnly {
		t.Run(kind, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name) + "guard: {maxDeleted: 100%}\n"
			narrow := watched(conf, selection)
			testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
			serve(t, ns, "yes")
			leader := start(t, testkit.Config(t), narrow).ready()
			elected := make(chan struct{})
			standby := startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) {
				o.Elected, o.HadOtherLeader = elected, func() bool { return true }
			}, narrow).ready()
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			<-time.After(time.Minute)
			serve(t, ns, "no")
			waitGone(t, configMaps, ns, "a")
			for _, conf := range []string{conf, narrow} {
				<-time.After(time.Minute)
				leader.reloadTo(conf)
				standby.reloadTo(conf)
				<-time.After(time.Minute)
				mustExist(t, configMaps, ns, "a", "it was selected, and only the config has changed since")
			}
			leader.halt()
			close(elected)
			<-time.After(10 * time.Minute)
			mustExist(t, configMaps, ns, "a", "only the config has changed")
		}))
	}
}

// A standby that loads each config later than the leader sees upstreams leave which the leader selects by a newer one.
func TestStandbyLagsBehindConfigs(t *testing.T) {
	for order, reloads := range map[string][]string{"each": {"b", "c"}, "the last": {"c"}} {
		t.Run(order, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name) + "guard: {maxDeleted: 100%}\n"
			selecting := func(value string) string { return watched(conf, "labelSelector: {matchLabels: {served: "+value+"}}") }
			label := func(value string) {
				testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":"`+value+`"}}}`)
			}
			testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
			label("a")
			leader := start(t, testkit.Config(t), selecting("a")).ready()
			elected := make(chan struct{})
			standby := startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) {
				o.Elected, o.HadOtherLeader = elected, func() bool { return true }
			}, selecting("a")).ready()
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			leader.reloadTo(selecting("b"))
			<-time.After(time.Minute)
			label("b")
			<-time.After(time.Minute)
			for _, value := range reloads {
				standby.reloadTo(selecting(value))
				<-time.After(time.Minute)
			}
			leader.halt() // before it has loaded the last one
			close(elected)
			<-time.After(10 * time.Minute)
			mustExist(t, configMaps, ns, "a", "each config that it was selected by has been changed since")
		}))
	}
}

// A removal that a process has not finished goes on after a restart, also if the upstream was never ready.
func TestRemovalOfTheUnselectedGoesOn(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		head, tail := around(t, fill(watched(widgetConfig, `labelSelector: {matchLabels: {served: "yes"}}`), ns, name))
		one := func(name, kind, lines string) string {
			return "\n  - {name: " + name + ", apiVersion: v1, kind: " + kind + ", " + lines + "template: \"metadata: {name: '{{ .metadata.name }}-" + name + "'}\"}"
		}
		conf := head + one("one", "Secret", "when: has(self.spec.data), ") + one("two", "Secret", "when: has(self.spec.data), after: [{name: one, until: Created}], ") +
			one("three", "ConfigMap", "ready: {rules: [{rule: \"self.metadata.name == ''\", message: never}]}, ") + "\n" + tail
		r := start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, strings.Replace(widget("a", "{}"), "{name: a}", `{name: a, labels: {served: "yes"}}`, 1))
		<-time.After(time.Minute)
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"k":"v"}}}`)
		<-time.After(time.Minute)
		testkit.Patch(t, secretKind, ns, "a-two", "somebody", `{"metadata":{"finalizers":["example.com/held"]}}`)
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":null}}}`)
		<-time.After(time.Minute)
		mustExist(t, secretKind, ns, "a-one", "what comes after it is held")
		r.halt()
		start(t, testkit.Config(t), conf).ready()
		<-time.After(time.Minute)
		testkit.Patch(t, secretKind, ns, "a-two", "somebody", `{"metadata":{"finalizers":null}}`)
		waitGone(t, secretKind, ns, "a-one")
	})
}

// TestSelectorChangesWithItsLabel: of two configs in one reload, one gives upstreams of the other another label, which the
// other one selects by then. Whichever is active first, nothing that was made for them is deleted; nor if the other one
// cannot be active for a while. If the reload is taken back, what is not selected goes.
func TestSelectorChangesWithItsLabel(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"upstream", "namespace", "spec"} {
		for _, then := range []string{"late", "taken back", "guard waits"} {
			t.Run(by+", "+then, spaced(func(t *testing.T, ns, name string) {
				maker := replaceOnce(t, gadgetsOf(ns, name+"-maker"), "apiVersion: v1\n    kind: ConfigMap", "apiVersion: test.example.com/v1\n    kind: Widget\n    ready: {observedGeneration: Optional}")
				maker = replaceOnce(t, maker, "      data: {{ .spec.data }}", "        labels: {tier: gold}\n      spec: {data: {of: one}}")
				conf := replaceOnce(t, generatedConfig(t, ns, name), "kind: Widget, ", "kind: Widget, labelSelector: {matchLabels: {tier: gold}}, ")
				if by == "namespace" {
					maker = replaceOnce(t, maker, "apiVersion: test.example.com/v1\n    kind: Widget\n    ready", "apiVersion: v1\n    kind: Namespace\n    ownership: Fields\n    targetNamespaces: {from: Any}\n    ready")
					maker = replaceOnce(t, maker, "name: {{ .spec.name | default .metadata.name }}\n        labels", "name: "+ns+"\n        labels")
					maker = replaceOnce(t, maker, "      spec: {data: {of: one}}\n", "")
					conf = replaceOnce(t, conf, "labelSelector", "namespaceSelector")
				}
				if by == "spec" {
					maker = replaceOnce(t, maker, "        labels: {tier: gold}\n      spec: {data: {of: one}}", "      spec: {data: {tier: gold}}")
					conf = replaceOnce(t, conf, ", labelSelector: {matchLabels: {tier: gold}}", "")
					conf = replaceOnce(t, with(conf, "when: self.spec.data.?tier.orValue('') == 'gold' # tier: gold"), "stringData: {{ .spec.data | default (dict) }}", "stringData: {of: one}")
				}
				faults := testkit.NewFaults()
				r := start(t, faults.Wrap(testkit.Config(t)), maker, conf).ready()
				if by == "namespace" {
					testkit.Apply(t, ns, widget("a", "{data: {of: one}}"))
				}
				testkit.Apply(t, ns, object("Gadget", "a", "{}"))
				value := secretText(t, ns, "a", "password", anyText)
				<-time.After(time.Minute)
				late := faults.Answer(503, func(q *http.Request) bool {
					if then == "guard waits" { // since the other config has not changed anything yet
						return q.Method == http.MethodPatch && q.URL.Query().Get("fieldManager") == name+"-maker"
					}
					return strings.Contains(q.URL.RawQuery, "class%3Dgold") || strings.Contains(q.URL.RawQuery, name+".example.com%2Flate")
				})
				changed := replaceOnce(t, strings.NewReplacer("tier: gold", "class: gold", "data.?tier", "data.?class").Replace(conf), `managed: "yes"`, `late: "yes"`)
				r.write("a.yaml", strings.ReplaceAll(maker, "tier: gold", "class: gold"))
				if then == "guard waits" {
					changed += "guard: {minimum: 0, maxDeleted: 0%}\n"
				}
				r.write("b.yaml", changed)
				r.reload()
				<-time.After(time.Minute)
				keepsValue(t, ns, "a", value)
				if then == "taken back" {
					r.write("b.yaml", conf)
					r.reload()
					waitGone(t, secretKind, ns, "a")
					return
				}
				late.Off()
				<-time.After(time.Hour)
				keepsValue(t, ns, "a", value)
				waitCondition(t, widgets, ns, "a", "Ready", "True")
			}))
		}
	}
}
