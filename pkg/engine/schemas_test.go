package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestDefinitionChanges: a definition of the upstream that changes while the operator runs neither freezes the status
// nor keeps it from being whole again. At rest nothing is read.
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

// TestDefinitionLosesField: once the definition lacks a field that the config reads, nothing is deleted for what the
// API server drops.
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

// TestGuardAfterADefinition: guard counts what the API server shows after a definition has lost a field, not what was
// watched before. No event shows that an object has lost it.
func TestGuardAfterADefinition(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		s := newShifting(t, ns, name)
		s.define(flagField, "")
		conf := replaceOnce(t, s.config(""), "{{ .spec.name | default .metadata.name }}", `{{ ternary "flagged" "plain" (.spec.flag | default false) }}`)
		start(t, testkit.Config(t), conf+"guard: {maxDeleted: 0%, minimum: 0}\n").ready()
		s.give("flag: true, data: {key: first}")
		before := waitData(t, ns, "flagged", "key", "first")
		s.define("", "")
		waitState(t, name, "GuardWaiting")
		testkit.Patch(t, s.gvr, ns, "a", "test", `{"metadata": {"labels": {"a": "b"}}}`)
		<-time.After(time.Minute)
		mustBeSame(t, configMaps, before, "guard holds what follows from the definition")
	})
}

// TestDefinitionChangesDuringABadEdit: a config that does not fit a changed definition is not forgotten over a bad edit
// of it that is undone.
func TestDefinitionChangesDuringABadEdit(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		s := newShifting(t, ns, name)
		s.define(flagField, "")
		conf := with(s.config("  downstreams: .status.downstreams\n"), "when: self.spec.?flag.orValue(true)")
		r := start(t, testkit.Config(t), conf).ready()
		waitState(t, name, "Running")
		s.define("", "")
		r.waitUnready("has no field flag")
		r.reloadTo(conf + "nonsense: true\n")
		r.waitSays("nonsense")
		r.reloadTo(conf)
		r.waitUnready("has no field flag")
		s.define(flagField, "")
		waitState(t, name, "Running")
	})
}

// dated is a definition of a test's own in two versions; the older one is served or not.
func dated(name string, served bool) string {
	version := func(name string, storage, served bool) string {
		return fmt.Sprintf("\n  - {name: %s, served: %t, storage: %t, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, "+
			"x-kubernetes-preserve-unknown-fields: true}}}", name, served, storage)
	}
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: dateds." + name + ".example.com}\nspec:\n  group: " + name +
		".example.com\n  scope: Namespaced\n  names: {kind: Dated, plural: dateds, singular: dated, listKind: DatedList}\n  versions:" +
		version("v1beta1", false, served) + version("v1", true, true) + "\n"
}

// datedConfig is widgetConfig for that kind, with what it requires.
func datedConfig(ns, name, requires string) string {
	return strings.NewReplacer("apiVersion: test.example.com/v1, kind: Widget", "apiVersion: "+name+".example.com/v1, kind: Dated").
		Replace(fill(widgetConfig, ns, name)) + "requires: " + requires + "\n"
}

func waitMetric(t *testing.T, want float64, name, operator string, labels ...string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		have := metric(t, name, operator, labels...)
		return have == want, fmt.Sprintf("%s %v is %v, want %v", name, labels, have, want)
	})
}

// waitMetricFrom waits until a metric of an operator is at least that.
func waitMetricFrom(t *testing.T, least float64, name, operator string, labels ...string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		have := metric(t, name, operator, labels...)
		return have >= least, fmt.Sprintf("%s %v is %v, want %v at least", name, labels, have, least)
	})
}

// TestRequires: an operator does not start while the API server lacks a version that its config requires, and starts
// once it has it. One that runs goes on when the version goes, and says so.
func TestRequires(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		crd := "dateds." + name + ".example.com"
		testkit.InstallCRDs(t, dated(name, false))
		create := func(object string) {
			t.Helper()
			testkit.Apply(t, ns, "{apiVersion: "+name+".example.com/v1, kind: Dated, metadata: {name: "+object+"}, spec: {data: {key: value}}}")
		}
		r := start(t, testkit.Config(t), datedConfig(ns, name, `{kubernetes: ">=1.20", crdVersions: {`+crd+": [v1, v1beta1]}}"))
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "ConfigRefused")
		waitMetric(t, 0, "corollary_requirement_met", name, "name", crd, "version", "v1beta1")
		waitMetric(t, 1, "corollary_requirement_met", name, "name", crd, "version", "v1")
		waitMetric(t, 1, "corollary_requirement_met", name, "name", "kubernetes", "version", ">=1.20")
		create("a")
		r.waitUnready("requires.crdVersions['" + crd + "'][1]: " + crd + " is not served in v1beta1, only in v1: apply")

		testkit.Apply(t, "", dated(name, true))
		r.ready()
		waitData(t, ns, "a", "key", "value")
		waitMetric(t, 1, "corollary_requirement_met", name, "name", crd, "version", "v1beta1")

		testkit.Apply(t, "", dated(name, false))
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "ReloadFailed")
		waitMetric(t, 0, "corollary_requirement_met", name, "name", crd, "version", "v1beta1")
		create("b")
		waitData(t, ns, "b", "key", "value")

		testkit.Apply(t, "", dated(name, true))
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "Running")
	})
}

// TestRequiresKubernetes: a config for a later Kubernetes does not start, whatever else it needs.
func TestRequiresKubernetes(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		r := start(t, testkit.Config(t), fill(widgetConfig, ns, name)+"requires: {kubernetes: \">=9.9\"}\n")
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "ConfigRefused")
		r.waitUnready("requires.kubernetes: the API server is 1.")
	})
}

// TestWrittenVersions: upstreams count by the versions that their managers used, from what the watch brings anyway.
func TestWrittenVersions(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.InstallCRDs(t, dated(name, true))
		gvr := lates(name)
		gvr.Resource = "dateds"
		for _, w := range []struct{ version, object, manager string }{{"v1", "a", "new"}, {"v1", "b", "new"}, {"v1beta1", "b", "old"}, {"v1beta1", "c", "old"}} {
			u := testkit.Parse(t, "{apiVersion: "+gvr.Group+"/"+w.version+", kind: Dated, metadata: {name: "+w.object+"}, spec: {data: {"+w.manager+": x}}}")
			at := gvr
			at.Version = w.version
			if _, err := testkit.Dynamic(t).Resource(at).Namespace(ns).Apply(t.Context(), w.object, u, metav1.ApplyOptions{FieldManager: w.manager}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, testkit.Config(t), strings.Replace(datedConfig(ns, name, "{}"), "status:\n", "mode: Observe\nstatus:\n  enabled: false\n", 1)).ready()
		waitMetric(t, 2, "corollary_upstream_versions", name, "version", "v1beta1")
		waitMetric(t, 2, "corollary_upstream_versions", name, "version", "v1")
		testkit.Delete(t, gvr, ns, "c")
		waitMetric(t, 1, "corollary_upstream_versions", name, "version", "v1beta1")
	})
}
