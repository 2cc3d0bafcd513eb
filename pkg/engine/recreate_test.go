package engine_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
func waitDownstream(t *testing.T, ns, name, want string) *obj {
	t.Helper()
	return waitThat(t, widgets, ns, name, func(u *obj) bool { return downstreamsOf(u)["config"]["state"] == want })
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

// A change of an immutable field together with one of the owner mark, or of a previous name, recreates the object: the
// marks alone cannot be replaced, since the API server refuses the document that has both.
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

// TestRecreateAsksAgain: a deletion that failed is repeated only if a new object can still be created then. The
// generated value would be lost.
func TestRecreateAsksAgain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, text string
		refuses      func(*http.Request) bool
	}{
		{"the right to create is gone", "applying (dry run)", testkit.On("PATCH", "secrets")},
		{"a policy refuses the new object", "type: FieldValueInvalid", testkit.On("CREATE", "secrets")},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := generatedConfig(t, ns, name, "updatePolicy: Recreate")
			conf = replaceOnce(t, conf, "      stringData:", "      type: example.com/{{ .spec.data.key }}\n      stringData:")
			_, faults := startFaulty(t, conf)
			applyKey(t, ns, "a", "old")
			password, pin := generatedOf(t, ns, "a")
			before := testkit.Get(t, secretKind, ns, "a")
			kept := faults.Answer(403, testkit.On("DELETE", "secrets"))
			testkit.Apply(t, ns, widget("a", `{data: {key: new}}`))
			waitsFor(t, widgets, ns, "a", "Denied", "deleting")
			refused := faults.Answer(403, row.refuses)
			kept.Off()
			waitsFor(t, widgets, ns, "a", "", row.text)
			mustBeSame(t, secretKind, before, "nothing can be created in its place")
			refused.Off()
			secretText(t, ns, "a", "key", is("new"))
			generatedIs(t, ns, "a", password, pin)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

// TestImmutableDrift: a difference in an immutable field that admission did not make gives no reason to recreate an
// object whose document has not changed; the condition says what to do.
func TestImmutableDrift(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "Recreate"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			startMade(t, ns, with(fill(widgetConfig, ns, name), "updatePolicy: "+policy))
			before := testkit.Get(t, configMaps, ns, "a")
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"},"immutable":true}`)
			waitsFor(t, widgets, ns, "a", "Rejected", "has not changed", "delete "+ns+"/a")
			mustBeSame(t, configMaps, before, "it is not recreated")
			testkit.Delete(t, configMaps, ns, "a")
			waitData(t, ns, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

// An object that someone deletes and keeps by a finalizer stays in force, so what they change of it is repaired until
// it is gone, and then it is made again. At rest that costs nothing.
func TestTerminatingIsRepaired(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, policy, change string
		stopped, left          bool
	}{
		{reason: "a value is changed", change: `{"data":{"key":"bad"}}`},
		{reason: "a value is removed", change: `{"data":{"key":null}}`},
		{reason: "its marks are removed, too", change: `{"data":{"key":"bad"},"metadata":{"annotations":null,"ownerReferences":null}}`},
		{reason: "while no process runs", change: `{"data":{"key":"bad"}}`, stopped: true},
		{reason: "drift is only reported", policy: "    drift: {policy: Report}\n", change: `{"data":{"key":"bad"}}`, left: true},
		{reason: "it is only created", policy: "    updatePolicy: CreateOnly\n", change: `{"data":{"key":"bad"}}`, left: true},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := fill(widgetConfig, ns, name)
			conf = replaceOnce(t, conf, "    # downstream\n", row.policy)
			operator, counter := startCounted(t, conf)
			applyReady(t, ns, "a", `{data: {key: value}}`)
			made := waitData(t, ns, "a", "key", "value")
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":["a.example.com/hold"]}}`)
			testkit.Delete(t, configMaps, ns, "a")
			const says = "is being deleted and is recreated once it is gone; finalizers hold it: a.example.com/hold"
			eventuallyCondition(t, ns, "a", "False", "Waiting", says)
			if row.stopped {
				operator.halt()
			}
			testkit.Patch(t, configMaps, ns, "a", "somebody", row.change)
			if row.stopped {
				start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			}
			if row.left {
				quiet(t, counter)
				waitData(t, ns, "a", "key", "bad")
			} else {
				waitData(t, ns, "a", "key", "value")
			}
			eventuallyCondition(t, ns, "a", "False", "Waiting", says)
			quiet(t, counter)
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":null}}`)
			waitMadeAgain(t, made)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

// waitMadeAgain waits until there is another ConfigMap of that name, and fails if its data are others.
func waitMadeAgain(t *testing.T, before *obj) {
	t.Helper()
	u := waitThat(t, configMaps, before.GetNamespace(), before.GetName(), func(u *obj) bool { return u.GetUID() != before.GetUID() })
	if have, want := fmt.Sprint(u.Object["data"]), fmt.Sprint(before.Object["data"]); have != want {
		t.Errorf("it is made again with %s, want %s", have, want)
	}
}

// withoutRecord is a config whose status does not record what was created.
func withoutRecord(t *testing.T, conf string) string {
	t.Helper()
	return replaceOnce(t, conf, "  downstreams: .status.downstreams\n", "")
}

// TestDeletionFindsWhatConventionsHide: without status.downstreams, objects that were created under other conventions
// do not show in the watches, and the upstream must not go as if there were none: the garbage collector may delete what
// holds those that are to stay.
func TestDeletionFindsWhatConventionsHide(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		from, to     string // of the conventions
		previous     string // without which the deletion is held
		paused, goes bool
	}{
		{"label", "the watch selects by another value", `managed: "yes"`, `managed: "new"`, "", false, false},
		{"label, paused", "nothing is reconciled before the deletion", `managed: "yes"`, `managed: "new"`, "", true, false},
		{"label, deleted", "no owner reference has it collected", `managed: "yes"`, `managed: "new"`, "", false, true},
		{"field manager", "another manager's owner mark proves nothing", "fieldManager: NAME", "fieldManager: NAME-new", "fieldManager: NAME", false, false},
		{"owner annotation", "nothing says whose the object is", "NAME.example.com/owner}", "NAME.example.com/owned-by}", "owner: {annotation: NAME.example.com/owner}", false, false},
	} {
		t.Run(row.name, spacedTwice(func(t *testing.T, ns, other, name string) {
			from, to, spec := fill(row.from, ns, name), fill(row.to, ns, name), `{namespace: `+other+`, data: {key: value}}`
			conf := fill(widgetConfig, ns, name)
			if !row.goes {
				conf = with(conf, "deletionPolicy: Orphan")
			}
			conf = withoutRecord(t, elsewhere(conf, other, ns))
			r := start(t, testkit.Config(t), conf).ready()
			applyReady(t, ns, "a", spec)
			r.halt()
			changed := replaceOnce(t, conf, from, to)
			if row.paused {
				testkit.Patch(t, widgets, ns, "a", "somebody", fill(`{"metadata":{"annotations":{"NAME.example.com/paused":"true"}}}`, ns, name))
				r = start(t, testkit.Config(t), changed).ready()
			}
			testkit.Delete(t, widgets, ns, "a")
			if !row.paused {
				r = start(t, testkit.Config(t), changed).ready()
			}
			if row.previous != "" {
				waitsFor(t, widgets, ns, "a", "Conflict", "set conventions.previous")
				r.halt()
				start(t, testkit.Config(t), replaceOnce(t, changed, "conventions:\n", "conventions:\n  previous: {"+fill(row.previous, ns, name)+"}\n"))
			}
			waitGone(t, widgets, ns, "a")
			if row.goes {
				waitGone(t, configMaps, other, "a")
				return
			}
			cm := testkit.Get(t, configMaps, other, "a")
			if len(cm.GetAnnotations()) > 0 || len(cm.GetManagedFields()) > 0 {
				t.Errorf("it is not released: %v %v", cm.GetAnnotations(), cm.GetManagedFields())
			}
		}))
	}
}

// TestDeletionReadsAbsentObjectsOnce: what does not exist costs one read, and what is not ours holds nothing.
func TestDeletionReadsAbsentObjectsOnce(t *testing.T) {
	t.Parallel()
	for _, theirs := range []bool{false, true} {
		t.Run(map[bool]string{false: "absent", true: "theirs"}[theirs], spaced(func(t *testing.T, ns, name string) {
			counter := testkit.NewCounter()
			conf := withoutRecord(t, with(fill(widgetConfig, ns, name), "deletionPolicy: Orphan"))
			made(t, conf, ns, counter).halt()
			testkit.Delete(t, configMaps, ns, "a")
			if theirs {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: theirs}}")
			}
			testkit.Delete(t, widgets, ns, "a")
			counter.Reset()
			start(t, counter.Wrap(testkit.Config(t)), conf)
			waitGone(t, widgets, ns, "a")
			exactly(t, counter, 1, "what does not exist is read once", keyed(readDownstream))
			if theirs {
				waitData(t, ns, "a", "key", "theirs")
			}
		}))
	}
}

// Anyone who may create and patch the kind can make an object under our field manager's name. What it has more than the
// template goes with the next apply, as it would if it was added to an object of ours; with CreateOnly it is reported
// once.
func TestMadeUnderOurName(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "CreateOnly"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			up := testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			forged := testkit.Parse(t, strings.NewReplacer("NAME", name, "UID", string(up.GetUID())).Replace(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
			  labels: {NAME.example.com/managed: "yes"}, annotations: {NAME.example.com/hash: v1-forged}, ownerReferences: [
			  {apiVersion: test.example.com/v1, kind: Widget, name: a, uid: UID, controller: true}]}, data: {key: value, evil: added}}`))
			if _, err := testkit.Dynamic(t).Resource(configMaps).Namespace(ns).Apply(t.Context(), "a", forged, metav1.ApplyOptions{FieldManager: name}); err != nil {
				t.Fatal(err)
			}
			conf := strings.Replace(with(fill(widgetConfig, ns, name), "updatePolicy: "+policy), "events: None", "events: Warnings", 1)
			start(t, testkit.Config(t), conf).ready()
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if policy == "CreateOnly" {
				waitEvent(t, ns, "a", "Drifted", "only its field manager says so")
				return
			}
			waitData(t, ns, "a", "evil", "")
		}))
	}
}

// TestElectedKeepsTheNewerRecord: whoever takes over while its watches are behind does not write an older record over
// what the process before has recorded of an object that was made again; in the end the status names the object that is
// there.
func TestElectedKeepsTheNewerRecord(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		s := startElectionTest(t, "a")
		before := testkit.Get(t, configMaps, s.ns, "a").GetUID()
		testkit.Delete(t, configMaps, s.ns, "a")
		var now string
		testkit.Eventually(t, patience, func() (bool, string) {
			cm := testkit.Find(t, configMaps, s.ns, "a")
			if cm == nil || cm.GetUID() == before {
				return false, "it is not made again"
			}
			now = string(cm.GetUID())
			have := downstreamsOf(testkit.Get(t, widgets, s.ns, "a"))["config"]["uid"]
			return have == now, fmt.Sprintf("recorded is %v", have)
		})
		s.elect()
		testkit.Eventually(t, patience, func() (bool, string) { return s.counter.Total() > 0, "it reads nothing" })
		quiet(t, s.counter)
		for _, r := range s.counter.Requests() {
			if r.Key() == writeStatus {
				t.Errorf("it wrote the status: %v", s.counter.Snapshot())
			}
		}
		s.release()
		quiet(t, s.counter)
		if have := downstreamsOf(testkit.Get(t, widgets, s.ns, "a"))["config"]["uid"]; have != now {
			t.Errorf("recorded is %v, the object is %s", have, now)
		}
	})
}

// waitField waits until a field of an object has a value.
func waitField(t *testing.T, gvr schema.GroupVersionResource, ns, name string, want any, fields ...string) *obj {
	t.Helper()
	return waitThat(t, gvr, ns, name, func(u *obj) bool {
		have, _, _ := unstructured.NestedFieldNoCopy(u.Object, fields...)
		return reflect.DeepEqual(have, want)
	})
}

const strategyBody = `
spec:
  strategy: {type: {{ .spec.data.strategy }}}
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: a, image: example.com/a}]}
`

// TestNotRecreatedForADefault: a default that nobody owns, and that the new document does not allow, is removed. With
// updatePolicy Recreate, the object is not deleted for it.
func TestNotRecreatedForADefault(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "Recreate"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			start(t, testkit.Config(t), with(making(fill(widgetConfig, ns, name), "apps/v1", "Deployment", strategyBody), "updatePolicy: "+policy)).ready()
			testkit.Apply(t, ns, widget("a", `{data: {strategy: RollingUpdate}}`))
			before := waitField(t, deployments, ns, "a", "RollingUpdate", "spec", "strategy", "type")
			testkit.Apply(t, ns, widget("a", `{data: {strategy: Recreate}}`))
			after := waitField(t, deployments, ns, "a", map[string]any{"type": "Recreate"}, "spec", "strategy")
			if before.GetUID() != after.GetUID() {
				t.Error("it was deleted and created again")
			}
			waitDownstream(t, ns, "a", "InSync")
		}))
	}
}

// Several Secrets are recreated where a quota has room for one more object: it counts what was deleted until its
// controller has seen that.
func TestRecreatedWithinAQuota(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name, "updatePolicy: Recreate") + "guard: {maxDeleted: 100%}\n"
		typed := func(text string) string {
			return strings.Replace(conf, "      stringData:", "      type: "+text+"\n      stringData:", 1)
		}
		var room atomic.Int64
		room.Store(4)
		limited := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			var creates bool
			if strings.Contains(r.URL.Path, "/secrets") && r.Method != http.MethodGet && r.Method != http.MethodDelete {
				_, err := testkit.Dynamic(t).Resource(secretKind).Namespace(ns).Get(r.Context(), path.Base(r.URL.Path), metav1.GetOptions{})
				creates = err != nil
			}
			switch {
			case !creates:
			case room.Load() == 0:
				return reply(r, http.StatusForbidden, []byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
					"reason": "Forbidden", "message": "exceeded quota"}`)), nil
			case r.URL.Query().Get("dryRun") == "":
				room.Add(-1)
			}
			<-time.After(20 * time.Millisecond)
			return next.RoundTrip(r)
		})
		r := start(t, limited, typed("Opaque")).ready()
		ups := []string{"a", "b", "c"}
		values := map[string]string{}
		for _, up := range ups {
			applyKey(t, ns, up, "value")
			values[up], _ = generatedOf(t, ns, up)
		}
		r.reloadTo(typed("example.com/other"))
		<-time.After(time.Minute)
		recreated := 0
		for _, up := range ups {
			u := testkit.Get(t, secretKind, ns, up) // it fails if there is none
			if have, _ := generatedOf(t, ns, up); have != values[up] {
				t.Errorf("%s has another value", up)
			}
			if kind, _, _ := unstructured.NestedString(u.Object, "type"); kind == "example.com/other" {
				recreated++
			}
		}
		if recreated != 1 {
			t.Errorf("%d were recreated, and there was room for one", recreated)
		}
		room.Store(2) // the quota's controller has counted again
		<-time.After(10 * time.Minute)
		for _, up := range ups {
			waitThat(t, secretKind, ns, up, func(u *obj) bool { return u.Object["type"] == "example.com/other" })
			if have, _ := generatedOf(t, ns, up); have != values[up] {
				t.Errorf("%s has another value", up)
			}
		}
	})
}
