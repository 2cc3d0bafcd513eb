//go:build controlplane

package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	jobs         = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// making is widgetConfig with a downstream of another kind; body is its document without the metadata.
func making(conf, apiVersion, kind, body string) string {
	return strings.NewReplacer("apiVersion: v1\n    kind: ConfigMap", "apiVersion: "+apiVersion+"\n    kind: "+kind,
		"      data: {{ .spec.data }}\n", "      "+strings.ReplaceAll(strings.TrimSpace(body), "\n", "\n      ")+"\n").Replace(conf)
}

const statefulSetBody = `
spec:
  serviceName: {{ .spec.data.service }}
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: a
        image: {{ .spec.data.image }}
`

const jobBody = `
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: a
        image: {{ .spec.data.image }}
`

// waitDownstream waits until the status says of the downstream config that it is in a state.
func waitDownstream(t *testing.T, ns, name, want string) *unstructured.Unstructured {
	t.Helper()
	var u *unstructured.Unstructured
	testkit.Eventually(t, patience, func() (bool, string) {
		u = testkit.Get(t, widgets, ns, name)
		state := downstreamsOf(u)["config"]["state"]
		_, reason, message := condition(u, "Ready")
		return state == want, fmt.Sprintf("it is %v; %s: %s", state, reason, message)
	})
	return u
}

// waitRejected waits until the API server's refusal is in the condition, with these words.
func waitRejected(t *testing.T, ns, name string, words ...string) {
	t.Helper()
	waitRefused(t, ns, name, "Rejected", words...)
}

func waitRefused(t *testing.T, ns, name, want string, words ...string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		_, reason, message := condition(testkit.Get(t, widgets, ns, name), "Ready")
		all := reason == want
		for _, word := range words {
			all = all && strings.Contains(message, word)
		}
		return all, reason + ": " + message
	})
}

// forgedRefusal is what a webhook says that writes as the API server's own validation does.
func forgedRefusal(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: `StatefulSet.apps "a" is invalid: spec: Forbidden: no`,
		Details: &metav1.StatusDetails{Group: "apps", Kind: "StatefulSet", Name: "a", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeForbidden, Field: "spec", Message: "Forbidden: updates to statefulset spec are forbidden"}}},
	}}
}

// TestRecreateUnderAFreeze: updatePolicy Recreate deletes nothing where admission refuses updates, whether the change is to
// a field that is immutable as well or not.
func TestRecreateUnderAFreeze(t *testing.T) {
	t.Parallel()
	freeze := func(expression string) func(t *testing.T, ns string) func() {
		return func(t *testing.T, ns string) func() {
			return testkit.Policy(t, ns, "Validating", "UPDATE", "apps", "statefulsets", fmt.Sprintf("  validations: [{expression: %q, message: frozen}]", expression))
		}
	}
	for _, row := range []struct {
		name   string
		deny   func(t *testing.T, ns string) func()
		change string
		want   string
		lifts  bool // whether the object is recreated once nothing denies it
	}{
		{"a change that could be made", freeze("false"), `{image: b, service: a}`, "Denied", false},
		{"a change to an immutable field", freeze("false"), `{image: a, service: b}`, "Rejected", true},
		{"a policy about the spec", freeze("object.spec == oldObject.spec"), `{image: b, service: b}`, "Rejected", true},
		{"a webhook that names a field", func(t *testing.T, ns string) func() {
			testkit.Webhook(t, ns, "Validating", "UPDATE", "statefulsets", forgedRefusal)
			return nil
		}, `{image: b, service: a}`, "Rejected", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			start(t, testkit.Config(t), with(making(fill(widgetConfig, ns, name), "apps/v1", "StatefulSet", statefulSetBody), "updatePolicy: Recreate")).ready()
			testkit.Apply(t, ns, widget("a", `{data: {image: a, service: a}}`))
			waitDownstream(t, ns, "a", "InSync")
			before := testkit.Get(t, statefulSets, ns, "a")
			lift := row.deny(t, ns)
			probe := func(image string) error {
				_, err := testkit.TryApply(t, ns, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: probe}, spec: {selector: {matchLabels: {app: p}}, template: {metadata: {labels: {app: p}}, spec: {containers: [{name: p, image: "`+image+`"}]}}}}`)
				return err
			}
			if err := probe("p"); err != nil {
				t.Fatal(err)
			}
			n := 0
			testkit.Eventually(t, patience, func() (bool, string) { n++; return probe(fmt.Sprint("p", n)) != nil, "updates are not refused yet" })
			testkit.Apply(t, ns, widget("a", `{data: `+row.change+`}`))
			waitRefused(t, ns, "a", row.want, "not recreated: ")
			if after := testkit.Get(t, statefulSets, ns, "a"); after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
				t.Error("it was deleted")
			}
			if !row.lifts {
				return
			}
			lift()
			testkit.Eventually(t, patience, func() (bool, string) {
				after := testkit.Find(t, statefulSets, ns, "a")
				return after != nil && after.GetUID() != before.GetUID(), "it is not recreated though nothing denies it any more"
			})
			waitDownstream(t, ns, "a", "InSync")
		})
	}
}

// mirror has a webhook change a value of new objects of a kind, and waits until it does. Those that have it stay.
func mirror(t *testing.T, ns, resource string, value func(object map[string]any) (pointer, old string), probe string) {
	t.Helper()
	testkit.Webhook(t, ns, "Mutating", "CREATE", resource, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		response := &admissionv1.AdmissionResponse{Allowed: true}
		var object map[string]any
		if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
			return response
		}
		pointer, old := value(object)
		if old == "" || strings.HasPrefix(old, "mirror/") {
			return response
		}
		json := admissionv1.PatchTypeJSONPatch
		response.PatchType, response.Patch = &json, []byte(fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %q}]`, pointer, "mirror/"+old))
		return response
	})
	n := 0
	testkit.Eventually(t, patience, func() (bool, string) {
		n++
		made := testkit.Apply(t, ns, strings.ReplaceAll(probe, "PROBE", fmt.Sprint("probe-", n)))
		_, now := value(made.Object)
		return strings.HasPrefix(now, "mirror/"), "new objects are not changed yet"
	})
}

func imageOf(job map[string]any) (pointer, image string) {
	containers, _, _ := unstructured.NestedSlice(job, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return "", ""
	}
	image, _ = containers[0].(map[string]any)["image"].(string)
	return "/spec/template/spec/containers/0/image", image
}

// TestRestartOverMutatedJobs: what admission changed of an immutable field on creation is nothing to repair: not after a
// restart, whatever the update policy, and whether the status records what the apply returned or not. What can be changed is
// still repaired.
func TestRestartOverMutatedJobs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		policy   string
		recorded bool
	}{{"Apply", true}, {"Apply", false}, {"Recreate", true}, {"Recreate", false}} {
		t.Run(fmt.Sprint(row.policy, " ", row.recorded), func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			mirror(t, ns, "jobs", imageOf, `{apiVersion: batch/v1, kind: Job, metadata: {name: PROBE}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`)
			conf := with(making(fill(widgetConfig, ns, name), "batch/v1", "Job", jobBody), "updatePolicy: "+row.policy)
			if !row.recorded {
				conf = strings.Replace(conf, "  downstreams: .status.downstreams\n", "", 1)
			}
			counter := testkit.NewCounter()
			r := start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {image: a}}`))
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, jobs, ns, "a") != nil, "no Job" })
			quiet(t, counter)
			before := testkit.Get(t, jobs, ns, "a")
			r.halt()
			counter.Reset()
			start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			quiet(t, counter)
			if n := counter.Total(func(r testkit.Request) bool { return r.Verb != "LIST" }); row.recorded && n > 0 {
				t.Errorf("a restart takes %d requests: %v", n, counter.Snapshot())
			}
			stays := func() {
				t.Helper()
				after := testkit.Get(t, jobs, ns, "a")
				if _, image := imageOf(after.Object); after.GetUID() != before.GetUID() || image != "mirror/a" {
					t.Errorf("the Job %s is %s now, its image %s", before.GetUID(), after.GetUID(), image)
				}
				if _, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready"); reason != "Progressing" {
					t.Errorf("it is %s: %s", reason, message)
				}
			}
			stays()
			testkit.Patch(t, jobs, ns, "a", "somebody", `{"spec":{"parallelism":3}}`)
			testkit.Eventually(t, patience, func() (bool, string) {
				n, _, _ := unstructured.NestedInt64(testkit.Get(t, jobs, ns, "a").Object, "spec", "parallelism")
				return n == 1, fmt.Sprint("parallelism is ", n)
			})
			quiet(t, counter)
			stays()
		})
	}
}

// TestImmutableDrift: a difference in an immutable field that admission did not make is no reason to recreate an object
// whose document has not changed; the condition says what to do.
func TestImmutableDrift(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "Recreate"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			counter := testkit.NewCounter()
			made(t, with(fill(widgetConfig, ns, name), "updatePolicy: "+policy), ns, counter)
			before := testkit.Get(t, configMaps, ns, "a")
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"},"immutable":true}`)
			waitRejected(t, ns, "a", "has not changed", "delete "+ns+"/a")
			if testkit.Get(t, configMaps, ns, "a").GetUID() != before.GetUID() {
				t.Error("it was recreated")
			}
			testkit.Delete(t, configMaps, ns, "a")
			waitData(t, ns, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		})
	}
}
