package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// related has a downstream that reads two others, which are declared after it: what somebody writes into a ConfigMap, and one of each of
// several.
func related(ns, name string) string {
	conf := strings.Replace(fill(widgetConfig, ns, name), "  downstreams: .status.downstreams\n", "", 1)
	head, _, _ := strings.Cut(conf, "downstreams:\n")
	return head + `variables:
  - {name: address, expression: downstreams.service.data.address}
downstreams:
  - name: page
    apiVersion: v1
    kind: ConfigMap
    when: downstreams.service.data.?published.orValue('') != 'no'
    template: |
      metadata: {name: "{{ .metadata.name }}-page"}
      data:
        address: {{ variable "address" }}
        port: {{ (downstream "service").data.port }}
        {{- range $name, $worker := downstream "worker" }}
        {{ $name }}: {{ $worker.data.id | default "none" }}
        {{- end }}
  - name: never
    apiVersion: v1
    kind: ConfigMap
    when: size(self.spec.data) > 10
    template: |
      metadata: {name: "{{ (downstream "service").data.never }}"}
  - name: each
    apiVersion: v1
    kind: ConfigMap
    forEach: {items: "downstreams.worker.map(name, name)"}
    template: |
      metadata: {name: "{{ item }}-each"}
  - name: service
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}-service"}
      data: {mine: "yes"}
  - name: worker
    apiVersion: v1
    kind: ConfigMap
    forEach: {items: "self.spec.data"}
    template: |
      metadata: {name: "{{ item.value }}"}
      data: {mine: "yes"}
` + conf[strings.Index(conf, "conventions:\n"):]
}

func patchData(t *testing.T, ns, name, data string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, name, "somebody", `{"data":`+data+`}`)
}

// What reads another downstream waits for it and for its fields, follows it, and costs nothing at rest.
func TestSiblings(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Apply(t, ns, widget("w", "{data: {a: one, b: two}}"))
		counter := testkit.NewCounter()
		start(t, counter.Wrap(testkit.Config(t)), related(ns, name))
		eventuallyCondition(t, ns, "w", "False", "Waiting", `page: variable "address": evaluating "downstreams.service.data.address": no such key: address`)
		for _, made := range []string{"one-each", "two-each"} {
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, ns, made) != nil, made + " is missing" })
		}
		quiet(t, counter)
		patchData(t, ns, "w-service", `{"address":"10.0.0.1"}`)
		eventuallyCondition(t, ns, "w", "False", "Waiting", `downstream service exists, but (downstream "service").data.port is not set`)
		patchData(t, ns, "w-service", `{"port":"80"}`)
		waitData(t, ns, "w-page", "port", "80")
		waitData(t, ns, "w-page", "address", "10.0.0.1")
		waitData(t, ns, "w-page", "one", "none")
		eventuallyCondition(t, ns, "w", "True", "", "")

		patchData(t, ns, "one", `{"id":"first"}`)
		waitData(t, ns, "w-page", "one", "first")
		testkit.Apply(t, ns, widget("w", "{data: {a: one, c: three}}"))
		waitData(t, ns, "w-page", "three", "none")
		testkit.Eventually(t, patience, func() (bool, string) {
			_, has := testkit.Get(t, configMaps, ns, "w-page").Object["data"].(map[string]any)["two"]
			return !has, "two is still there"
		})
		waitGone(t, configMaps, ns, "two-each")
		quiet(t, counter)

		renders := metric(t, "corollary_renders_total", name)
		for i := range 5 {
			testkit.Patch(t, configMaps, ns, "w-service", "somebody", fmt.Sprintf(`{"metadata":{"annotations":{"x.example.com/y":"%d"}}}`, i))
		}
		patchData(t, ns, "w-service", `{"port":"81"}`)
		waitData(t, ns, "w-page", "port", "81")
		if more := metric(t, "corollary_renders_total", name) - renders; more != 1 {
			t.Errorf("rendered %v times, not once for the port", more)
		}
		patchData(t, ns, "w-service", `{"published":"no"}`)
		waitGone(t, configMaps, ns, "w-page")
		patchData(t, ns, "w-service", `{"published":null}`)
		waitData(t, ns, "w-page", "port", "81")

		testkit.Delete(t, configMaps, ns, "w-service")
		waitData(t, ns, "w-service", "mine", "yes")
		eventuallyCondition(t, ns, "w", "False", "Waiting", "page: ")
		waitData(t, ns, "w-page", "port", "81")
	})
}

// An object that is not the upstream's own is not read, whatever it says of itself.
func TestSiblingOfSomebodyElse(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Apply(t, ns, widget("w", "{data: {}}"))
		uid := testkit.Get(t, widgets, ns, "w").GetUID()
		testkit.Apply(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: w-service
  labels: {%[1]s.example.com/managed: "yes"}
  annotations: {%[1]s.example.com/owner: "%[2]s/w/%[3]s"}
  ownerReferences: [{apiVersion: test.example.com/v1, kind: Widget, name: w, uid: %[3]s, controller: true}]
data: {address: stolen, port: "1"}
`, name, ns, uid))
		start(t, testkit.Config(t), related(ns, name))
		eventuallyCondition(t, ns, "w", "False", "Conflict", "")
		eventuallyCondition(t, ns, "w", "False", "Conflict", "page: downstream service, which it reads, is missing: "+ns+"/w-service")
		mustBeAbsent(t, configMaps, ns, "w-page", "a page was made of somebody else's object")
	})
}
