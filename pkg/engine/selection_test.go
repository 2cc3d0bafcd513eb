package engine_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// watched makes a config select its upstreams by labels of theirs or of their namespace.
func watched(conf, selector string) string {
	return strings.Replace(conf, "kind: Widget, ", "kind: Widget, "+selector+", ", 1)
}

// bySelection runs a test with a label selector, and with a match condition that asks for the same label: both let an upstream go alike.
func bySelection(t *testing.T, test func(t *testing.T, selection string)) {
	for name, selection := range map[string]string{
		"label":     `labelSelector: {matchLabels: {served: "yes"}}`,
		"condition": `matchConditions: [{name: served, expression: "self.metadata.?labels.served.orValue('no') == 'yes'"}]`,
	} {
		t.Run(name, bubbled(func(t *testing.T) { test(t, selection) }))
	}
}

// A new namespace may be heard of later than what was made in it.
func TestNamespaceSelectorLate(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		name := testkit.Unique(t)
		conf := strings.Replace(fill(widgetConfig, "x", name), "namespaces: [x]", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+name+"}}, "+
			"labelSelector: {matchLabels: {of: "+name+"}}", 1) // so that it looks at nobody else's
		_, faults := startFaulty(t, conf)
		deaf := faults.Drop(testkit.On("WATCH", "namespaces"))
		faults.Cut(testkit.On("WATCH", "namespaces"))
		testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
		testkit.Apply(t, name, strings.Replace(widget("a", `{data: {key: value}}`), "{name: a}", "{name: a, labels: {of: "+name+"}}", 1))
		testkit.Eventually(t, patience, func() (bool, string) {
			return metric(t, "corollary_reconcile_seconds", name) > 0, "it was not looked at"
		})
		deaf.Off()
		waitData(t, name, "a", "key", "value")
	})
}

// A label that comes back before its loss is looked at takes nothing away.
func TestLabelLostAndBack(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		conf := watched(fill(widgetConfig, ns, name), selection)
		_, faults := startFaulty(t, conf)
		testkit.Apply(t, ns, strings.Replace(widget("a", `{data: {key: value}}`), "{name: a}", `{name: a, labels: {served: "yes"}}`, 1))
		cm := waitData(t, ns, "a", "key", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		// The read fails until the label is back; the watch does not show it yet.
		unread := faults.Answer(500, testkit.On("GET", "widgets"))
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":null}}}`)
		testkit.Eventually(t, patience, func() (bool, string) { return unread.Hits() > 0, "not read" })
		deaf, unlisted := faults.Drop(testkit.On("WATCH", "widgets")), faults.Drop(testkit.On("LIST", "widgets"))
		faults.Cut(testkit.On("WATCH", "widgets"))
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"served":"yes"}}}`)
		looks := metric(t, "corollary_reconcile_seconds", name)
		unread.Off()
		testkit.Eventually(t, patience, func() (bool, string) {
			return metric(t, "corollary_reconcile_seconds", name) >= looks+1, "not looked at"
		})
		unlisted.Off()
		deaf.Off()
		waitData(t, ns, "a", "key", "value")
		mustBeSame(t, configMaps, cm, "nothing was lost")
	})
}

// A mark that names an upstream outside of the watched namespaces makes nobody look there.
func TestMarkNamesOtherNamespace(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		conf := elsewhere(watched(fill(widgetConfig, ns, name), "labelSelector: {matchLabels: {served: \"yes\"}}"), other, ns)
		// Another process serves the other namespace by the same names.
		victim := testkit.Apply(t, other, "{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: victim, finalizers: ["+name+".example.com/cleanup]}, spec: {data: {key: value}}}")
		_, counter := startCounted(t, conf)
		counter.Reset()
		testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: bait, labels: {`+name+`.example.com/managed: "yes"}, annotations: {
	  `+name+`.example.com/owner: "`+other+`/victim/`+string(victim.GetUID())+`"}}}`)
		testkit.Eventually(t, patience, func() (bool, string) {
			return metric(t, "corollary_reconcile_seconds", name) > 0, "the mark was not followed"
		})
		atMostRequests(t, counter, 0, "a mark that names another namespace")
		if f := testkit.Get(t, widgets, other, "victim").GetFinalizers(); len(f) != 1 {
			t.Errorf("the other one's finalizers are %v", f)
		}
	})
}

// A mark with a name that no upstream can have asks for nothing, and is not tried again and again.
func TestMarkNamesNobody(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, mark, owner string
		requests                  int
	}{
		{"percent", "a name that is not a part of a path", "NS/a%b/uid", "", 0},
		{"dots", "the same", "NS/../uid", "", 0},
		{"long", "only annotations limit its length", "NS/" + strings.Repeat("a", 200_000) + "/uid", "", 1},
		{"cluster", "a kind with namespaces has none without", "/a/uid", "", 0},
		{"namespace", "a namespace that is not a part of a path", "n%s/a/uid", "", 0},
		{"reference", "the name in an owner reference may be any", "", "a%b", 0},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "namespaces: ["+ns+"]", "labelSelector: {matchLabels: {of: "+name+"}}", 1)
			_, counter := startCounted(t, conf)
			counter.Reset()
			annotation, reference := "{}", "[]"
			if row.mark != "" {
				annotation = "{" + name + `.example.com/owner: "` + strings.Replace(row.mark, "NS", ns, 1) + `"}`
			}
			if row.owner != "" {
				reference = `[{apiVersion: test.example.com/v1, kind: Widget, name: "` + row.owner + `", uid: "1"}]`
			}
			testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: bait, labels: {`+name+`.example.com/managed: "yes"}, annotations: `+
				annotation+`, ownerReferences: `+reference+`}}`)
			testkit.Eventually(t, patience, func() (bool, string) {
				return metric(t, "corollary_reconcile_seconds", name) > 0, "the mark was not followed"
			})
			quiet(t, counter)
			if n := counter.Total(); n != row.requests {
				t.Errorf("%s: %d requests: %v", row.reason, n, counter.Snapshot())
			}
			if n := metric(t, "corollary_failures_total", name); n > 0 {
				t.Errorf("%s: %v failures", row.reason, n)
			}
		}))
	}
}
