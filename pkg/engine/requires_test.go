package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

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

// TestRequires: an operator does not start while the API server lacks a version that its config requires, and starts once it has it.
// One that runs goes on when the version goes, and says so.
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
		if err := r.Ready(nil); err == nil ||
			!strings.Contains(err.Error(), "requires.crdVersions['"+crd+"'][1]: "+crd+" is not served in v1beta1, only in v1: apply") {
			t.Errorf("it is ready, or says: %v", err)
		}

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
		if err := r.Ready(nil); err == nil || !strings.Contains(err.Error(), "requires.kubernetes: the API server is 1.") {
			t.Errorf("it is ready, or says: %v", err)
		}
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
