package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// takenDeployment is a Deployment as somebody made it who goes on to be replaced: it has more than adoptingDeployment asks
// for, and a port of the name that another number is to have, so that both together would be refused.
const takenDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  annotations: {theirs: "1", kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  replicas: 3
  minReadySeconds: 5
  selector: {matchLabels: {app: a}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}
  template:
    metadata: {labels: {app: a}, annotations: {theirs: "1"}}
    spec:
      terminationGracePeriodSeconds: 7
      nodeSelector: {disk: fast}
      containers:
        - {name: app, image: "app:1", args: [theirs], env: [{name: MINE, value: "0"}, {name: THEIRS, value: "1"}]PORTS}
        - {name: sidecar, image: "theirs:1"}
`

// adoptingDeployment is widgetConfig with a Deployment in the place of the ConfigMap.
func adoptingDeployment(ns, name, managers string) string {
	return with(strings.NewReplacer("apiVersion: v1\n    kind: ConfigMap", "apiVersion: apps/v1\n    kind: Deployment", "data: {{ .spec.data }}", `spec:
        replicas: 2
        selector: {matchLabels: {app: {{ .metadata.name }}}}
        template:
          metadata: {labels: {app: {{ .metadata.name }}}}
          spec:
            containers: [{name: app, image: "app:1", env: [{name: MINE, value: "1"}], ports: [{name: http, containerPort: 8080}]}]`).
		Replace(fill(widgetConfig, ns, name)), "adoptionPolicy: IfUnowned", "adopt: {fieldManagers: ["+managers+"]}")
}

// makeDeployment has a manager make takenDeployment: by a POST, or by an apply.
func makeDeployment(t *testing.T, ns, manager, ports string, apply bool) {
	t.Helper()
	obj, client := testkit.Parse(t, strings.Replace(takenDeployment, "PORTS", ports, 1)), testkit.Dynamic(t).Resource(deployments).Namespace(ns)
	var err error
	if apply {
		_, err = client.Apply(t.Context(), "a", obj, metav1.ApplyOptions{FieldManager: manager})
	} else {
		_, err = client.Create(t.Context(), obj, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// asked is an object less its status and what the API server keeps of it.
func asked(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u.Object
}
