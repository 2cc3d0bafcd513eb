package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// shiftingCRD is a definition of a test's own; FIELD is a field of the status.
const shiftingCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shiftings.NAME.example.com}
spec:
  group: NAME.example.com
  scope: Namespaced
  names: {kind: Shifting, plural: shiftings, singular: shifting, listKind: ShiftingList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {data: {type: object, additionalProperties: {type: string}}}}
          status:
            type: object
            properties:
              FIELD
              observedGeneration: {type: integer}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items: {type: object, x-kubernetes-preserve-unknown-fields: true, required: [type], properties: {type: {type: string}}}
`

// TestDefinitionChanges: a definition of the upstream that changes while the operator runs neither freezes the status nor
// keeps it from being whole again. At rest nothing is read.
func TestDefinitionChanges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, field string }{
		{"a field is dropped", ""},
		{"a field has another type", "summary: {type: integer}"},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			group := name + ".example.com"
			gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "shiftings"}
			define := func(field string) {
				testkit.InstallCRDs(t, strings.NewReplacer("NAME", name, "FIELD", field).Replace(shiftingCRD))
			}
			define("summary: {type: string}")
			conf := strings.NewReplacer("{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+group+"/v1, kind: Shifting,",
				"  downstreams: .status.downstreams\n", "  fields: [{path: .status.summary, value: \"'all of ' + self.metadata.name\"}]\n").Replace(fill(widgetConfig, ns, name))
			_, counter := startCounted(t, conf)
			give := func(value string) {
				t.Helper()
				testkit.Eventually(t, patience, func() (bool, string) { // the definition may be on its way
					_, err := testkit.TryApply(t, ns, "{apiVersion: "+group+"/v1, kind: Shifting, metadata: {name: a}, spec: {data: {key: "+value+"}}}")
					return err == nil, text(err)
				})
			}
			summary := func(want string) {
				t.Helper()
				testkit.Eventually(t, patience, func() (bool, string) {
					u := testkit.Get(t, gvr, ns, "a")
					have, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "summary")
					status, reason, message := condition(u, "Ready")
					observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
					return status == "True" && observed == u.GetGeneration() && fmt.Sprint(have) == want,
						fmt.Sprintf("summary is %v, generation %d of %d, Ready %s, %s: %s", have, observed, u.GetGeneration(), status, reason, message)
				})
			}
			give("first")
			summary("all of a")
			settle(t, counter)
			never(t, func() (bool, string) { return len(counter.Requests()) > 0, fmt.Sprint(counter.Snapshot()) })

			define(row.field)
			give("second")
			waitData(t, ns, "a", "key", "second")
			summary("<nil>")
			define("summary: {type: string}")
			summary("all of a")
			give("third")
			waitData(t, ns, "a", "key", "third")
			summary("all of a")
			quiet(t, counter)
		}))
	}
}

// TestDefinitionLosesField: once the definition lacks a field that the config reads, nothing is deleted for what the API server drops.
func TestDefinitionLosesField(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		group := name + ".example.com"
		define := func(spec string) {
			testkit.InstallCRDs(t, strings.NewReplacer("NAME", name, "FIELD", "", "spec: {type: object, properties: {", "spec: {type: object, properties: {"+spec).Replace(shiftingCRD))
		}
		define("flag: {type: boolean}, ")
		conf := with(strings.Replace(fill(widgetConfig, ns, name), "{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+group+"/v1, kind: Shifting,", 1),
			"when: self.spec.?flag.orValue(false)")
		start(t, testkit.Config(t), conf).ready()
		give := func(data string) {
			testkit.Apply(t, ns, "{apiVersion: "+group+"/v1, kind: Shifting, metadata: {name: a}, spec: {flag: true, data: {key: "+data+"}}}")
		}
		give("first")
		before := waitData(t, ns, "a", "key", "first")

		define("")
		waitState(t, name, "ConfigRefused")
		testkit.Patch(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "shiftings"}, ns, "a", "test", `{"metadata": {"labels": {"a": "b"}}}`)
		never(t, func() (bool, string) { return testkit.Find(t, configMaps, ns, "a") == nil, "the ConfigMap is deleted" })

		define("flag: {type: boolean}, ")
		give("second")
		if after := waitData(t, ns, "a", "key", "second"); after.GetUID() != before.GetUID() {
			t.Error("it is another ConfigMap")
		}
		waitState(t, name, "Running")
	})
}

// TestDefinitionChangesDuringABadEdit: a config that does not fit a changed definition is not forgotten over a bad edit of it
// that is undone.
func TestDefinitionChangesDuringABadEdit(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		group := name + ".example.com"
		define := func(spec string) {
			testkit.InstallCRDs(t, strings.NewReplacer("NAME", name, "FIELD", "", "spec: {type: object, properties: {", "spec: {type: object, properties: {"+spec).Replace(shiftingCRD))
		}
		define("flag: {type: boolean}, ")
		conf := with(strings.Replace(fill(widgetConfig, ns, name), "{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+group+"/v1, kind: Shifting,", 1),
			"when: self.spec.?flag.orValue(true)")
		r := start(t, testkit.Config(t), conf).ready()
		waitState(t, name, "Running")
		refused := func() {
			t.Helper()
			testkit.Eventually(t, patience, func() (bool, string) {
				message := text(r.Ready(nil))
				return strings.Contains(message, "has no field flag"), "it says " + message
			})
		}
		define("")
		refused()
		r.reloadTo(conf + "nonsense: true\n")
		testkit.Eventually(t, patience, func() (bool, string) {
			message := text(r.Reloaded(nil))
			return strings.Contains(message, "nonsense"), "it says " + message
		})
		r.reloadTo(conf)
		refused()
		define("flag: {type: boolean}, ")
		waitState(t, name, "Running")
	})
}
