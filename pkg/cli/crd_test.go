package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestCRDUsage: objects count by the versions that their writers used, over pages, and nothing is written.
func TestCRDUsage(t *testing.T) {
	t.Parallel()
	ns, group := memory(t), testkit.Unique(t)+".example.com"
	testkit.InstallCRDs(t, gauges(group, ""))
	write := func(version, name, manager, field string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": "Gauge",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{field: "x"}}}
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: "gauges"}
		must(testkit.Dynamic(t).Resource(gvr).Namespace(ns).Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: manager}))(t)
	}
	const objects = 503 // more than a page
	for i := range objects {
		write("v1", fmt.Sprintf("new-%d", i), "new", "a")
	}
	write("v1beta1", "old", "old", "a")
	write("v1beta1", "new-0", "old", "b")

	code, out := run(t, "crd", "usage", "gauges."+group, "-o", "json")
	var got struct {
		Objects  int
		Versions []struct {
			Version                 string
			Served, Storage, Stored bool
			Objects, Last           int
		}
		Managers []struct {
			Version, Manager, Operation, Example string
			Objects                              int
			Last                                 time.Time
		}
	}
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s", code, err, out)
	}
	if got.Objects != objects+1 || len(got.Versions) != 2 || len(got.Managers) != 2 {
		t.Fatalf("got %s", out)
	}
	if v := got.Versions[0]; v.Version != "v1beta1" || v.Objects != 2 || v.Last < 1 || !v.Served || v.Storage || v.Stored {
		t.Errorf("v1beta1 is %+v", v)
	}
	if v := got.Versions[1]; v.Version != "v1" || v.Objects != objects || v.Last < objects-1 || !v.Storage || !v.Stored {
		t.Errorf("v1 is %+v", v)
	}
	if m := got.Managers[0]; m.Manager != "old" || m.Operation != "Apply" || m.Objects != 2 || m.Last.IsZero() ||
		!slices.Contains([]string{ns + "/old", ns + "/new-0"}, m.Example) {
		t.Errorf("the manager of v1beta1 is %+v", m)
	}
	code, out = run(t, "crd", "usage", "gauges."+group)
	if code != 0 || !strings.Contains(out, "v1beta1   served ") || !strings.Contains(out, "storage, served") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	testkit.Patch(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gauges"}, ns, "new-5", "nobody", `{"metadata":{"managedFields":[{}]}}`)
	if _, out = run(t, "crd", "usage", "gauges."+group); !strings.Contains(out, "(unknown)") {
		t.Errorf("an object without managedFields is not counted:\n%s", out)
	}
	expect(t, 1, "not found", "crd", "usage", "none."+group)
}

// gauges is a CustomResourceDefinition with two versions, of a group of the test's own.
func gauges(group, required string) string {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gauges." + group + "}\nspec:\n" +
		"  group: " + group +
		"\n  scope: Namespaced\n  names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}\n  versions:\n"
	for _, v := range []string{"v1beta1", "v1"} {
		text += fmt.Sprintf("    - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, "+
			"properties: {spec: {type: object, %sproperties: {a: {type: string}, b: {type: string}}}}}}}\n", v, v == "v1", required)
	}
	return text
}
