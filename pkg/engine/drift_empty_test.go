package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// emptied are objects with a field that is applied empty and that the API server does not store.
var emptied = []struct {
	reason, apiVersion, kind, template string
	resource                           schema.GroupVersionResource
	patch, path                        string
}{
	{
		reason: "subjects are added to a RoleBinding of nobody", apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding", resource: roleBindings,
		template: "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\n      subjects: []",
		patch:    `[{"op": "add", "path": "/subjects", "value": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]}]`, path: ".subjects",
	},
	{
		reason: "rules are added to a Role of nothing", apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", resource: roles,
		template: "rules: []", patch: `[{"op": "add", "path": "/rules", "value": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}]`, path: ".rules",
	},
	{
		reason: "a NetworkPolicy that lets nothing in is opened", apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", resource: networkPolicies,
		template: "spec: {podSelector: {}, ingress: []}", patch: `[{"op": "add", "path": "/spec/ingress", "value": [{}]}]`, path: ".spec.ingress",
	},
	{
		reason: "arguments are added", apiVersion: "apps/v1", kind: "Deployment", resource: deployments, template: deploymentOfEmpties,
		patch: `[{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["--insecure"]}]`, path: ".spec.template.spec.containers[0].args",
	},
	{
		reason: "an empty variable is set", apiVersion: "apps/v1", kind: "Deployment", resource: deployments, template: deploymentOfEmpties,
		patch: `[{"op": "add", "path": "/spec/template/spec/containers/0/env/0/value", "value": "x"}]`, path: ".spec.template.spec.containers[0].env[0].value",
	},
}

const deploymentOfEmpties = `spec:
        selector: {matchLabels: {app: a}}
        template:
          metadata: {labels: {app: a}}
          spec: {containers: [{name: app, image: i, args: [], env: [{name: EMPTY, value: ""}]}]}`

var roles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}

// TestEmptyFieldsAreOurs: what others put into a field that we own and that is absent, since it is empty, is drift. It is
// repaired by one request, plan tells of it, and so does a restart with a guard. The restart itself costs an apply at most.
func TestEmptyFieldsAreOurs(t *testing.T) {
	t.Parallel()
	for _, row := range emptied {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(widgetConfig, "apiVersion: v1\n    kind: ConfigMap", "apiVersion: "+row.apiVersion+"\n    kind: "+row.kind, 1)
			conf = fill(guardedBy(strings.Replace(conf, "data: {{ .spec.data }}", row.template, 1), ""), ns, name)
			writes := func(r testkit.Request) bool { return r.Resource == row.resource.Resource }
			r, counter := startCounted(t, conf)
			testkit.Apply(t, ns, widget("a", "{}"))
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, row.resource, ns, "a") != nil, "it is not there" })
			quiet(t, counter)
			tamper := func() {
				t.Helper()
				if valueAt(t, jsonPatch(t, row.resource, ns, row.patch), row.path) == "" {
					t.Fatal("the API server does not store what is set")
				}
			}
			repaired := func() {
				t.Helper()
				testkit.Eventually(t, patience, func() (bool, string) {
					value := valueAt(t, testkit.Get(t, row.resource, ns, "a"), row.path)
					return value == "", row.path + " is " + value
				})
				quiet(t, counter)
			}
			counter.Reset()
			tamper()
			repaired()
			if n := counter.Mutating(writes); n != 1 {
				t.Errorf("the repair took %d writes, want 1: %v", n, counter.Snapshot())
			}
			r.halt()

			counter.Reset()
			again := start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			quiet(t, counter)
			if n := counter.Mutating(writes); n > 1 {
				t.Errorf("a restart took %d writes, want 1 at most: %v", n, counter.Snapshot())
			}
			again.halt()

			tamper()
			found := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, conf).expect(t, "a", "repair a")
			if d := found.Changes[0].Drift; len(d) != 1 || d[0].Manager != "mallory" {
				t.Errorf("plan tells of %+v, want what mallory wrote at %s", d, row.path)
			}
			start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			repaired()
		}))
	}
}

// jsonPatch changes the object a as mallory.
func jsonPatch(t *testing.T, resource schema.GroupVersionResource, ns, patch string) *unstructured.Unstructured {
	t.Helper()
	patched, err := testkit.Dynamic(t).Resource(resource).Namespace(ns).Patch(t.Context(), "a", types.JSONPatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// valueAt returns what stands at a path as text, "" for nothing or null.
func valueAt(t *testing.T, u *unstructured.Unstructured, path string) string {
	t.Helper()
	value, ok := fieldpath.Get(u.Object, fieldpath.MustParse(path))
	if !ok || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// TestExclusiveMapThatIsEmpty: keys that others added to a map that is to be empty go, even where its managedFields name nobody who
// added them, so that it cannot be told from a map that we own with all that is in it.
func TestExclusiveMapThatIsEmpty(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), "drift: {exclusiveFields: [.data]}")
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", `{data: {}}`)
		r.halt()
		testkit.Patch(t, configMaps, ns, "a", "mallory", `{"data": {"theirs": "x"}}`)
		testkit.Update(t, configMaps, ns, "a", func(u *unstructured.Unstructured) {
			u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "mallory" }))
		})
		if data, _, _ := unstructured.NestedStringMap(testkit.Get(t, configMaps, ns, "a").Object, "data"); data["theirs"] != "x" {
			t.Fatalf("the data is %v", data)
		}
		start(t, testkit.Config(t), conf).ready()
		testkit.Eventually(t, patience, func() (bool, string) {
			data, _, _ := unstructured.NestedStringMap(testkit.Get(t, configMaps, ns, "a").Object, "data")
			return len(data) == 0, fmt.Sprintf("the data is %v", data)
		})
	})
}
