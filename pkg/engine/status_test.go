package engine_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	recording "k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/engine/fence"
)

const rule = `validate:
  - {rule: "self.spec.?replicas.orValue(0) <= 20", messageExpression: "'at most 20 replicas, not ' + string(self.spec.replicas)", fieldPath: .spec.replicas}
  - {rule: "size(self.spec.data) > 0", message: data must not be empty}
`

// conditionIs fails if a condition has another status; empty: if there is one.
func conditionIs(t *testing.T, up *unstructured.Unstructured, kind, want string) {
	t.Helper()
	if status, reason, message := condition(up, kind); status != want {
		t.Errorf("%s is %s, want %s: %s: %s", kind, status, want, reason, message)
	}
}

// agree holds kstatus to the verdict that our conditions give.
func agree(t *testing.T, u *unstructured.Unstructured, want kstatus.Status) {
	t.Helper()
	got, err := kstatus.Compute(u)
	if err != nil || got.Status != want {
		t.Errorf("kstatus says %v (%v), want %s: %v", got, err, want, u.Object["status"])
	}
}

func TestReadyRulesAndFields(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := with(fill(widgetConfig, ns, name), "ready:",
			`  rules: [{rule: "downstream.data.?state.orValue('') == 'done'", message: not done}]`,
			`  failed: [{rule: "downstream.data.?state.orValue('') == 'broken'", message: it broke}]`,
			`  messageFrom: downstream.data.?note.orValue('')`)
		conf = strings.Replace(conf, "  downstreams: .status.downstreams\n", `  downstreams: .status.downstreams
  fields:
    - {path: .status.summary, value: "downstreams.config.?data.?note.orValue('none')"}
    - {path: .status.count, value: "size(downstreams.config.data)"}
`, 1)
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		up := readyIs(t, widgets, ns, "a", "False", "Progressing", "not done")
		agree(t, up, kstatus.InProgressStatus)
		testkit.Patch(t, configMaps, ns, "a", "worker", `{"data":{"state":"broken","note":"no disk"}}`)
		waitThat(t, widgets, ns, "a", func(u *obj) bool {
			_, reason, message := condition(u, "Ready")
			summary, _, _ := unstructured.NestedString(u.Object, "status", "summary")
			return reason == "Failed" && strings.Contains(message, "no disk") && summary == "no disk"
		})
		agree(t, testkit.Get(t, widgets, ns, "a"), kstatus.FailedStatus)
		testkit.Patch(t, configMaps, ns, "a", "worker", `{"data":{"state":"done","note":"ok"}}`)
		up = waitCondition(t, widgets, ns, "a", "Ready", "True")
		if n, _, _ := unstructured.NestedInt64(up.Object, "status", "count"); n != 3 {
			t.Errorf("count is %d", n)
		}
	})
}

// Conditions of other writers survive, and so do other fields of the status.
func TestOthersStatus(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startMade(t, ns, fill(widgetConfig, ns, name))
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) {
			list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			list = append(list, map[string]any{"type": "Audited", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"})
			_ = unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
		}, "status")
		atMostWrites(t, counter, 0, "their condition is no business of ours")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		up := waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitData(t, ns, "a", "key", "new")
		conditionIs(t, up, "Audited", "True")
		// Our own one that someone removes comes back.
		testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(u.Object, nil, "status", "conditions")
		}, "status")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// A CRD whose status lacks our fields is served all the same, without a hot loop.
func TestStatusThatStoresNothing(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startCounted(t, strings.Replace(fill(widgetConfig, ns, name), "kind: Widget", "kind: Bare", 1))
		testkit.Apply(t, ns, "{apiVersion: test.example.com/v1, kind: Bare, metadata: {name: a}, spec: {data: {key: value}}}")
		waitData(t, ns, "a", "key", "value")
		atMostWrites(t, counter, 2, "a status that stores nothing")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"}}`)
		waitData(t, ns, "a", "key", "value")
	})
}

// A Secret's digest would let anyone who may read the upstream guess at its content.
func TestSecretHashIsNotInStatus(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("v1\n    kind: ConfigMap", "v1\n    kind: Secret", "data: {{ .spec.data }}", "stringData: {{ .spec.data }}").Replace(fill(widgetConfig, ns, name))
		_, counter := startCounted(t, conf)
		up := applyReady(t, ns, "a", `{data: {key: value}}`)
		if ids := downstreamsOf(up)["config"]; ids["uid"] == nil || ids["hash"] != nil {
			t.Errorf("the status names %v", ids)
		}
		settle(t, counter)
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"metadata":{"labels":{"touched":"yes"}}}`)
		atMostRequests(t, counter, 0, "nothing changed")
	})
}

// An upstream that goes and comes back between two reconciliations is counted once.
func TestRecreatedUpstreamIsCountedOnce(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, fill(widgetConfig, ns, name))
		applyReady(t, ns, "a", `{data: {key: value}}`)
		deaf := faults.Drop(testkit.On("WATCH", "widgets"))
		faults.Cut(testkit.On("WATCH", "widgets"))
		testkit.Delete(t, widgets, ns, "a")
		waitGone(t, configMaps, ns, "a")
		testkit.Apply(t, ns, widget("a", `{data: {key: second}}`))
		deaf.Off()
		waitData(t, ns, "a", "key", "second")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		metricIs(t, 1, "corollary_objects", name)
	})
}

// waitUpstreams waits until one upstream is counted, and that as ready and reason say.
func waitUpstreams(t *testing.T, name, ready, reason string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		all := metric(t, "corollary_upstreams", name)
		return all == 1 && metric(t, "corollary_upstreams", name, "ready", ready, "reason", reason) == 1, "it is not counted as " + ready + " " + reason
	})
}

// An upstream is counted once, by what Ready says, as long as it is there and worked on.
func TestUpstreamsAreCounted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ reason, status string }{
		{"as the status says", "status:\n"},
		{"what Ready would say, where no status is written", "status:\n  enabled: false\n"},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "status:\n", row.status, 1) + rule
			r, faults := startFaulty(t, conf)
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitUpstreams(t, name, "True", "Ready")

			testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"replicas":21}}`)
			waitUpstreams(t, name, "False", "Invalid")

			refusal := faults.Answer(500, testkit.On("PATCH", "configmaps"))
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"replicas":1,"data":{"key":"other"}}}`)
			waitUpstreams(t, name, "False", "InternalError")
			refusal.Off()
			waitUpstreams(t, name, "True", "Ready")

			testkit.Delete(t, widgets, ns, "a")
			waitMetric(t, 0, "corollary_upstreams", name)
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitUpstreams(t, name, "True", "Ready")
			r.halt()
			metricIs(t, 0, "corollary_upstreams", name)
		}))
	}
}

// A status that cannot be written says nothing, so that the count is where it shows; what keeps an upstream that is
// being deleted is counted too, whoever it waits for.
func TestUpstreamsWithFaultsAreCounted(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, fill(widgetConfig, ns, name)+waiting)
		refusal := faults.Answer(500, testkit.On("PATCH", "widgets/status"))
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitUpstreams(t, name, "True", "InternalError")
		refusal.Off()
		waitUpstreams(t, name, "True", "Ready")
		refusal = faults.Answer(500, testkit.On("DELETE", "configmaps"))
		testkit.Delete(t, widgets, ns, "a")
		waitUpstreams(t, name, "False", "InternalError")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":["elsewhere.example.com/hold"]}}`)
		refusal.Off()
		waitUpstreams(t, name, "False", "Deleting")
		testkit.Patch(t, configMaps, ns, "a", "somebody", `{"metadata":{"finalizers":null}}`)
		waitGone(t, widgets, ns, "a")
		waitMetric(t, 0, "corollary_upstreams", name)
	})
}

// TestObservedGeneration: a custom downstream whose controller never writes status.observedGeneration is ready by what
// it confirms and by the rules, once it has said anything; ready.observedGeneration changes that.
func TestObservedGeneration(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		policy, atFirst, written string // whether it is ready without a status, and with one that has no generation
	}{{"", "False", "True"}, {"Auto", "False", "True"}, {"Required", "False", "False"}, {"Optional", "True", "True"}} {
		t.Run("policy "+row.policy, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "apiVersion: v1\n    kind: ConfigMap", "apiVersion: test.example.com/v1\n    kind: Gadget", 1)
			conf = strings.Replace(conf, "      data: {{ .spec.data }}\n", "      spec: {data: {{ .spec.data }}}\n", 1)
			if row.policy != "" {
				conf = with(conf, "ready: {observedGeneration: "+row.policy+"}")
			}
			start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			up := waitCondition(t, widgets, ns, "a", "Ready", row.atFirst)
			if _, _, message := condition(up, "Ready"); row.atFirst == "False" && !strings.Contains(message, "has not seen it yet") {
				t.Errorf("it says %q", message)
			}
			testkit.Update(t, gadgets, ns, "a", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, "done", "status", "summary")
			}, "status")
			if row.written == "True" {
				waitCondition(t, widgets, ns, "a", "Ready", "True")
			}
			testkit.Update(t, gadgets, ns, "a", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, u.GetGeneration()-1, "status", "observedGeneration")
			}, "status")
			waitCondition(t, widgets, ns, "a", "Ready", "False")
			testkit.Update(t, gadgets, ns, "a", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, u.GetGeneration(), "status", "observedGeneration")
			}, "status")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

// Every event whose text is long comes through, cut between two characters wherever the limit falls.
func TestLongEvents(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		client := must.Get(kubernetes.NewForConfig(testkit.Config(t))).In(t)
		broadcaster := recording.NewBroadcaster(&recording.EventSinkImpl{Interface: client.EventsV1()})
		must.Do(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
		t.Cleanup(broadcaster.Shutdown)
		recorder := fence.Recorder{EventRecorder: broadcaster.NewRecorder(scheme.Scheme, "test")}
		up := testkit.Apply(t, ns, widget("a", "{}"))
		notes := map[string]string{"short": "x", "exact": strings.Repeat("x", 1024), "invalid": strings.Repeat("x\xff", 5<<10)}
		for i, r := range map[string]string{"One": "x", "Two": "é", "Three": "…", "Four": "\U0001F600"} {
			for shift := range 4 {
				notes[i+strings.Repeat("I", shift)] = strings.Repeat("x", shift) + strings.Repeat(r, 10<<10)
			}
		}
		for reason, note := range notes {
			recorder.Eventf(up, nil, "Warning", reason, "Test", "%s", note)
		}
		for reason := range notes {
			waitEvent(t, ns, "a", reason, "")
		}
		for _, e := range testkit.List(t, events, ns, "") {
			note, _, _ := unstructured.NestedString(e.Object, "note")
			reason, _, _ := unstructured.NestedString(e.Object, "reason")
			if len(note) > 1024 || !utf8.ValidString(note) || len(notes[reason]) > 1024 && (len(note) < 1017 || !strings.HasSuffix(note, "…")) {
				t.Errorf("the note of %s has %d bytes and ends in %q", reason, len(note), note[max(0, len(note)-8):])
			}
		}
	})
}

// No event goes past the recorder that cuts texts.
func TestEventsHaveOneRecorder(t *testing.T) {
	made := regexp.MustCompile(`\.(GetEventRecorder|NewRecorder)\(`)
	cuts := regexp.MustCompile(`(Recorder\{|EventRecorder: )[\w.()*]+\.(GetEventRecorder|NewRecorder)\(`)
	recorders := 0
	for _, dir := range []string{".", "../cli"} {
		paths := must.Get(filepath.Glob(filepath.Join(dir, "*.go"))).In(t)
		for _, path := range paths {
			text := must.Get(os.ReadFile(path)).In(t)
			n := len(made.FindAll(text, -1))
			if recorders += n; !strings.HasSuffix(path, "_test.go") && n != len(cuts.FindAll(text, -1)) {
				t.Errorf("%s makes a recorder that does not cut texts", path)
			}
		}
	}
	if recorders == 0 {
		t.Error("no recorder is made")
	}
}

// TestStatusIsNotStored: the API server accepts the status and drops it, as it does if objects are stored in a version
// that lacks it. That is logged, and what needs the status waits without a storm of requests.
func TestStatusIsNotStored(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		var writes atomic.Int64
		dropping := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/a/status") && r.Method == http.MethodPatch {
				writes.Add(1)
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				var object map[string]any
				must.Do(t, json.Unmarshal(body, &object))
				delete(object, "status")
				body = must.Get(json.Marshal(object)).In(t)
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return next.RoundTrip(r)
		})
		log := &logText{}
		startWith(t, dropping, log.to, withBefore(ns, name)).ready()
		testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
		<-time.After(time.Hour)
		if n := writes.Load(); n == 0 || n > 2*60*6+20 { // retry.maxDelay is 10 s
			t.Errorf("%d writes in an hour", n)
		}
		if !strings.Contains(log.String(), "the API server does not store .status.conditions") {
			t.Error("the log does not say so")
		}
	})
}
