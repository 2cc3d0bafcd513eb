package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// loop is one way in which writes could go on forever.
type loop struct {
	name, reason string
	// change replaces text of ownInput or widgetConfig, pair by pair.
	change []string
	own    bool // ownInput
	// disturb is what another writer does again and again; nil where there is none.
	disturb func(o opponent)
	// before prepares the namespace.
	before func(o opponent)
	// silent: nothing is written to the status.
	silent bool
	// says are parts of its report.
	says []string
	// inStatus: the status reports it, too, not only metric, event and log.
	inStatus bool
}

// opponent writes in a test's namespace, without failing the test: objects come and go.
type opponent struct {
	t        *testing.T
	ns, name string
}

func (o opponent) patch(resource, object, patch string, subresources ...string) {
	gvr := configMaps
	switch resource {
	case "widgets":
		gvr = widgets
	case "secrets":
		gvr = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	}
	_, _ = testkit.Dynamic(o.t).Resource(gvr).Namespace(o.ns).Patch(context.Background(), object, types.MergePatchType, []byte(strings.ReplaceAll(patch, "NAME", o.name)),
		metav1.PatchOptions{FieldManager: "opponent"}, subresources...)
}

// live is a ConfigMap, nil where there is none.
func (o opponent) live(object string) *unstructured.Unstructured {
	u, err := testkit.Dynamic(o.t).Resource(configMaps).Namespace(o.ns).Get(context.Background(), object, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return u
}

func (o opponent) delete(object string) {
	_ = testkit.Dynamic(o.t).Resource(configMaps).Namespace(o.ns).Delete(context.Background(), object, metav1.DeleteOptions{})
}

const (
	withoutStatus = "status: {enabled: false}\n"
	hashKey       = "NAME.example.com/hash"
	dropsHash     = `{"metadata":{"annotations":{"` + hashKey + `":null}}}`
)

// statusOff turns the writing of the status off.
func statusOff(text string) string {
	head, tail, _ := strings.Cut(text, "status:\n  conditions")
	_, tail, _ = strings.Cut(tail, "events:")
	return head + withoutStatus + "events:" + tail
}

// ownInput is widgetConfig whose template may read the ConfigMap that it makes, as input own.
const ownInput = `inputs:
  - {name: own, apiVersion: v1, kind: ConfigMap, objectName: self.metadata.name, missing: Allow}
downstreams:
`

var loops = []loop{
	{name: "value", reason: "another writer undoes a value",
		disturb: func(o opponent) { o.patch("configmaps", "a", `{"data":{"key":"theirs"}}`) }, inStatus: true, says: []string{"opponent", ".data.key"}},
	{name: "hash-of-secret", reason: "the status does not have the hash of a Secret to compare with",
		change:  []string{"kind: ConfigMap", "kind: Secret", "data: {{ .spec.data }}", "stringData: {{ .spec.data }}"},
		disturb: func(o opponent) { o.patch("secrets", "a", dropsHash) }, inStatus: true, says: []string{".metadata.annotations"}},
	{name: "hash-without-status", reason: "no status has the hash",
		silent: true, disturb: func(o opponent) { o.patch("configmaps", "a", dropsHash) }, says: []string{".metadata.annotations"}},
	{name: "another-hash", reason: "somebody writes a hash of his own", silent: true,
		disturb: func(o opponent) {
			o.patch("configmaps", "a", strings.Replace(dropsHash, "null", `"theirs"`, 1))
		}, says: []string{"opponent", ".metadata.annotations"}},
	{name: "label", reason: "without its label the watch no longer shows the object",
		disturb: func(o opponent) { o.patch("configmaps", "a", `{"metadata":{"labels":null}}`) }, inStatus: true},
	{name: "delete", reason: "somebody deletes it", disturb: func(o opponent) { o.delete("a") }, inStatus: true, says: []string{"deleting"}},
	{name: "delete-without-status", reason: "somebody deletes it", silent: true, disturb: func(o opponent) { o.delete("a") }, says: []string{"deleting"}},
	{name: "own-output", reason: "the template reads what it makes", own: true, inStatus: true, says: []string{"input own"},
		change: []string{"data: {{ .spec.data }}", `data: {count: "{{ add1 (int ((input "own").data.count | default "0")) }}"}`}},
	{name: "own-output-without-status", reason: "the same where no status is written", own: true, silent: true, says: []string{"input own"},
		change: []string{"data: {{ .spec.data }}", `data: {count: "{{ add1 (int ((input "own").data.count | default "0")) }}"}`}},
	{name: "own-existence", reason: "when reads what it makes: made and deleted in turns", own: true, inStatus: true, says: []string{"input own"},
		change: []string{"    # downstream", "    when: inputs.own == null\n    # downstream"}},
	{name: "immutable", reason: "each change deletes and makes anew", own: true, inStatus: true, says: []string{"input own"},
		change: []string{"data: {{ .spec.data }}", "immutable: true\n      data: {count: \"{{ add1 (int ((input \"own\").data.count | default \"0\")) }}\"}\n    updatePolicy: Recreate"}},
	{name: "own-status", reason: "the template reads what status.fields writes of its output", inStatus: true, says: []string{"status.fields[0]", ".status.count"},
		change: []string{"data: {{ .spec.data }}", `data: {count: "{{ .status.count | default 0 }}"}`, "events:",
			"  fields: [{path: .status.count, value: 'int(downstreams.config.?data.?count.orValue(\"0\")) + 1'}]\nevents:"}},
	{name: "own-name", reason: "it moves with what status.fields writes", inStatus: true, says: []string{"status.fields[0]"},
		change: []string{"name: {{ .spec.name | default .metadata.name }}", `name: "a-{{ .status.count | default 0 }}"`, "events:",
			"  fields: [{path: .status.count, value: 'self.?status.?count.orValue(0) + 1'}]\nevents:"}},
	{name: "status-of-status", reason: "a field of the status that grows with each write", says: []string{"status.fields[0]", ".status.count"},
		change: []string{"    # downstream", "    when: self.?status.?count.orValue(0) >= 0\n    # downstream", "events:", "  fields: [{path: .status.count, value: 'self.?status.?count.orValue(0) + 1'}]\nevents:"}},
	{name: "status", reason: "somebody writes over the status", says: []string{"opponent"},
		disturb: func(o opponent) {
			o.patch("widgets", "a", `{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"Mine","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`, "status")
		}},
	{name: "finalizer", reason: "somebody takes the finalizer off", inStatus: true, says: []string{"finalizer"},
		change:  []string{"owner: {annotation: NAME.example.com/owner}", "owner: {annotation: NAME.example.com/owner, reference: false}"},
		disturb: func(o opponent) { o.patch("widgets", "a", `{"metadata":{"finalizers":null}}`) }},
	{name: "own-finalizer", reason: "when reads the finalizer that it asks for", says: []string{"finalizer"},
		change: []string{"owner: {annotation: NAME.example.com/owner}", "owner: {annotation: NAME.example.com/owner, reference: false}",
			"    # downstream", "    when: size(self.metadata.?finalizers.orValue([])) == 0\n    # downstream"}},
	{name: "adoption", reason: "somebody replaces it by one of his own, which is adopted each time", inStatus: true,
		change: []string{"    # downstream", "    adoptionPolicy: IfUnowned\n    # downstream"},
		disturb: func(o opponent) {
			if u := o.live("a"); u != nil && len(u.GetLabels()) > 0 {
				o.delete("a")
				_, _ = testkit.TryApply(o.t, o.ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {theirs: x}}")
			}
		}},
	{name: "leftover", reason: "somebody makes what is no longer wanted, again and again, as if he were this operator",
		change: []string{"    # downstream", "    when: 'false'\n    # downstream"}, says: []string{"recreating"},
		disturb: func(o opponent) {
			up, err := testkit.Dynamic(o.t).Resource(widgets).Namespace(o.ns).Get(context.Background(), "a", metav1.GetOptions{})
			if err != nil || o.live("a") != nil {
				return
			}
			obj := &unstructured.Unstructured{}
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"NAME.example.com/managed":"yes"},"ownerReferences":[
				{"apiVersion":"test.example.com/v1","kind":"Widget","name":"a","uid":%q,"controller":true}]}}`, up.GetUID())
			if json.Unmarshal([]byte(strings.ReplaceAll(text, "NAME", o.name)), &obj.Object) == nil {
				_, _ = testkit.Dynamic(o.t).Resource(configMaps).Namespace(o.ns).Apply(context.Background(), "a", obj, metav1.ApplyOptions{FieldManager: o.name, Force: true})
			}
		}},
}

// config is the loop's config in a namespace.
func (l loop) config(ns, name string) string {
	text := widgetConfig
	if l.own {
		text = strings.Replace(text, "downstreams:\n", ownInput, 1)
	}
	text = strings.NewReplacer(l.change...).Replace(text)
	text = strings.Replace(text, "retry: {minDelay: 1s, maxDelay: 10s}", "retry: {minDelay: 2s, maxDelay: 1h}", 1)
	text = strings.Replace(text, "events: None", "events: Warnings", 1)
	if l.silent {
		text = statusOff(text)
	}
	return fill(text, ns, name)
}

// Writes that do not settle are made at growing intervals, whatever the state is called, and reported with their cause:
// in the condition, the metric, an event and the log.
func TestNothingIsWrittenForever(t *testing.T) {
	t.Parallel()
	for _, l := range loops {
		t.Run(l.name, bubbled(l.check))
	}
}

// check runs an operator in the loop.
func (l loop) check(t *testing.T) {
	o := opponent{t, testkit.Namespace(t), testkit.Unique(t)}
	if l.before != nil {
		l.before(o)
	}
	_, counter := startCounted(t, l.config(o.ns, o.name))
	testkit.Apply(t, o.ns, widget("a", `{data: {key: value}}`))
	end := func() {}
	if l.disturb != nil {
		end = again(10*time.Millisecond, func() { l.disturb(o) })
		t.Cleanup(end)
	}
	l.isReported(t, o)
	counter.Reset()
	over := time.Now().Add(6 * time.Second)
	<-time.After(time.Until(over))
	// 2 s, 4 s, 8 s …: three attempts at most, if one had just begun, each with what goes with it: reads and dry runs
	// before, the status after. Without a delay there would be ten times as many.
	own := func(r testkit.Request) bool { return r.Resource != "events" && testkit.Before(over)(r) }
	if n, writes := counter.Total(own), counter.Mutating(own); n > 30 || writes > 12 {
		t.Errorf("%s: %d requests in 6 s, %d of them writes: %v", l.reason, n, writes, counter.Snapshot())
	}
	if end(); l.disturb != nil && l.inStatus {
		waitCondition(t, widgets, o.ns, "a", "Ready", "True")
		if l.name == "value" || l.name == "delete" {
			waitData(t, o.ns, "a", "key", "value")
		}
	}
}

// Whoever changes what an upstream asks for, or an input, however often, is followed at once.
func TestBurstsAreNotHeldBack(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(withInputs(ns, name, "events: None", "events: Warnings", "minDelay: 1s, maxDelay: 10s", "minDelay: 10m, maxDelay: 1h"),
			"greeting: {{ param", "key: {{ .spec.data.key }}\n        greeting: {{ param", 1)
		start(t, testkit.Config(t), conf).ready()
		applySettings(t, ns, "shared", "0")
		testkit.Apply(t, ns, widget("a", `{name: shared, data: {key: "0"}}`))
		for i := range 50 {
			value := strconv.Itoa(i % 7)
			testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"`+value+`"}}}`)
			if i%5 == 0 {
				waitData(t, ns, "a-copy", "key", value)
			}
			applySettings(t, ns, "shared", strconv.Itoa(i))
			if i%7 == 0 {
				waitData(t, ns, "a-copy", "color", strconv.Itoa(i))
			}
		}
		waitData(t, ns, "a-copy", "key", "0")
		waitData(t, ns, "a-copy", "color", "49")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		for _, e := range testkit.List(t, events, ns, "") {
			if e.Object["reason"] == "Contested" {
				t.Errorf("a burst is taken for a contest: %v", e.Object["note"])
			}
		}
	})
}

// isReported waits until metric, event and, where it is to have one, condition say what goes on.
func (l loop) isReported(t *testing.T, o opponent) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		have := metric(t, "corollary_objects", o.name, "state", "Contested") + metric(t, "corollary_upstreams", o.name, "reason", "Contested")
		return have > 0, "no metric says Contested"
	})
	for _, text := range append(l.says, "") {
		waitEvent(t, o.ns, "a", "Contested", strings.ReplaceAll(text, "NAME", o.name))
	}
	if !l.inStatus {
		return
	}
	testkit.Eventually(t, patience, func() (bool, string) {
		status, reason, message := condition(testkit.Get(t, widgets, o.ns, "a"), "Ready")
		ok := status == "False" && reason == "Contested"
		for _, text := range l.says {
			ok = ok && strings.Contains(message, text)
		}
		return ok, status + " " + reason + ": " + message
	})
}

// again does something again and again until the function that it returns is called.
func again(every time.Duration, do func()) (end func()) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(every):
				do()
			}
		}
	})
	return sync.OnceFunc(func() { close(stop); done.Wait() })
}

// Admission changes the label that the watch selects by: nobody sees the object. That is said, and it is tried again as
// seldom as anything.
func TestHiddenByAdmission(t *testing.T) {
	for policy, line := range map[string]string{"update": "", "created only": "updatePolicy: CreateOnly", "report": "drift: {policy: Report}"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			var writes atomic.Int64
			var allows atomic.Bool
			mutated := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if strings.Contains(r.URL.Path, "/configmaps/") && r.Method == http.MethodPatch && !allows.Load() {
					writes.Add(1)
					body, err := io.ReadAll(r.Body)
					if err != nil {
						return nil, err
					}
					body = bytes.ReplaceAll(body, []byte(`/managed":"yes"`), []byte(`/managed":"no"`))
					r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				}
				return next.RoundTrip(r)
			})
			start(t, mutated, with(fill(widgetConfig, ns, name), line)).ready()
			testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
			for range 60 {
				<-time.After(time.Minute)
				status, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready")
				if status != "False" || reason != "Contested" || !strings.Contains(message, "admission changes the labels") {
					t.Fatalf("Ready is %s, %s: %s", status, reason, message)
				}
			}
			if n := writes.Load(); n > 2*60*6+4 { // retry.maxDelay is 10 s
				t.Errorf("%d writes in an hour", n)
			}
			allows.Store(true)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			waitThat(t, configMaps, ns, "a", func(u *obj) bool { return u.GetLabels()[name+".example.com/managed"] == "yes" })
		}))
	}
}
