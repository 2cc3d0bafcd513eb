//go:build controlplane

package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
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

// What a survey says an adopted object would be is what it comes to be: what its maker set and the template does not have
// goes, what the API server fills in stays or comes back, whoever owned it, and what others own stays.
func TestSurveyOfAdoptedDeployment(t *testing.T) {
	t.Parallel()
	const clash = `, ports: [{name: http, containerPort: 80}]`
	for _, row := range []struct {
		manager, reason, ports string
		apply                  bool
	}{
		{"kubectl-client-side-apply", "a POST makes its writer the owner of all that the API server filled in", "", false},
		{"kubectl", "of what an apply left out nobody is the owner", "", true},
		{"helm", "a POST, and what it set stands in the way of what is wanted until it is gone", clash, false},
		{"argocd", "an apply, and what it set stands in the way of what is wanted until it is gone", clash, true},
	} {
		t.Run(row.manager, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			testkit.Apply(t, ns, widget("a", `{}`))
			makeDeployment(t, ns, row.manager, row.ports, row.apply)
			testkit.Patch(t, deployments, ns, "a", "other", `{"metadata": {"labels": {"other": "stays"}}, "spec": {"revisionHistoryLimit": 4}}`)
			conf := adoptingDeployment(ns, name, row.manager)
			c := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, conf).expect(t, "a", "update a").Changes[0]
			start(t, testkit.Config(t), conf).ready()
			testkit.Eventually(t, patience, func() (bool, string) {
				return len(downstreamsOf(testkit.Get(t, widgets, ns, "a"))) == 1, "it is not adopted"
			})
			live := testkit.Get(t, deployments, ns, "a")
			if diff := cmp.Diff(asked(live), asked(c.After)); diff != "" {
				t.Errorf("%s: what the survey tells of is not what has come (-is +told):\n%s", row.reason, diff)
			}
			if n, _, _ := unstructured.NestedInt64(live.Object, "spec", "progressDeadlineSeconds"); n != 600 || live.GetLabels()["other"] != "stays" || live.GetAnnotations()["theirs"] != "" {
				t.Errorf("%s: it has come to be %v", row.reason, live.Object)
			}
		})
	}
}
