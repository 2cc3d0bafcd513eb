//go:build controlplane

package cli_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestInitIsAccepted: what init writes is what an API server takes, and run makes of the sample what the manifests
// were.
func TestInitIsAccepted(t *testing.T) {
	ns := testkit.Namespace(t)
	testkit.Apply(t, ns, manifests(ns+"-live"))
	live := testkit.Get(t, services, ns, ns+"-live")
	text := must(live.MarshalJSON())(t) // as kubectl get writes it, with all that an API server has set
	testkit.Delete(t, services, ns, ns+"-live")
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{
		"service.json": string(text),
		"others.yaml":  strings.ReplaceAll(others, "NAME", ns),
	} {
		write(t, name, data)
	}
	code, out := run(t, "init", "--kind", "Initiated.v1.platform.example.com", "--from", "service.json", "--from", "others.yaml", "--name", ns,
		"--hole", "clusterRole:.rules=rules", "--hole", "service:.spec.ports[0].port=net.port", "--hole",
		".spec.template.spec.containers[0].resources.limits.cpu=cpu")
	if code != 0 {
		t.Fatalf("init: exit code %d\n%s", code, out)
	}
	testkit.InstallCRDs(t, read(t, "crd.yaml"))
	expect(t, 0, "no errors, 0 warnings", "check", "-c", "operator.yaml", "--live", "--kubeconfig", testkit.Kubeconfig(t))
	testkit.Apply(t, ns, read(t, "cr.yaml"))
	start(t, testkit.Config(t), "run", "-c", "operator.yaml", "--health-probe-bind-address", "0")
	testkit.Eventually(t, patience, func() (bool, string) {
		cr := testkit.Get(t, initiated, ns, ns)
		recorded, _, _ := unstructured.NestedSlice(cr.Object, "status", "downstreams")
		conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
		return len(recorded) == 3 && len(conditions) > 0, "the status is " + string(must(cr.MarshalJSON())(t))
	})
	if ports, _, _ := unstructured.NestedSlice(testkit.Get(t, services, ns, ns+"-live").Object, "spec", "ports"); len(ports) != 1 {
		t.Errorf("the Service has ports %v", ports)
	}
	cpu, _, _ := unstructured.NestedSlice(testkit.Get(t, deployments, ns, ns).Object, "spec", "template", "spec", "containers")
	if limits, _, _ := unstructured.NestedMap(cpu[0].(map[string]any), "resources", "limits"); limits["cpu"] != "1" {
		t.Errorf("the Deployment has limits %v", limits)
	}
	if testkit.Get(t, clusterRoles, "", ns+"-reads").GetAnnotations()["platform.example.com/owner"] == "" {
		t.Error("the ClusterRole names no owner")
	}
}

const others = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: "x:1", resources: {limits: {cpu: 1}}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME-reads}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`

func manifests(name string) string {
	return "{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: {selector: {app: " + name + "}, ports: [{port: 80}]}}"
}
