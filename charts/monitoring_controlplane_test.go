//go:build controlplane

package charts

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kyaml "sigs.k8s.io/yaml"
)

// TestDashboardIsPromQL: promtool takes each expression of the dashboard, as a rule that records it.
func TestDashboardIsPromQL(t *testing.T) {
	t.Parallel()
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	expressions := readDashboard(t).expressions()
	if len(expressions) < 20 {
		t.Fatalf("there are %d expressions only", len(expressions))
	}
	g := group{Name: "dashboard"}
	for i, where := range slices.Sorted(maps.Keys(expressions)) {
		g.Rules = append(g.Rules, rule{fmt.Sprintf("panel:%d", i), expressions[where]})
	}
	rules, err := kyaml.Marshal(map[string]any{"groups": []group{g}})
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "rules.yaml", string(rules))
	if out, err := promtool(t, filepath.Dir(path), "check", "rules", path); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// monitored renders the chart with these values and returns the objects of a kind.
func monitored(t *testing.T, kind string, args ...string) []*unstructured.Unstructured {
	t.Helper()
	manifest := render(t, append([]string{image, "--values=testdata/values/minimal.yaml"}, args...)...)
	return slices.DeleteFunc(objects(t, manifest), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
}

// TestDashboardIsMounted: the sidecar finds it by its label and gets it to the byte, braces for Grafana included.
func TestDashboardIsMounted(t *testing.T) {
	t.Parallel()
	of := func(args ...string) *corev1.ConfigMap {
		for _, o := range monitored(t, "ConfigMap", args...) {
			if strings.HasSuffix(o.GetName(), "-dashboard") {
				cm := typed[corev1.ConfigMap](t, o)
				return &cm
			}
		}
		return nil
	}
	if of() != nil {
		t.Error("it is there without being asked for")
	}
	cm := of("--set=metrics.dashboard.enabled=true", "--set=metrics.dashboard.folder=Operators",
		"--set=metrics.dashboard.annotations.team=platform")
	if cm == nil || cm.Data["corollary.json"] != text(t, "corollary/files/dashboard.json") {
		t.Fatalf("%v is not the dashboard", cm)
	}
	if cm.Labels["grafana_dashboard"] != "1" || cm.Annotations["grafana_folder"] != "Operators" || cm.Annotations["team"] != "platform" {
		t.Errorf("labels %v, annotations %v", cm.Labels, cm.Annotations)
	}
}

// TestServiceMonitorFindsTheService: its selector and port are the Service's, and the job that Prometheus gives its
// targets, the name of the Service, is the one that the alerts select by.
func TestServiceMonitorFindsTheService(t *testing.T) {
	t.Parallel()
	args := []string{"--set=metrics.serviceMonitor.enabled=true", "--set=metrics.serviceMonitor.interval=15s",
		"--set=metrics.serviceMonitor.labels.release=prometheus",
		"--set=commonLabels.release=other", `--set=commonLabels.app\.kubernetes\.io/instance=other`}
	monitors, services := monitored(t, "ServiceMonitor", args...), monitored(t, "Service", args...)
	if len(monitors) != 1 || len(services) != 1 || len(monitored(t, "ServiceMonitor")) != 0 {
		t.Fatalf("there are %d monitors and %d Services", len(monitors), len(services))
	}
	service := typed[corev1.Service](t, services[0])
	spec := monitors[0].Object["spec"].(map[string]any)
	selector, _, _ := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	for key, value := range selector {
		if service.Labels[key] != value {
			t.Errorf("it selects %s=%s, the Service has %q", key, value, service.Labels[key])
		}
	}
	endpoints := spec["endpoints"].([]any)
	endpoint := endpoints[0].(map[string]any)
	if endpoint["port"] != service.Spec.Ports[0].Name || endpoint["interval"] != "15s" || monitors[0].GetLabels()["release"] != "prometheus" {
		t.Errorf("it is %v with the labels %v", spec, monitors[0].GetLabels())
	}
	if job := `job="` + service.Name + `"`; !strings.Contains(string(rulesOf(t)), job) {
		t.Errorf("the alerts do not select %s", job)
	}
}
