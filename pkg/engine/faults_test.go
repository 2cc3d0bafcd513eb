package engine_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Whatever the API server answers, nothing is lost: the reason is reported, and it is tried again, not at once.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, code := range []int{403, 404, 409, 422, 429, 500, 503} {
		t.Run(fmt.Sprint(code), spaced(func(t *testing.T, ns, name string) {
			faults, counter := testkit.NewFaults(), testkit.NewCounter()
			start(t, counter.Wrap(faults.Wrap(testkit.Config(t))), fill(widgetConfig, ns, name)).ready()
			refusal := faults.Answer(code, testkit.On("PATCH", "configmaps"))
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			up := waitCondition(t, widgets, ns, "a", "Ready", "False")
			if _, reason, message := condition(up, "Ready"); reason == "" || message == "" {
				t.Errorf("Ready says %s: %s", reason, message)
			}
			before, end := refusal.Hits(), time.Now().Add(2500*time.Millisecond)
			<-time.After(time.Until(end))
			times := refusal.Times()[before:]
			if n := len(slices.DeleteFunc(times, end.Before)); n > 3 {
				t.Errorf("%d attempts in 2.5 s: the delay is at least 1 s and grows", n)
			}
			refusal.Off()
			waitData(t, ns, "a", "key", "value")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
		}))
	}
}

// What fails for one downstream holds up no other of the same upstream.
func TestFailureOfOneDownstream(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(fill(widgetConfig, ns, name), "    # downstream\n", `  - name: second
    apiVersion: v1
    kind: Secret
    template: |
      metadata: {name: {{ .metadata.name }}}
`, 1)
		conf = replaceOnce(t, conf, "retry: {minDelay: 1s, maxDelay: 10s}", "retry: {minDelay: 5m, maxDelay: 1h}")
		_, faults := startFaulty(t, conf)
		refusal := faults.Answer(500, testkit.On("PATCH", "secrets"))
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		readyIs(t, widgets, ns, "a", "False", "InternalError", "")
		for i := range 3 {
			before := refusal.Hits()
			testkit.Patch(t, configMaps, ns, "a", "somebody", fmt.Sprintf(`{"data":{"key":"tampered-%d"}}`, i))
			waitData(t, ns, "a", "key", "value")
			if n := refusal.Hits() - before; n > 0 {
				t.Errorf("a repair of the one tried the other %d times", n)
			}
		}
		refusal.Off()
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"new"}}}`) // what changes does not wait
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

const lateCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lates.NAME.example.com}
spec:
  group: NAME.example.com
  scope: Namespaced
  names: {kind: Late, plural: lates, singular: late, listKind: LateList}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {
    type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// A kind that is not there at the start is waited for, its removal noticed, its return too; other operators go on.
func TestKindComesAndGoes(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		late := strings.Replace(fill(widgetConfig, ns, name+"-late"), "{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+name+".example.com/v1, kind: Late,", 1)
		start(t, testkit.Config(t), late, fill(widgetConfig, ns, name)).ready()
		metricIs(t, 1, "corollary_operator_state", name+"-late", "reason", "KindMissing")
		applyReady(t, ns, "other", `{data: {key: value}}`)
		one := func(key string) {
			t.Helper()
			testkit.InstallCRDs(t, strings.ReplaceAll(lateCRD, "NAME", name))
			testkit.Eventually(t, patience, func() (bool, string) { // discovery may still have the earlier one
				_, err := testkit.TryApply(t, ns, "{apiVersion: "+name+".example.com/v1, kind: Late, metadata: {name: a}, spec: {data: {key: "+key+"}}}")
				return err == nil, text(err)
			})
			waitData(t, ns, "a", "key", key)
		}
		one("first")
		deleteAndWait(t, crds, "", "lates."+name+".example.com")
		waitMetric(t, 1, "corollary_operator_state", name+"-late", "reason", "KindMissing")
		testkit.Delete(t, configMaps, ns, "a")
		one("second")
		isRepaired(t, ns, "other", "key", "value")
	})
}

// What a response showed and no watch ever did is looked at again: it may be gone by now.
func TestMadeAndGoneUnseen(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, faults := startFaulty(t, fill(widgetConfig, ns, name))
		deaf := faults.Drop(testkit.On("WATCH", "configmaps"))
		unlisted := faults.Drop(testkit.On("LIST", "configmaps"))
		faults.Cut(testkit.On("WATCH", "configmaps"))
		applyReady(t, ns, "a", `{data: {key: value}}`)
		testkit.Delete(t, configMaps, ns, "a")
		unlisted.Off()
		deaf.Off()
		waitData(t, ns, "a", "key", "value")
	})
}

// A refusal that reads differently each time is reported in the status, which gives no reason to try again at once:
// not where the status counts as a new generation, nor where the template reads it.
func TestChangingRefusals(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, kind, template string }{
		{"no subresource", "Plain", "data: {{ .spec.data }}"},
		{"template reads the status", "Widget", `data: {key: {{ .status.summary | default "x" }}}`},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			var refusals atomic.Int64
			counter := testkit.NewCounter()
			cfg := intercepted(testkit.Config(t), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/configmaps/") {
					return next.RoundTrip(r)
				}
				return reply(r, http.StatusForbidden, fmt.Appendf(nil, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
					"message":"denied, request %d"}`, refusals.Add(1))), nil
			})
			conf := strings.NewReplacer("kind: Widget", "kind: "+row.kind, "data: {{ .spec.data }}", row.template).Replace(fill(widgetConfig, ns, name))
			start(t, counter.Wrap(cfg), conf).ready()
			testkit.Apply(t, ns, object(row.kind, "a", `{data: {key: value}}`))
			testkit.Eventually(t, patience, func() (bool, string) { return refusals.Load() > 0, "not tried" })
			end := time.Now().Add(4 * time.Second)
			<-time.After(time.Until(end))
			if n := len(counter.Requests(testkit.Before(end), func(r testkit.Request) bool { return r.Key() == writeDownstream })); n > 6 {
				t.Errorf("%d attempts in 4 s: the delay is at least 1 s and grows", n)
			}
		}))
	}
}

// A lasting conflict costs little, finalizer included.
func TestConflictIsCheap(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		_, counter := startCounted(t, elsewhere(fill(widgetConfig, ns, name), other, ns))
		testkit.Apply(t, other, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: theirs}}`)
		testkit.Apply(t, ns, widget("a", `{namespace: `+other+`, data: {key: value}}`))
		waitCondition(t, widgets, ns, "a", "Ready", "False")
		settle(t, counter)
		end := time.Now().Add(20 * time.Second)
		<-time.After(time.Until(end))
		if n := counter.Total(testkit.Before(end)); n > 4 {
			t.Errorf("%d requests in 20 s: %v", n, counter.Snapshot())
		}
		testkit.Delete(t, configMaps, other, "a")
		waitData(t, other, "a", "key", "value")
	})
}

// An upstream of a megabyte is worked on like any other; one whose downstream the API server finds too large says so,
// and what exists is left alone.
func TestHugeUpstream(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		startMade(t, ns, fill(widgetConfig, ns, name))
		big := strings.Repeat("0123456789abcdef", 1<<16-64) // just under 1 MiB, the most that a ConfigMap takes
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"`+big+`"}}}`)
		waitData(t, ns, "a", "key", big)
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"more":"`+big[:100_000]+`"}}}`)
		up := waitCondition(t, widgets, ns, "a", "Ready", "False")
		if _, reason, message := condition(up, "Ready"); (reason != "TooLarge" && reason != "Rejected") || len(message) > 4096 {
			t.Errorf("Ready says %s, in %d bytes: %.300s", reason, len(message), message)
		}
		waitData(t, ns, "a", "key", big)
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"data":{"key":"small","more":null}}}`)
		waitData(t, ns, "a", "key", "small")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// An object that is no longer wanted before its watch has shown it is removed, too: its event is an echo of the create,
// after which nobody looks at it again.
func TestUnwantedAheadOfItsWatch(t *testing.T) {
	t.Parallel()
	const several, item = "    forEach: {items: self.spec.data}\n    # downstream\n", "item.key"
	for _, row := range []struct {
		reason   string
		change   []string // of widgetConfig
		spec     string
		unwanted string // the change of the upstream, as a merge patch
	}{
		{"it is disabled", []string{"    # downstream\n", "    when: self.spec.?replicas.orValue(1) > 0\n"},
			`{data: {key: a}}`, `{"spec": {"replicas": 0}}`},
		{"its item is gone", []string{"    # downstream\n", several, ".spec.name | default .metadata.name", item},
			`{data: {a: a}}`, `{"spec": {"data": {"a": null}}}`},
		{"its name changes", nil, `{data: {key: a}}`, `{"spec": {"name": "b"}}`},
		{"the upstream loses its label", []string{"namespaces: [NS]}", "namespaces: [NS], labelSelector: {matchLabels: {served: \"yes\"}}}"},
			`{data: {key: a}}`, `{"metadata": {"labels": null}}`},
		{"the upstream does not meet a condition", []string{"namespaces: [NS]}", "namespaces: [NS], " +
			"matchConditions: [{name: served, expression: \"self.metadata.?labels.served.orValue('no') == 'yes'\"}]}"},
			`{data: {key: a}}`, `{"metadata": {"labels": null}}`},
		{"the upstream of several loses its label", []string{
			"namespaces: [NS]}", "namespaces: [NS], labelSelector: {matchLabels: {served: \"yes\"}}}",
			"    # downstream\n", several, ".spec.name | default .metadata.name", item,
		}, `{data: {a: a}}`, `{"metadata": {"labels": null}}`},
	} {
		key, hasSeveral := "key", slices.Contains(row.change, several)
		if hasSeveral {
			key = "a"
		}
		for _, records := range []bool{true, false} { // whether the status records the object, which that of a Widget cannot of several
			if records && hasSeveral {
				continue
			}
			t.Run(row.reason+map[bool]string{true: "/recorded", false: "/not recorded"}[records], spaced(func(t *testing.T, ns, name string) {
				conf := widgetConfig
				if !records {
					conf = strings.Replace(conf, "  downstreams: .status.downstreams\n", "", 1)
				}
				conf = fill(strings.NewReplacer(row.change...).Replace(conf), ns, name)
				watch := &held{resource: "configmaps"}
				start(t, watch.wrap(testkit.Config(t)), conf).ready()
				release := watch.hold()
				testkit.Apply(t, ns, strings.Replace(widget("a", row.spec), "metadata: {", "metadata: {labels: {served: \"yes\"}, ", 1))
				waitData(t, ns, "a", key, "a")
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				testkit.Patch(t, widgets, ns, "a", "author", row.unwanted)
				waitGone(t, configMaps, ns, "a")
				release()
			}))
		}
	}
}

// held keeps back what watches of one resource bring, as long as a test wants it.
type held struct {
	resource string
	mu       sync.Mutex
	until    chan struct{} // nil while everything passes
}

// hold keeps back what comes from now on, until release is called.
func (h *held) hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(chan struct{})
	h.until = until
	return func() { close(until) }
}

func (h *held) wrap(cfg *rest.Config) *rest.Config {
	return intercepted(cfg, func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && request.URL.Query().Has("watch") && strings.HasSuffix(request.URL.Path, "/"+h.resource) {
			response.Body = &heldBody{ReadCloser: response.Body, held: h, ended: request.Context().Done()}
		}
		return response, err
	})
}

type heldBody struct {
	io.ReadCloser
	held  *held
	ended <-chan struct{}
}

func (b *heldBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.held.mu.Lock()
	until := b.held.until
	b.held.mu.Unlock()
	if until != nil {
		select {
		case <-until:
		case <-b.ended:
		}
	}
	return n, err
}

// TestUpstreamGoneAheadOfItsWatch: once the API server has said that an upstream is gone, nothing is made for it any
// more, though its watch is behind. The garbage collector would take it away each time.
func TestUpstreamGoneAheadOfItsWatch(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		watches, counter := &held{resource: "widgets"}, testkit.NewCounter()
		start(t, watches.wrap(counter.Wrap(testkit.Config(t))), fill(widgetConfig, ns, name)).ready()
		applyReady(t, ns, "a", "{data: {key: a}}")

		release := watches.hold()
		testkit.Delete(t, widgets, ns, "a")
		lookedFor := func() time.Time { // before the object is made again, the upstream is looked for
			for _, r := range counter.Requests() {
				if r.Key() == "LIST widgets" && strings.Contains(r.Query, "metadata.name") {
					return r.Sent
				}
			}
			return time.Time{}
		}
		// Time enough for what would be made again after a second.
		const enough = 5 * time.Second
		testkit.Eventually(t, patience, func() (bool, string) {
			at := lookedFor()
			return !at.IsZero() && time.Since(at) > enough, "no event says that the upstream is gone"
		})
		at := lookedFor()
		again := counter.Requests(testkit.Before(at.Add(enough)), func(r testkit.Request) bool { return r.Mutating() && r.Sent.After(at) })
		if len(again) > 0 {
			t.Errorf("there were %d writes for an upstream that is gone, such as %s", len(again), again[0].Key())
		}
		release()
		waitGone(t, configMaps, ns, "a")

		// The next one of that name is another one.
		testkit.Apply(t, ns, widget("a", "{data: {key: b}}"))
		waitData(t, ns, "a", "key", "b")
	})
}
