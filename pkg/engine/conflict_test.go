package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// patient never retries within a test: what happens follows from an event.
func patient(conf string) string {
	return strings.Replace(conf, "retry: {minDelay: 1s, maxDelay: 10s}", "retry: {minDelay: 1h, maxDelay: 2h}", 1)
}

// waitTaken waits until one upstream has the object of that name and the others say that it is whose. It returns the
// winner.
func waitTaken(t *testing.T, ns, object string, upstreams ...string) (owner string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		var said []string
		owner = ""
		for _, up := range upstreams {
			status, reason, message := condition(testkit.Get(t, widgets, ns, up), "Ready")
			if said = append(said, up+": "+reason+": "+message); status == "True" {
				owner = up
			}
		}
		for _, up := range upstreams {
			_, reason, message := condition(testkit.Get(t, widgets, ns, up), "Ready")
			if owner == "" || up != owner && (reason != "Conflict" || !strings.Contains(message, object+" exists and belongs to Widget "+ns+"/"+owner)) {
				return false, strings.Join(said, "\n")
			}
		}
		return true, ""
	})
	return owner
}

// The name of an object goes to one that waits for it when it becomes free, and the others say at once whose it is now:
// the events of the object wake them, no retry. At rest that costs nothing.
func TestConflictFollowsTheOwner(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startCounted(t, patient(fill(widgetConfig, ns, name)))
		var left []string
		for i := range 6 {
			left = append(left, fmt.Sprintf("w%d", i))
			testkit.Apply(t, ns, widget(left[i], "{name: one, data: {key: "+left[i]+"}}"))
		}
		for len(left) > 2 {
			owner := waitTaken(t, ns, "one", left...)
			waitData(t, ns, "one", "key", owner)
			quiet(t, counter)
			testkit.Delete(t, widgets, ns, owner)
			left = slices.DeleteFunc(left, func(up string) bool { return up == owner })
		}
		owner := waitTaken(t, ns, "one", left...)
		testkit.Apply(t, ns, widget(owner, "{name: two, data: {key: moved}}")) // its owner gives the name up
		other := left[0]
		if other == owner {
			other = left[1]
		}
		waitData(t, ns, "one", "key", other)
		waitCondition(t, widgets, ns, other, "Ready", "True")
		quiet(t, counter)

		testkit.Apply(t, ns, widget(owner, "{name: one, data: {key: again}}"))
		waitTaken(t, ns, "one", left...)
		testkit.Delete(t, configMaps, ns, "one") // by someone else: whoever is first
		waitTaken(t, ns, "one", left...)
		quiet(t, counter)
	})
}

// TestOperatorsShareARecord: two processes with contradicting selectors record their objects at the same place of one
// status. What the other one has recorded is not one's own when an upstream changes sides: it is neither deleted nor
// written to.
func TestOperatorsShareARecord(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, policy string
		both                 bool
	}{
		{"orphan", "only the other operator's annotation marks it", "Orphan", false},
		{"delete", "it has an owner reference to the upstream, as one's own would", "Delete", false},
		{"orphan, both run", "the other one releases it meanwhile, and leaves alone what the new one creates", "Orphan", true},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			of := func(tier, policy string) string {
				conf := watched(fill(widgetConfig, ns, name+"-"+tier), "labelSelector: {matchLabels: {tier: "+tier+"}}")
				return with(replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}", `"{{ .metadata.name }}-`+tier+`"`), "deletionPolicy: "+policy)
			}
			gold, silver := of("gold", row.policy), of("silver", "Delete")
			r := start(t, testkit.Config(t), gold).ready()
			if row.both {
				start(t, testkit.Config(t), silver).ready()
			}
			testkit.Apply(t, ns, "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: a, labels: {tier: gold}}, spec: {data: {key: value}}}")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			theirs := waitData(t, ns, "a-gold", "key", "value")
			if !row.both {
				r.halt()
			}
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"tier":"silver"}}}`)
			if !row.both {
				start(t, testkit.Config(t), silver).ready()
			}
			waitData(t, ns, "a-silver", "key", "value")
			never(t, func() (bool, string) {
				cm, own := testkit.Find(t, configMaps, ns, "a-gold"), testkit.Get(t, configMaps, ns, "a-silver")
				switch {
				case cm == nil || cm.GetUID() != theirs.GetUID():
					return true, "the other operator's object is gone"
				case !row.both && cm.GetResourceVersion() != theirs.GetResourceVersion():
					return true, fmt.Sprintf("it was written to: %v", cm.Object)
				}
				return len(own.GetOwnerReferences()) != 1, fmt.Sprintf("the new object has lost its marks: %v", own.Object)
			})
		}))
	}
}

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
