package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// with adds lines to the downstream of widgetConfig.
func with(conf string, lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("    " + line + "\n")
	}
	return strings.Replace(conf, "    # downstream\n", b.String()+"    # downstream\n", 1)
}

// made starts an operator, creates Widget a, and waits for its ConfigMap.
func made(t *testing.T, conf, ns string, counter *testkit.Counter) *running {
	t.Helper()
	r := start(t, counter.Wrap(testkit.Config(t)), conf).ready()
	applyReady(t, ns, "a", `{data: {key: value}}`)
	waitData(t, ns, "a", "key", "value")
	settle(t, counter)
	return r
}

func TestRepair(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		tamper       func(t *testing.T, ns, name string)
		requests     int
	}{
		{"value", "a changed value comes back",
			func(t *testing.T, ns, _ string) {
				testkit.Patch(t, configMaps, ns, "a", "kubectl-edit", `{"data":{"key":"tampered"}}`)
			}, 1},
		{"owner", "a stripped owner reference comes back, once the upstream is known to be there",
			func(t *testing.T, ns, _ string) {
				testkit.Patch(t, configMaps, ns, "a", "kubectl-edit", `{"metadata":{"ownerReferences":null}}`)
			}, 2},
		{"hash", "a stripped hash comes back",
			func(t *testing.T, ns, name string) {
				testkit.Patch(t, configMaps, ns, "a", "kubectl-edit", `{"metadata":{"annotations":{"`+name+`.example.com/hash":null}}}`)
			}, 1},
		{"labels", "an object that the watch lost from sight comes back into it",
			func(t *testing.T, ns, name string) {
				testkit.Patch(t, configMaps, ns, "a", "kubectl-edit", `{"metadata":{"labels":{"`+name+`.example.com/managed":null}}}`)
			}, 3}, // the upstream is read: the garbage collector may have been at work
		{"deleted", "a deleted object is made again, and its new uid recorded",
			func(t *testing.T, ns, _ string) { testkit.Delete(t, configMaps, ns, "a") }, 3}, // likewise
		{"disowned", "an object whose managedFields were wiped is applied again",
			func(t *testing.T, ns, _ string) {
				testkit.Patch(t, configMaps, ns, "a", "kubectl-edit", `{"metadata":{"managedFields":[{}]}}`)
			}, 1},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			_, counter := startMade(t, ns, fill(widgetConfig, ns, name))
			before := testkit.Get(t, configMaps, ns, "a")
			row.tamper(t, ns, name)
			waitThat(t, configMaps, ns, "a", func(cm *obj) bool {
				whole := dataIn(cm, "key") == "value" && len(cm.GetOwnerReferences()) == 1 &&
					cm.GetLabels()[name+".example.com/managed"] == "yes" && cm.GetAnnotations()[name+".example.com/hash"] == before.GetAnnotations()[name+".example.com/hash"]
				ours := func(m metav1.ManagedFieldsEntry) bool { return m.Manager == name && m.Operation == "Apply" }
				return whole && slices.ContainsFunc(cm.GetManagedFields(), ours)
			})
			atMostRequests(t, counter, row.requests, row.reason)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

func TestExclusiveFields(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startMade(t, ns, with(fill(widgetConfig, ns, name), "drift: {exclusiveFields: [.data]}"))
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"theirs":"goes"},"metadata":{"labels":{"theirs":"stays"}}}`)
		waitThat(t, configMaps, ns, "a", func(cm *obj) bool {
			return fmt.Sprint(cm.Object["data"]) == "map[key:value]" && cm.GetLabels()["theirs"] == "stays"
		})
		atMostRequests(t, counter, 2, "added keys")
		counter.Reset()
		isRepaired(t, ns, "a", "key", "value")
		atMostRequests(t, counter, 2, "after that our entry still owns its keys")
	})
}

// After a restart nothing remembers what the API server's spelling of our document was: Report asks by dry run.
func TestReportAfterRestart(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(with(fill(widgetConfig, ns, name), "drift: {policy: Report}"), "data: {{ .spec.data }}", "data: {{ .spec.data }}\n      binaryData: {}", 1)
		r, counter := startMade(t, ns, conf)
		r.halt()
		start(t, counter.Wrap(testkit.Config(t)), conf).ready()
		waitObserved(t, name, "InSync", 1)
		quiet(t, counter)
		waitObserved(t, name, "InSync", 1)
		atMostWrites(t, counter, 0, "Report")
	})
}

// A field that the API server fills in again and again inside an exclusive one does not drift without end.
func TestExclusiveFieldWithDefaults(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("v1\n    kind: ConfigMap", "networking.k8s.io/v1\n    kind: NetworkPolicy", "data: {{ .spec.data }}",
			`spec: {podSelector: {}}`).Replace(with(fill(widgetConfig, ns, name), "drift: {exclusiveFields: [.spec]}"))
		_, counter := startCounted(t, conf)
		applyReady(t, ns, "a", `{data: {key: value}}`)
		atMostWrites(t, counter, 6, "an exclusive field with defaults")
	})
}

// A change while we own an initial field alone must not reset it, and an autoscaler's value survives ours. Its first
// write may come between our last reconciliation and our apply: the value that we remember is then stale.
func TestInitialFields(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), "drift: {initialFields: [.data.count]}")
		var armed atomic.Bool
		cfg := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/a") && armed.CompareAndSwap(true, false) {
				testkit.Patch(t, configMaps, ns, "a", "autoscaler", `{"data":{"count":"5"}}`)
			}
			return next.RoundTrip(r)
		})
		start(t, cfg, conf)
		applyReady(t, ns, "a", `{data: {count: "1", key: old}}`)
		waitData(t, ns, "a", "count", "1")
		testkit.Apply(t, ns, widget("a", `{data: {count: "1", key: second}}`)) // while we own the field alone, leaving it out would reset it
		waitData(t, ns, "a", "key", "second")
		waitData(t, ns, "a", "count", "1")
		armed.Store(true)
		testkit.Apply(t, ns, widget("a", `{data: {count: "1", key: new}}`))
		waitData(t, ns, "a", "key", "new")
		waitData(t, ns, "a", "count", "5")
		testkit.Apply(t, ns, widget("a", `{data: {count: "1", key: newest}}`))
		waitData(t, ns, "a", "key", "newest")
		waitData(t, ns, "a", "count", "5")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

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

// TestEmptyFieldsAreOurs: what others put into a field that we own and that is absent, since it is empty, is drift. It
// is repaired by one request, plan reports it, and so does a restart with a guard. The restart itself costs an apply at
// most.
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
				waitText(t, "", func() string { return valueAt(t, testkit.Get(t, row.resource, ns, "a"), row.path) })
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
			atMostWrites(t, counter, 1, "a restart")
			again.halt()

			tamper()
			found := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, conf).expect(t, "a", "repair a")
			if d := found.Changes[0].Drift; len(d) != 1 || d[0].Manager != "mallory" {
				t.Errorf("plan reports %+v, want what mallory wrote at %s", d, row.path)
			}
			start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			repaired()
		}))
	}
}

// jsonPatch changes the object a as mallory.
func jsonPatch(t *testing.T, resource schema.GroupVersionResource, ns, patch string) *unstructured.Unstructured {
	t.Helper()
	patched := must.Get(testkit.Dynamic(t).Resource(resource).Namespace(ns).Patch(t.Context(), "a", types.JSONPatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "mallory"})).In(t)
	return patched
}

// valueAt returns the value at a path as text, "" for nothing or null.
func valueAt(t *testing.T, u *unstructured.Unstructured, path string) string {
	t.Helper()
	value, ok := fieldpath.Get(u.Object, fieldpath.MustParse(path))
	if !ok || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// TestExclusiveMapThatIsEmpty: keys that others added to a map that is to be empty go, even where its managedFields
// name nobody who added them, so that it cannot be distinguished from a map that we own with all that is in it.
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
		waitThat(t, configMaps, ns, "a", func(u *obj) bool { data, _ := u.Object["data"].(map[string]any); return len(data) == 0 })
	})
}
