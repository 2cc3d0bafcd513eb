//go:build controlplane

package engine_test

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// TestAdmissionIsNotOpposedForever is TestNothingIsWrittenForever for what admission changes in every request.
func TestAdmissionIsNotOpposedForever(t *testing.T) {
	t.Parallel()
	for _, l := range []loop{
		{name: "hash-at-admission", reason: "admission changes the hash in every request", silent: true, before: anotherHash, says: []string{"admission", "/hash"}},
		{name: "hash-at-admission-with-status", reason: "admission changes the hash in every request", inStatus: true, before: anotherHash, says: []string{"admission", "/hash"}},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.check(t)
		})
	}
}

// anotherHash has admission give ConfigMaps in the namespace another hash, whatever they are written with.
func anotherHash(o opponent) {
	key := o.name + ".example.com/hash"
	pointer := "/metadata/annotations/" + strings.ReplaceAll(key, "/", "~1")
	testkit.Webhook(o.t, o.ns, "Mutating", "CREATE, UPDATE", "configmaps", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		response := &admissionv1.AdmissionResponse{Allowed: true}
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(r.Object.Raw) == nil && object.GetAnnotations()[key] != "" {
			patch := admissionv1.PatchTypeJSONPatch
			response.PatchType, response.Patch = &patch, []byte(fmt.Sprintf(`[{"op": "replace", "path": %q, "value": "theirs"}]`, pointer))
		}
		return response
	})
	probe := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, annotations: {%s: mine}}}", key)
	testkit.Eventually(o.t, patience, func() (bool, string) {
		have := testkit.Apply(o.t, o.ns, probe).GetAnnotations()[key]
		return have == "theirs", "admission leaves the hash at " + have
	})
}

// TestDeniedFields: a value that admission denies keeps nothing else out of the status either. It is tried again from
// time to time, since nothing shows when a policy changes.
func TestDeniedFields(t *testing.T) {
	t.Parallel()
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	lift := testkit.Policy(t, ns, "Validating", "UPDATE", "test.example.com", "widgets/status",
		`  validations: [{expression: "!has(object.status) || !has(object.status.summary) || object.status.summary != 'denied'"}]`)
	testkit.Apply(t, ns, widget("probe", `{data: {key: value}}`))
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).Patch(t.Context(), "probe", types.MergePatchType, []byte(`{"status":{"summary":"denied"}}`), metav1.PatchOptions{}, "status")
		return err != nil, "the policy does not refuse anything yet"
	})
	deleteAndWait(t, widgets, ns, "probe")

	conf := strings.Replace(fill(widgetConfig, ns, name), "  downstreams: .status.downstreams\n", `  downstreams: .status.downstreams
  fields: [{path: .status.summary, value: self.spec.data.key}, {path: .status.count, value: size(self.spec.data)}]
`, 1) + rule
	start(t, testkit.Config(t), conf).ready()
	testkit.Apply(t, ns, widget("a", `{replicas: 1, data: {key: denied}}`))
	waitReason(t, widgets, ns, "StatusFieldRefused", "")
	testkit.Apply(t, ns, widget("a", `{replicas: 21, data: {key: denied}}`))
	waitReason(t, widgets, ns, "Invalid", "")
	testkit.Apply(t, ns, widget("a", `{replicas: 1, data: {key: denied}}`))
	waitReason(t, widgets, ns, "StatusFieldRefused", "")
	lift()
	waitReason(t, widgets, ns, "Ready", "denied")
}

// TestBaselineIsRecorded: what an apply returned outlives the process. Neither a restart nor a reload nor a takeover
// makes a request or reverts anything.
func TestBaselineIsRecorded(t *testing.T) {
	t.Parallel()
	for _, object := range spelled {
		for _, how := range []string{"restart", "reload", "takeover"} {
			t.Run(object.name+" "+how, func(t *testing.T) {
				t.Parallel()
				ns, name := testkit.Namespace(t), testkit.Unique(t)
				conf := making(fill(widgetConfig, ns, name), object.apiVersion, object.kind, object.body)
				if object.mutate {
					mirror(t, ns, "configmaps", keyOf, probeOfKey)
				}
				r, counter := startCounted(t, conf)
				testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
				up := waitDownstream(t, ns, "a", "InSync")
				atMostRequests(t, counter, 4, "a new object") // a status for its progress, and one for its end
				if b := downstreamsOf(up)["config"]["baseline"]; b == nil || b == "" {
					t.Errorf("no baseline is recorded: %v", downstreamsOf(up))
				}
				before := testkit.Get(t, object.gvr, ns, "a")
				counter.Reset()
				replaceBy(t, how, r, counter, name, conf)
				quiet(t, counter)
				if n := counter.Total(func(r testkit.Request) bool { return r.Resource != "widgets" || r.Mutating() }); n > 0 {
					t.Errorf("a %s takes %d requests: %v", how, n, counter.Snapshot())
				}
				after := testkit.Get(t, object.gvr, ns, "a")
				value, _, _ := unstructured.NestedString(after.Object, object.field...)
				if after.GetResourceVersion() != before.GetResourceVersion() || value != object.value {
					t.Errorf("a %s changed it: %v", how, after.Object)
				}
			})
		}
	}
	// Where the status has no place for it, a restart applies such an object once, and then it rests.
	t.Run("unrecorded", func(t *testing.T) {
		t.Parallel()
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		mirror(t, ns, "configmaps", keyOf, probeOfKey)
		conf := withoutRecord(t, fill(widgetConfig, ns, name))
		r, counter := startCounted(t, conf)
		applyReady(t, ns, "a", `{data: {key: value}}`)
		waitData(t, ns, "a", "key", "mirror/value")
		quiet(t, counter)
		replaceBy(t, "restart", r, counter, name, conf)
		waitData(t, ns, "a", "key", "value")
		quiet(t, counter)
	})
}

const probeOfKey = `{apiVersion: v1, kind: ConfigMap, metadata: {name: PROBE}, data: {key: value}}`

// spelled are objects of which the API server stores something else than what is applied.
var spelled = []struct {
	name                   string
	gvr                    schema.GroupVersionResource
	apiVersion, kind, body string
	field                  []string
	value                  string // as it is stored
	mutate                 bool
}{
	{"a value that admission changes on creation", configMaps, "v1", "ConfigMap", "data: {{ .spec.data }}", []string{"data", "key"}, "mirror/value", true},
	{"a quantity", schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}, "v1", "ResourceQuota", `spec: {hard: {cpu: 1000m}}`,
		[]string{"spec", "hard", "cpu"}, "1", false},
}

func keyOf(cm map[string]any) (pointer, value string) {
	value, _, _ = unstructured.NestedString(cm, "data", "key")
	return "/data/key", value
}

// replaceBy puts another process, or another config, in the place of r.
func replaceBy(t *testing.T, how string, r *running, counter *testkit.Counter, name, conf string) {
	t.Helper()
	switch how {
	case "restart":
		r.halt()
		start(t, counter.Wrap(testkit.Config(t)), conf).ready()
	case "reload":
		r.changeTo(name, strings.Replace(conf, "maxDelay: 10s", "maxDelay: 11s", 1))
	case "takeover":
		elected := make(chan struct{})
		startWith(t, counter.Wrap(testkit.Config(t)), func(_ *config.Operator, o *engine.Options) {
			o.Elected, o.HadOtherLeader = elected, func() bool { return true }
		}, conf).ready()
		r.halt()
		close(elected)
	}
}

// TestRecreateUnderAFreeze: updatePolicy Recreate deletes nothing where admission refuses updates, whether the change
// is to a field that is immutable as well or not.
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
			must.Do(t, probe("p"))
			n := 0
			testkit.Eventually(t, patience, func() (bool, string) { n++; return probe(fmt.Sprint("p", n)) != nil, "updates are not refused yet" })
			testkit.Apply(t, ns, widget("a", `{data: `+row.change+`}`))
			waitsFor(t, widgets, ns, "a", row.want, "not recreated: ")
			if after := testkit.Get(t, statefulSets, ns, "a"); after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
				t.Error("it was deleted")
			}
			if !row.lifts {
				return
			}
			lift()
			waitThat(t, statefulSets, ns, "a", func(after *obj) bool { return after.GetUID() != before.GetUID() })
			waitDownstream(t, ns, "a", "InSync")
		})
	}
}

// TestRestartOverMutatedJobs: what admission changed of an immutable field on creation is nothing to repair: not after
// a restart, whatever the update policy, and whether the status records what the apply returned or not. What can be
// changed is still repaired.
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
			r, counter := startCounted(t, conf)
			testkit.Apply(t, ns, widget("a", `{data: {image: a}}`))
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, jobs, ns, "a") != nil, "no Job" })
			quiet(t, counter)
			before := testkit.Get(t, jobs, ns, "a")
			r.restart(counter, conf)
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
			waitField(t, jobs, ns, "a", int64(1), "spec", "parallelism")
			quiet(t, counter)
			stays()
		})
	}
}

// An aggregated API that is unavailable says nothing about its objects: nothing is lost, a deletion waits, all else
// goes on.
func TestAggregatedAPIIsUnavailable(t *testing.T) {
	t.Parallel()
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	source := must.Get(discovered.New(testkit.Config(t))).In(t)
	testkit.Apply(t, "", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.`+name+`.example.com}, spec: {
		group: `+name+`.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
		service: {namespace: `+ns+`, name: none}}}`)
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := source.Served(t.Context(), lates(name).GroupVersion().WithKind("Late"))
		return err != nil && !errors.Is(err, kinds.ErrUnknown), text(err)
	})
	start(t, testkit.Config(t), withLate(fill(widgetConfig, ns, name), name, other)+"deletion: {wait: true}\n").ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{finalizerOf(name)}) })
	waitData(t, ns, "a", "key", "value")
	waitsFor(t, widgets, ns, "a", "Waiting", "asking the API server for the kinds of "+name+".example.com/v1")
	testkit.Delete(t, widgets, ns, "a")
	waitsFor(t, widgets, ns, "a", "Unavailable", "late", name+".example.com/v1")
	waitGone(t, configMaps, ns, "a")
	testkit.Delete(t, services, "", "v1."+name+".example.com")
	waitGone(t, widgets, ns, "a")
}
