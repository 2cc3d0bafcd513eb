//go:build controlplane

package cli_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestCRDDiffOfTheCluster: the cluster knows in which versions objects are stored. What is breaking about those the API
// server refuses.
func TestCRDDiffOfTheCluster(t *testing.T) {
	connected(t)
	group := testkit.Unique(t) + ".example.com"
	testkit.InstallCRDs(t, gauges(group, ""))
	for _, row := range []struct {
		reason, text, want string
		code               int
		refused            bool
	}{
		{"nothing has changed", gauges(group, ""), "0 breaking, 0 conversion, 0 compatible", 0, false},
		{"a required field", gauges(group, "required: [a], "), "gauges." + group + " v1: .spec.a: the field is newly required", 3, false},
		{"the stored version goes", strings.ReplaceAll(gauges(group, ""), "name: v1,", "name: v2,"), "status.storedVersions names it", 3, true},
		{"another scope", strings.Replace(gauges(group, ""), "Namespaced", "Cluster", 1), "spec.scope: the scope was Namespaced", 3, true},
	} {
		file := t.TempDir() + "/new.yaml"
		write(t, file, row.text)
		if code, out := run(t, "crd", "diff", "cluster", file); code != row.code || !strings.Contains(out, row.want) {
			t.Errorf("%s: exit code %d\n%s", row.reason, code, out)
		}
		u := &unstructured.Unstructured{}
		ok(t, yaml.Unmarshal([]byte(row.text), &u.Object))
		_, err := testkit.Dynamic(t).Resource(definitions).Apply(t.Context(), u.GetName(), u,
			metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}})
		if (err != nil) != row.refused {
			t.Errorf("%s: the API server says %v", row.reason, err)
		}
	}
	// A file that says nothing of the conversion leaves it as it is.
	testkit.Patch(t, definitions, "", "gauges."+group, "test", `{"spec": {"conversion": {"strategy": "Webhook",
		"webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://localhost:1"}}}}}`)
	file := t.TempDir() + "/same.yaml"
	write(t, file, gauges(group, ""))
	expect(t, 0, "0 breaking, 0 conversion", "crd", "diff", "cluster", file)
}
