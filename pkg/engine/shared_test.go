package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// sharing is a config of which two processes run, each with a change of its own.
type sharing struct {
	name, reason string
	base         string
	first, other []string
}

// shares are the ways in which two processes share field manager and labels.
var shares = []sharing{
	{name: "labels", reason: "each selects other upstreams by their labels", base: widgetConfig,
		first: []string{"namespaces: [NS]", "namespaces: [NS], labelSelector: {matchLabels: {team: a}}"},
		other: []string{"namespaces: [NS]", "namespaces: [NS], labelSelector: {matchLabels: {team: b}}"}},
	{name: "labels-without-status", reason: "the same where nothing is written to the status", base: statusOff(widgetConfig),
		first: []string{"namespaces: [NS]", "namespaces: [NS], labelSelector: {matchLabels: {team: a}}"},
		other: []string{"namespaces: [NS]", "namespaces: [NS], labelSelector: {matchLabels: {team: b}}"}},
	{name: "namespace-labels", reason: "each selects other namespaces by their labels", base: widgetConfig,
		first: []string{"namespaces: [NS]", "namespaces: [NS, OTHER], namespaceSelector: {matchLabels: {NAME.example.com/team: a}}"},
		other: []string{"namespaces: [NS]", "namespaces: [NS, OTHER], namespaceSelector: {matchLabels: {NAME.example.com/team: b}}"}},
	{name: "namespaces", reason: "each watches other namespaces, and both make objects anywhere", base: strings.Replace(widgetConfig, "    # downstream", "    targetNamespaces: {from: List, names: [NS, OTHER]}", 1),
		other: []string{"namespaces: [NS]", "namespaces: [OTHER]"},
		first: []string{"name: {{ .spec.name | default .metadata.name }}", "name: {{ .metadata.name }}\n        namespace: OTHER"}},
	{name: "kinds", reason: "each watches another kind", base: widgetConfig,
		other: []string{"kind: Widget, namespaces: [NS]", "kind: Gadget, namespaces: [NS]"}},
}

func (s sharing) config(ns, other, name string, change []string) string {
	text := strings.NewReplacer(change...).Replace(s.base)
	return fill(strings.ReplaceAll(text, "OTHER", other), ns, name)
}

// Two processes with the same field manager and labels delete nothing of each other, and name the cause.
func TestSharedConventions(t *testing.T) {
	t.Parallel()
	for _, s := range shares {
		t.Run(s.name, spacedTwice(func(t *testing.T, ns, other, name string) {
			testkit.Patch(t, namespaces, "", ns, "test", `{"metadata":{"labels":{"`+name+`.example.com/team":"a"}}}`)
			testkit.Patch(t, namespaces, "", other, "test", `{"metadata":{"labels":{"`+name+`.example.com/team":"b"}}}`)
			at, place, kind := ns, ns, "Widget"
			switch s.name {
			case "namespaces":
				at, place = other, other
			case "namespace-labels":
				place = other
			case "kinds":
				kind = "Gadget"
			}
			start(t, testkit.Config(t), s.config(ns, other, name, s.first)).ready()
			testkit.Apply(t, ns, labeled(widget("first", `{data: {key: value}}`), "a"))
			first := waitData(t, at, "first", "key", "value")

			second := strings.Replace(s.config(ns, other, name, s.other), "metadata: {name: "+name+"}", "metadata: {name: "+name+"-2}", 1)
			start(t, testkit.Config(t), second).ready()
			testkit.Apply(t, place, labeled(object(kind, "second", `{data: {key: value}}`), "b"))
			others := waitData(t, place, "second", "key", "value")
			waitMetric(t, 1, "corollary_shared_upstreams", name+"-2")
			mustBeSame(t, configMaps, first, s.reason)
			mustBeSame(t, configMaps, others, s.reason)

			testkit.Delete(t, widgets, ns, "first") // then nothing is shared any more
			waitMetric(t, 0, "corollary_shared_upstreams", name+"-2")
		}))
	}
}

func labeled(text, team string) string {
	return strings.Replace(text, "metadata: {name: ", "metadata: {labels: {team: "+team+"}, name: ", 1)
}
