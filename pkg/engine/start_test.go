package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// stale serves an answer of before in the place of lists of a resource that may come from memory, and no lists in streams.
func stale(cfg *rest.Config, resource string, answer []byte) *rest.Config {
	return intercepted(cfg, func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		query := request.URL.Query()
		switch {
		case query.Get("sendInitialEvents") == "true":
			return reply(request, http.StatusUnprocessableEntity, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)), nil
		case request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/"+resource) && query.Get("resourceVersion") == "0":
			return reply(request, http.StatusOK, answer), nil
		}
		return next.RoundTrip(request)
	})
}

func reply(request *http.Request, code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
}

// TestStartWithAnOldList: an API server without streaming lists may have an old state in memory. A start does not go by it:
// nothing goes back to an older desired state, and nothing is made for an upstream that is gone.
func TestStartWithAnOldList(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := fill(widgetConfig, ns, name)
		r := start(t, testkit.Config(t), conf).ready()
		for _, object := range []string{"changed", "gone", "same"} {
			applyReady(t, ns, object, "{data: {key: old}}")
		}
		old := map[string][]byte{"widgets": rawList(t, widgets, ns), "configmaps": rawList(t, configMaps, ns)}
		testkit.Apply(t, ns, widget("changed", "{data: {key: new}, name: renamed}"))
		waitData(t, ns, "renamed", "key", "new")
		waitGone(t, configMaps, ns, "changed")
		waitCondition(t, widgets, ns, "changed", "Ready", "True")
		testkit.Delete(t, widgets, ns, "gone")
		waitGone(t, configMaps, ns, "gone")
		r.halt()
		counter := testkit.NewCounter()
		watches := &held{resource: "widgets"} // what happened since is not told
		release := watches.hold()
		defer release()
		cfg := watches.wrap(counter.Wrap(testkit.Config(t)))
		for resource, answer := range old {
			cfg = stale(cfg, resource, answer)
		}
		start(t, cfg, conf).ready()
		exactly(t, counter, 0, "a start with an old list", func(r testkit.Request) bool { return r.Verb != "LIST" })
		waitData(t, ns, "renamed", "key", "new")
	})
}

// rawList is a list as the API server sends it.
func rawList(t *testing.T, gvr schema.GroupVersionResource, ns string) []byte {
	t.Helper()
	list, err := testkit.Dynamic(t).Resource(gvr).Namespace(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := list.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestStartLooksOnce: a start with a guard counts each upstream, and reconciles only those for which there is something to do. That
// finds whatever has happened while no process ran, and the others are as if they had been reconciled.
func TestStartLooksOnce(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, operator := testkit.Namespace(t), testkit.Unique(t)
		conf := fill(widgetConfig, ns, operator) + "guard: {maxChanged: 100%, minimum: 1}\n"
		rows := []struct {
			reason string
			change func(name string)
			found  func(name string)
		}{
			{"its object has drifted", func(name string) {
				testkit.Patch(t, configMaps, ns, name, "somebody", `{"data":{"key":"theirs"}}`)
			}, nil},
			{"its object was deleted", func(name string) { testkit.Delete(t, configMaps, ns, name) }, nil},
			{"its object lost the mark of its owner", func(name string) {
				testkit.Patch(t, configMaps, ns, name, "somebody", `{"metadata":{"ownerReferences":null}}`)
			}, func(name string) {
				waitThat(t, configMaps, ns, name, func(u *obj) bool { return len(u.GetOwnerReferences()) == 1 })
			}},
			{"it was changed", func(name string) {
				testkit.Patch(t, widgets, ns, name, "somebody", `{"spec":{"data":{"key":"new"}}}`)
			}, func(name string) { waitData(t, ns, name, "key", "new") }},
			{"its object has another name now", func(name string) {
				testkit.Patch(t, widgets, ns, name, "somebody", `{"spec":{"name":"renamed"}}`)
			}, func(name string) { waitData(t, ns, "renamed", "key", "old"); waitGone(t, configMaps, ns, name) }},
			{"somebody changed its status", func(name string) {
				testkit.Patch(t, widgets, ns, name, "somebody", `{"status":{"conditions":null,"downstreams":null}}`, "status")
			}, nil},
			{"it was deleted", func(name string) { testkit.Delete(t, widgets, ns, name) },
				func(name string) { waitGone(t, configMaps, ns, name); waitGone(t, widgets, ns, name) }},
		}
		const same = 100 // of which nothing has changed
		r := start(t, testkit.Config(t), conf).ready()
		applyMany(t, ns, len(rows)+same, "{data: {key: old}}")
		r.halt()
		for i, row := range rows {
			row.change(named(i))
		}
		looks := metric(t, "corollary_reconcile_seconds", operator)
		start(t, testkit.Config(t), conf).ready()
		for i, row := range rows {
			t.Log(row.reason)
			if row.found != nil {
				row.found(named(i))
			} else {
				waitData(t, ns, named(i), "key", "old")
			}
			if row.reason != "it was deleted" {
				waitCondition(t, widgets, ns, named(i), "Ready", "True")
			}
		}
		n := float64(same + len(rows) - 1)
		testkit.Eventually(t, patience, func() (bool, string) {
			inSync, ready := metric(t, "corollary_objects", operator, "state", "InSync"), metric(t, "corollary_upstreams", operator, "ready", "True")
			return inSync == n && ready == n, fmt.Sprintf("the metrics have %.0f objects in sync and %.0f ready upstreams, want %.0f", inSync, ready, n)
		})
		// One for each that is the same, and a few for the others, whose objects and status change.
		if looks = metric(t, "corollary_reconcile_seconds", operator) - looks; looks > same+8*float64(len(rows)) {
			t.Errorf("it looked %.0f times at %d upstreams", looks, same+len(rows))
		}
		for i := len(rows); i < len(rows)+5; i++ { // what was not reconciled is looked after
			testkit.Patch(t, configMaps, ns, named(i), "somebody", `{"data":{"key":"theirs"}}`)
			waitData(t, ns, named(i), "key", "old")
		}
	})
}

// slowed makes some requests take longer.
func slowed(cfg *rest.Config, by time.Duration, isSlow func(*http.Request) bool) *rest.Config {
	return intercepted(cfg, func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if isSlow(request) {
			<-time.After(by)
		}
		return next.RoundTrip(request)
	})
}

func isWrite(request *http.Request) bool { return request.Method != http.MethodGet }

// TestOverload: while custom resources change faster than they are reconciled, others are not left behind: neither one that an input
// concerns, nor one that a start finds.
func TestOverload(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"input", "start"} {
		t.Run(how, bubbled(func(t *testing.T) {
			const changing = 30
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := strings.Replace(fill(widgetConfig, ns, name), "data: {{ .spec.data }}",
				`data: {key: {{ .spec.data.key }}, setting: {{ (input "settings").data.setting }}}`, 1) +
				"inputs: [{name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings}]\n"
			set := func(setting string) {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {setting: "+setting+"}}")
			}
			set("one")
			testkit.Apply(t, ns, widget("still", "{data: {key: one}}"))
			for i := range changing {
				testkit.Apply(t, ns, widget(named(i), "{data: {key: one}}"))
			}
			// Each takes about 0.4 s, and a change comes every 50 ms.
			start := func() *running {
				return startWith(t, slowed(testkit.Config(t), 200*time.Millisecond, isWrite), func(_ *config.Operator, o *engine.Options) { o.Workers = 1 }, conf)
			}
			r := start()
			waitData(t, ns, "still", "setting", "one")
			if how == "start" {
				r.halt()
			}
			i := 0
			defer again(50*time.Millisecond, func() {
				testkit.Patch(t, widgets, ns, named(i%changing), "load", fmt.Sprintf(`{"spec":{"data":{"key":"v%d"}}}`, i))
				i++
			})()
			set("two")
			if how == "start" {
				start()
			}
			waitData(t, ns, "still", "setting", "two")
		}))
	}
}
