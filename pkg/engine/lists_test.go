package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// listConfig collects ConfigMaps of the label monitor into one for each Widget: those whose data.team is its spec.name.
var listConfig = strings.NewReplacer("downstreams:\n", `inputs:
  - name: monitors
    apiVersion: v1
    kind: ConfigMap
    list:
      labelSelector: {matchLabels: {monitor: NAME}}
      matching: MATCHING
      maxItems: 400
downstreams:
`, "metadata:\n        name: {{ .spec.name | default .metadata.name }}", `metadata: {name: "{{ .metadata.name }}-all"}`, "data: {{ .spec.data }}", `data:
        urls: "{{ range $i, $m := input "monitors" }}{{ if $i }} {{ end }}{{ $m.metadata.name }}={{ $m.data.url }}{{ end }}"
        count: "{{ len (input "monitors") }}"`, "  downstreams: .status.downstreams\n", `  downstreams: .status.downstreams
  fields:
    - {path: .status.summary, value: "inputs.monitors.map(m, m.metadata.name).join(' ')"}
`).Replace(widgetConfig)

// Whether the match is indexed or evaluated for each Widget makes no difference.
var matchings = map[string]string{
	"indexed":   "object.data.team == self.spec.name",
	"evaluated": `"x" + object.data.team == "x" + self.spec.name`,
}

func listOf(ns, name, matching string) string {
	return fill(strings.ReplaceAll(listConfig, "MATCHING", fmt.Sprintf("%q", matching)), ns, name)
}

// monitor is an object of the list.
func monitor(operator, name, team, url string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {monitor: %s}}\ndata: {team: %q, url: %q, unread: x}\n",
		name, operator, team, url)
}

// A list has the objects that match, sorted by name. It follows those that enter it, leave it or change, and a change
// wakes nobody else.
func TestListInput(t *testing.T) {
	t.Parallel()
	for reason, matching := range matchings {
		t.Run(reason, spacedTwice(func(t *testing.T, ns, other, name string) {
			counter := testkit.NewCounter()
			testkit.Apply(t, ns, monitor(name, "b", "red", "2"))
			testkit.Apply(t, ns, monitor(name, "a", "red", "1"))
			testkit.Apply(t, ns, monitor(name, "c", "blue", "3"))
			testkit.Apply(t, other, monitor(name, "z", "red", "9"))
			testkit.Apply(t, ns, monitor("nobody", "q", "red", "9"))
			for _, team := range []string{"red", "blue", "green"} {
				applyReader(t, ns, team, team)
			}
			start(t, counter.Wrap(testkit.Config(t)), listOf(ns, name, matching)).ready()
			waitData(t, ns, "red-all", "urls", "a=1 b=2")
			waitData(t, ns, "blue-all", "urls", "c=3")
			waitData(t, ns, "green-all", "count", "0") // an empty list is one
			waitCondition(t, widgets, ns, "green", "Ready", "True")
			quiet(t, counter)

			steps := []struct {
				do     func()
				data   map[string]string // of the Widgets that are concerned
				reason string
			}{
				{func() { testkit.Apply(t, ns, monitor(name, "a", "red", "7")) }, map[string]string{"red": "a=7 b=2"}, "an object changes"},
				{func() { testkit.Apply(t, ns, monitor(name, "aa", "red", "4")) }, map[string]string{"red": "a=7 aa=4 b=2"}, "one is created"},
				{func() { testkit.Apply(t, ns, monitor(name, "b", "blue", "2")) },
					map[string]string{"red": "a=7 aa=4", "blue": "b=2 c=3"}, "one goes from one list to another"},
				{func() { testkit.Delete(t, configMaps, ns, "c") }, map[string]string{"blue": "b=2"}, "one is deleted"},
				{func() { testkit.Apply(t, ns, monitor("nobody", "aa", "red", "4")) }, map[string]string{"red": "a=7"}, "one loses the label"},
				{func() { testkit.Apply(t, ns, monitor(name, "q", "red", "5")) }, map[string]string{"red": "a=7 q=5"}, "one gets the label"},
				{func() { applyReader(t, ns, "red", "blue") }, map[string]string{"red": "b=2"}, "the upstream asks for others"},
			}
			for _, step := range steps {
				counter.Reset()
				looks := metric(t, "corollary_reconcile_seconds", name)
				step.do()
				for upstream, urls := range step.data {
					waitData(t, ns, upstream+"-all", "urls", urls)
				}
				quiet(t, counter)
				for _, r := range counter.Requests() {
					if base := strings.TrimSuffix(r.Name, "-all"); step.data[base] == "" && r.Mutating() {
						t.Errorf("%s: %s %s concerns nobody", step.reason, r.Verb, r.Name)
					}
				}
				if n := counter.Mutating(); n > 2*len(step.data) {
					t.Errorf("%s: %v", step.reason, counter.Snapshot())
				}
				if n := metric(t, "corollary_reconcile_seconds", name) - looks; n > float64(4*len(step.data)) {
					t.Errorf("%s: %v reconciles", step.reason, n)
				}
			}

			counter.Reset()
			testkit.Patch(t, configMaps, ns, "b", "somebody", `{"data":{"unread":"y"}}`)
			testkit.Apply(t, ns, monitor(name, "q", "red", "6"))
			atMostRequests(t, counter, 0, "a field that nobody reads, and an object in nobody's list")
		}))
	}
}

// While a list is unknown, what was made of it stays: if it has too many objects, and if the expression fails for one
// of them.
func TestListInputUnknown(t *testing.T) {
	t.Parallel()
	for reason, matching := range matchings {
		t.Run(reason, spaced(func(t *testing.T, ns, name string) {
			testkit.Apply(t, ns, monitor(name, "a", "red", "1"))
			applyReader(t, ns, "red", "red")
			start(t, testkit.Config(t), strings.Replace(listOf(ns, name, matching), "maxItems: 400", "maxItems: 2", 1))
			waitData(t, ns, "red-all", "urls", "a=1")

			testkit.Apply(t, ns, monitor(name, "b", "red", "2"))
			waitData(t, ns, "red-all", "urls", "a=1 b=2")
			testkit.Apply(t, ns, monitor(name, "c", "red", "3"))
			eventuallyCondition(t, ns, "red", "False", "Waiting", "input monitors: the list has 3 objects, more than list.maxItems: 2")
			waitData(t, ns, "red-all", "urls", "a=1 b=2")
			testkit.Delete(t, configMaps, ns, "a")
			waitData(t, ns, "red-all", "urls", "b=2 c=3")

			testkit.Apply(t, ns, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, labels: {monitor: %s}}\ndata: {url: x}\n", name))
			eventuallyCondition(t, ns, "red", "False", "RenderFailed", "input monitors: evaluating list.matching for ConfigMap "+ns+"/d")
			testkit.Apply(t, ns, monitor(name, "b", "red", "changed"))
			eventuallyCondition(t, ns, "red", "False", "RenderFailed", "no such key: team")
			waitData(t, ns, "red-all", "urls", "b=2 c=3")
			testkit.Delete(t, configMaps, ns, "d")
			waitData(t, ns, "red-all", "urls", "b=changed c=3")
		}))
	}
}

// A watch that is refused or broken shows no empty list.
func TestListInputForbidden(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		faults := testkit.NewFaults()
		testkit.Apply(t, ns, monitor(name, "a", "red", "1"))
		applyReader(t, ns, "red", "red")
		ofList := func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/configmaps") && strings.Contains(r.URL.RawQuery, "monitor%3D")
		}
		refused := faults.Answer(http.StatusForbidden, ofList)
		r := start(t, faults.Wrap(testkit.Config(t)), listOf(ns, name, matchings["indexed"]))
		testkit.Eventually(t, patience, func() (bool, string) { return refused.Hits() > 2, "the watch is not opened" })
		mustBeAbsent(t, configMaps, ns, "red-all", "made from a list that nobody could read")
		refused.Off()
		r.ready()
		waitData(t, ns, "red-all", "urls", "a=1")

		refused = faults.Answer(http.StatusForbidden, ofList)
		faults.Cut(ofList)
		testkit.Eventually(t, patience, func() (bool, string) { return refused.Hits() > 2, "the watch was not interrupted" })
		applyReader(t, ns, "late", "red") // is made from what was seen last
		waitData(t, ns, "late-all", "urls", "a=1")
		if urls := testkit.Get(t, configMaps, ns, "red-all"); !strings.Contains(fmt.Sprint(urls.Object["data"]), "urls:a=1") {
			t.Errorf("the list shrank: %v", urls.Object["data"])
		}
		refused.Off()
		testkit.Apply(t, ns, monitor(name, "a", "red", "2"))
		waitData(t, ns, "red-all", "urls", "a=2")
	})
}

// A list may have the objects of other namespaces: those that are named, or of all.
func TestListInputNamespaces(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, one, two := testkit.Namespace(t), testkit.Namespace(t), testkit.Namespace(t)
		for _, c := range []struct {
			namespaces string
			want       []string
		}{
			{fmt.Sprintf("[%s, %s]", ns, one), []string{"a=1", "own=0"}},
			{`["*"]`, []string{"a=1", "a=2", "own=0"}},
		} {
			name := testkit.Unique(t)
			for at, m := range map[string]string{ns: monitor(name, "own", "red", "0"), one: monitor(name, "a", "red", "1"), two: monitor(name, "a", "red", "2")} {
				testkit.Apply(t, at, m)
			}
			applyReader(t, ns, "red", "red")
			r := start(t, testkit.Config(t), strings.Replace(listOf(ns, name, matchings["indexed"]), "maxItems: 400", "namespaces: "+c.namespaces, 1))
			waitThat(t, configMaps, ns, "red-all", func(u *obj) bool { // of one name in two namespaces, either may come first
				return slices.Equal(slices.Sorted(slices.Values(strings.Fields(dataIn(u, "urls")))), c.want)
			})
			deleteAndWait(t, widgets, ns, "red")
			r.halt()
		}
	})
}
