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

// shifting is a definition that a test changes.
type shifting struct {
	*testing.T
	ns, name string
	gvr      schema.GroupVersionResource
}

func newShifting(t *testing.T, ns, name string) shifting {
	return shifting{t, ns, name, schema.GroupVersionResource{Group: name + ".example.com", Version: "v1", Resource: "shiftings"}}
}

// define gives the spec and the status other fields.
func (s shifting) define(spec, status string) {
	s.Helper()
	testkit.InstallCRDs(s.T, strings.NewReplacer("NAME", s.name, "FIELD", status, "spec: {type: object, properties: {", "spec: {type: object, properties: {"+spec).Replace(shiftingCRD))
}

// config is widgetConfig for that kind, with other lines in the place of status.downstreams.
func (s shifting) config(status string) string {
	return strings.NewReplacer("{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+s.gvr.Group+"/v1, kind: Shifting,",
		"  downstreams: .status.downstreams\n", status).Replace(fill(widgetConfig, s.ns, s.name))
}

// give applies the object a; the definition may be on its way.
func (s shifting) give(spec string) {
	s.Helper()
	testkit.Eventually(s.T, patience, func() (bool, string) {
		_, err := testkit.TryApply(s.T, s.ns, "{apiVersion: "+s.gvr.Group+"/v1, kind: Shifting, metadata: {name: a}, spec: {"+spec+"}}")
		return err == nil, text(err)
	})
}

const (
	summaryField = "  fields: [{path: .status.summary, value: \"'all of ' + self.metadata.name\"}]\n"
	flagField    = "flag: {type: boolean}, "
)

// TestDefinitionChanges: a definition of the upstream that changes while the operator runs neither freezes the status nor
// keeps it from being whole again. At rest nothing is read.
func TestDefinitionChanges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, field string }{
		{"a field is dropped", ""},
		{"a field has another type", "summary: {type: integer}"},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			s := newShifting(t, ns, name)
			s.define("", "summary: {type: string}")
			_, counter := startCounted(t, s.config(summaryField))
			summary := func(want string) {
				t.Helper()
				testkit.Eventually(t, patience, func() (bool, string) {
					u := testkit.Get(t, s.gvr, ns, "a")
					have, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "summary")
					status, reason, message := condition(u, "Ready")
					observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
					return status == "True" && observed == u.GetGeneration() && fmt.Sprint(have) == want,
						fmt.Sprintf("summary is %v, generation %d of %d, Ready %s, %s: %s", have, observed, u.GetGeneration(), status, reason, message)
				})
			}
			s.give("data: {key: first}")
			summary("all of a")
			settle(t, counter)
			never(t, func() (bool, string) { return len(counter.Requests()) > 0, fmt.Sprint(counter.Snapshot()) })

			s.define("", row.field)
			s.give("data: {key: second}")
			waitData(t, ns, "a", "key", "second")
			summary("<nil>")
			s.define("", "summary: {type: string}")
			summary("all of a")
			s.give("data: {key: third}")
			waitData(t, ns, "a", "key", "third")
			summary("all of a")
			quiet(t, counter)
		}))
	}
}

// TestDefinitionLosesField: once the definition lacks a field that the config reads, nothing is deleted for what the API server drops.
func TestDefinitionLosesField(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		s := newShifting(t, ns, name)
		s.define(flagField, "")
		conf := with(s.config("  downstreams: .status.downstreams\n"), "when: self.spec.?flag.orValue(false)")
		start(t, testkit.Config(t), conf).ready()
		s.give("flag: true, data: {key: first}")
		before := waitData(t, ns, "a", "key", "first")

		s.define("", "")
		waitState(t, name, "ConfigRefused")
		testkit.Patch(t, s.gvr, ns, "a", "test", `{"metadata": {"labels": {"a": "b"}}}`)
		never(t, func() (bool, string) { return testkit.Find(t, configMaps, ns, "a") == nil, "the ConfigMap is deleted" })

		s.define(flagField, "")
		s.give("flag: true, data: {key: second}")
		waitData(t, ns, "a", "key", "second")
		mustBeSame(t, configMaps, before, "it was not deleted")
		waitState(t, name, "Running")
	})
}

// TestDefinitionChangesDuringABadEdit: a config that does not fit a changed definition is not forgotten over a bad edit of it
// that is undone.
func TestDefinitionChangesDuringABadEdit(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		s := newShifting(t, ns, name)
		s.define(flagField, "")
		conf := with(s.config("  downstreams: .status.downstreams\n"), "when: self.spec.?flag.orValue(true)")
		r := start(t, testkit.Config(t), conf).ready()
		waitState(t, name, "Running")
		refused := func() {
			t.Helper()
			testkit.Eventually(t, patience, func() (bool, string) {
				message := text(r.Ready(nil))
				return strings.Contains(message, "has no field flag"), "it says " + message
			})
		}
		s.define("", "")
		refused()
		r.reloadTo(conf + "nonsense: true\n")
		r.waitSays("nonsense")
		r.reloadTo(conf)
		refused()
		s.define(flagField, "")
		waitState(t, name, "Running")
	})
}
