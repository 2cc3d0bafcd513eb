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

// A change of an immutable field together with one of the owner mark, or of a previous name, recreates the object: the marks alone cannot be
// replaced, since the API server refuses the document that has both.
func TestRecreatesWithOtherMarks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, old, changed string }{
		{"owner mark", "    # downstream", "    deletionPolicy: Orphan"},
		{"previous name", "NAME.example.com/hash", "NAME.example.com/sum"},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			conf := with(widgetConfig, "updatePolicy: Recreate\n    # downstream")
			before := fill(replaceOnce(t, conf, "data: {{ .spec.data }}", "data: {key: a}\n      immutable: true"), ns, name)
			changed := replaceOnce(t, conf, "data: {{ .spec.data }}", "data: {key: b}\n      immutable: true")
			if changed = replaceOnce(t, changed, row.old, row.changed); row.name == "previous name" {
				changed = replaceOnce(t, changed, "conventions:\n", "conventions:\n  previous: {hash: {annotation: NAME.example.com/hash}}\n")
			}
			r := startWidget(t, ns, before)
			waitData(t, ns, "a", "key", "a")
			r.reloadTo(fill(changed, ns, name))
			waitData(t, ns, "a", "key", "b")
			waitDownstream(t, ns, "a", "InSync")
		}))
	}
}

// TestImmutableDrift: a difference in an immutable field that admission did not make is no reason to recreate an object
// whose document has not changed; the condition says what to do.
func TestImmutableDrift(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "Recreate"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			startMade(t, ns, with(fill(widgetConfig, ns, name), "updatePolicy: "+policy))
			before := testkit.Get(t, configMaps, ns, "a")
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"},"immutable":true}`)
			waitRejected(t, ns, "a", "has not changed", "delete "+ns+"/a")
			mustBeSame(t, configMaps, before, "it is not recreated")
			testkit.Delete(t, configMaps, ns, "a")
			waitData(t, ns, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}
