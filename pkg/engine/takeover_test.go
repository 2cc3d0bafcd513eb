package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// following starts a config that follows an activation, which begins and ends as the test says.
func following(t *testing.T, conf string) (*leadership.Tenure, *testkit.Counter, *running) {
	t.Helper()
	tenure, counter := leadership.NewTenure("lock", time.Hour, logr.Discard()), testkit.NewCounter()
	r := startWith(t, counter.Wrap(testkit.Config(t)), func(_ *config.Operator, o *engine.Options) {
		o.Activation = func(*load.File) (*leadership.Tenure, error) { return tenure, nil }
	}, conf)
	return tenure, counter, r.ready()
}

// TestStandbyDecides: a cluster that is not active decides, and writes nothing, whatever happens; events neither. When
// it becomes active, it does what it had decided, and stops when it is not active any more.
func TestStandbyDecides(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		tenure, counter, _ := following(t, strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: All", 1))
		for round, why := range []error{errors.New("lost"), errors.New("lost again")} {
			object := "w" + string(rune('a'+round))
			testkit.Apply(t, ns, widget(object, "{data: {key: one}}"))
			waitObserved(t, name, "Create", 1)
			if counter.Mutating() > 0 {
				t.Fatalf("round %d: a standby wrote: %v", round, counter.Snapshot())
			}
			if metric(t, "corollary_operator_state", name, "reason", "Standby") != 1 {
				t.Errorf("round %d: its state is not Standby", round)
			}
			tenure.Restart()
			tenure.Renew(leadership.Now())
			waitData(t, ns, object, "key", "one")
			waitCondition(t, widgets, ns, object, "Ready", "True")
			waitObserved(t, name, "Create", 0)
			quiet(t, counter)
			tenure.End(why)
			waitMetric(t, 1, "corollary_operator_state", name, "reason", "Standby")
			counter.Reset()
			testkit.Patch(t, configMaps, ns, object, "somebody", `{"data":{"key":"two"}}`)
			testkit.Delete(t, widgets, ns, object)
			quiet(t, counter)
		}
	})
}

// TestDeselectedInAPassiveCluster: while nothing acts in a cluster, nothing can say that an upstream which loses its
// label will lose its objects. It keeps them, whether the process was restarted since or not.
func TestDeselectedInAPassiveCluster(t *testing.T) {
	for kind, selection := range servedOnly {
		t.Run(kind, spaced(func(t *testing.T, ns, name string) {
			testkit.Apply(t, ns, widget("a", "{data: {key: value}}"))
			serve(t, ns, "yes")
			tenure, _, _ := following(t, watched(fill(widgetConfig, ns, name)+"guard: {maxDeleted: 100%}\n", selection))
			tenure.Renew(leadership.Now())
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			tenure.End(errors.New("lost"))
			waitMetric(t, 1, "corollary_operator_state", name, "reason", "Standby")
			serve(t, ns, "no")
			<-time.After(10 * time.Minute)
			tenure.Restart()
			tenure.Renew(leadership.Now())
			waitMetric(t, 1, "corollary_operator_state", name, "reason", "Running")
			<-time.After(10 * time.Minute)
			mustExist(t, configMaps, ns, "a", "no status said that it would go")
			waitCondition(t, widgets, ns, "a", "Ready", "Unknown") // Leftover
		}))
	}
}

// TestActivationLostAtWork: what is under way when the activation is lost fails, is not written, and is done once it is
// back.
func TestActivationLostAtWork(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		tenure, counter, _ := following(t, fill(widgetConfig, ns, name))
		const many = 40
		for i := range many {
			testkit.Apply(t, ns, widget("w"+string(rune('a'+i%26))+string(rune('a'+i/26)), "{data: {key: one}}"))
		}
		made := func() int { return len(testkit.List(t, configMaps, ns, selector(name))) }
		for made() < many {
			tenure.Restart()
			tenure.Renew(leadership.Now())
			before := made()
			testkit.Eventually(t, patience, func() (bool, string) { return made() > before || made() == many, "nothing is made" })
			tenure.End(errors.New("lost"))
			ended := time.Now()
			late := func() []testkit.Request {
				return counter.Requests(func(r testkit.Request) bool { return r.Mutating() && !testkit.Before(ended)(r) })
			}
			testkit.Eventually(t, patience, func() (bool, string) {
				open := slices.ContainsFunc(late(), func(r testkit.Request) bool { return r.Code == 0 && r.Err == nil })
				return metric(t, "corollary_operator_state", name, "reason", "Standby") == 1 && !open, "it does not stand by"
			})
			for _, r := range late() {
				if refused := (*leadership.RefusedError)(nil); !errors.As(r.Err, &refused) || refused.Sent {
					t.Errorf("sent after the end: %+v", r)
				}
			}
		}
	})
}

// TestUnknownActivation: an operator whose activation this process takes no part in does nothing at all.
func TestUnknownActivation(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name, counter := testkit.Namespace(t), testkit.Unique(t), testkit.NewCounter()
		testkit.Apply(t, ns, widget("one", "{data: {key: one}}"))
		r := startWith(t, counter.Wrap(testkit.Config(t)), func(_ *config.Operator, o *engine.Options) {
			o.Activation = func(*load.File) (*leadership.Tenure, error) { return nil, errors.New("no part in it") }
		}, fill(widgetConfig, ns, name))
		r.waitUnready("no part in it")
		if counter.Mutating() > 0 {
			t.Errorf("it wrote: %v", counter.Snapshot())
		}
	})
}

// TestActivationIsBack: a config that was refused since its activation was missing is tried again once that is back, at
// a start and as a changed one.
func TestActivationIsBack(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{false, true} {
		t.Run(fmt.Sprint("changed ", changed), bubbled(func(t *testing.T) {
			ns, name, missing := testkit.Namespace(t), testkit.Unique(t), new(atomic.Bool)
			testkit.Apply(t, ns, widget("one", "{data: {key: one}}"))
			conf := fill(widgetConfig, ns, name)
			missing.Store(!changed)
			r := startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) {
				o.Activation = func(*load.File) (*leadership.Tenure, error) {
					if missing.Load() {
						return nil, errors.New("no part in it")
					}
					return nil, nil
				}
			}, conf)
			if changed {
				waitData(t, ns, "one", "key", "one")
				missing.Store(true)
				conf = replaceOnce(t, conf, "data: {{ .spec.data }}", "data: {key: two}")
				r.reloadTo(conf)
				r.waitSays("no part in it")
			} else {
				r.waitUnready("no part in it")
			}
			missing.Store(false)
			r.reloadTo(conf)
			waitData(t, ns, "one", "key", map[bool]string{false: "one", true: "two"}[changed])
			r.mustBeReady()
		}))
	}
}

// TestActivationToken: the token is written along with other changes. A takeover rewrites nothing, and neither the
// token nor what others make of the annotation is drift.
func TestActivationToken(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		key := name + ".example.com/token"
		conf := strings.Replace(fill(widgetConfig, ns, name), "conventions:", "conventions:\n  activationToken: {annotation: "+key+"}", 1)
		tenure, counter, first := following(t, conf)
		begin := func(token leadership.Token) {
			t.Helper()
			tenure.Restart()
			tenure.Begin(token, true)
			tenure.Renew(leadership.Now())
		}
		token := func(want string) {
			t.Helper()
			must.Same(t, want, testkit.Get(t, configMaps, ns, "one").GetAnnotations()[key], "the token")
		}
		begin(7)
		applyReady(t, ns, "one", "{data: {key: one}}")
		token("7")
		hash := testkit.Get(t, configMaps, ns, "one").GetAnnotations()[name+".example.com/hash"]

		tenure.End(errors.New("lost"))
		settle(t, counter)
		begin(8)
		quiet(t, counter)
		testkit.Patch(t, configMaps, ns, "one", "somebody", `{"metadata":{"annotations":{"`+key+`":"1"}}}`)
		atMostWrites(t, counter, 0, "after a takeover, and for an edit of the annotation")
		token("1")

		testkit.Patch(t, configMaps, ns, "one", "somebody", `{"data":{"key":"two"}}`)
		waitData(t, ns, "one", "key", "one")
		token("8")
		if now := testkit.Get(t, configMaps, ns, "one").GetAnnotations()[name+".example.com/hash"]; now != hash {
			t.Errorf("the hash has changed from %s to %s", hash, now)
		}
		testkit.Patch(t, configMaps, ns, "one", "somebody", `{"metadata":{"annotations":{"`+key+`":null}}}`)
		counter.Reset()
		atMostWrites(t, counter, 0, "for a removed annotation")

		applyReady(t, ns, "two", "{data: {key: one}}")
		items, _, _ := unstructured.NestedSlice(testkit.Get(t, widgets, ns, "two").Object, "status", "downstreams")
		if item, _ := items[0].(map[string]any); item["baseline"] != nil {
			t.Errorf("the status says that the API server stores something else than was applied: %v", item)
		}
		first.halt()
		tenure, counter, _ = following(t, conf)
		begin(9)
		waitMetric(t, 2, "corollary_objects", name, "state", "InSync")
		atMostWrites(t, counter, 0, "after a restart")
	})
}

// electionTest is a leader, and a standby whose watch of Widgets is held back from some moment on.
type electionTest struct {
	ns      string
	leader  *running
	counter *testkit.Counter // of the standby's requests
	release func()
	elect   func()
}

func startElectionTest(t *testing.T, objects ...string) *electionTest {
	t.Helper()
	s := &electionTest{ns: testkit.Namespace(t), counter: testkit.NewCounter()}
	conf := watched(fill(widgetConfig, s.ns, testkit.Unique(t)), "labelSelector: {matchExpressions: [{key: unserved, operator: DoesNotExist}]}")
	s.leader = start(t, testkit.Config(t), conf).ready()
	for _, object := range objects {
		testkit.Apply(t, s.ns, widget(object, "{data: {key: old}}"))
		waitCondition(t, widgets, s.ns, object, "Ready", "True")
	}
	watches, elected := &held{resource: "widgets"}, make(chan struct{})
	startWith(t, watches.wrap(s.counter.Wrap(testkit.Config(t))), func(_ *config.Operator, o *engine.Options) {
		o.Elected, o.HadOtherLeader = elected, func() bool { return true }
	}, conf).ready()
	s.release = watches.hold()
	s.elect = func() {
		s.leader.halt()
		s.counter.Reset()
		close(elected)
	}
	return s
}

// TestElectedWithALaggingWatch: whoever takes over while its watch of the upstreams is behind does not go back to an
// older desired. Where nothing is to be done, or an upstream came later, nothing is read.
func TestElectedWithALaggingWatch(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		s := startElectionTest(t, "changed", "same")
		testkit.Patch(t, widgets, s.ns, "changed", "somebody", `{"spec":{"data":{"key":"new"}}}`)
		waitData(t, s.ns, "changed", "key", "new")
		waitCondition(t, widgets, s.ns, "changed", "Ready", "True")
		s.elect()
		testkit.Eventually(t, patience, func() (bool, string) { return s.counter.Total() > 1, "it reads nothing" })
		quiet(t, s.counter)
		if n := s.counter.Total(); n != 2 || s.counter.Mutating() > 0 {
			t.Errorf("%d requests: %v; wanted are one about all upstreams and one about that which differs", n, s.counter.Snapshot())
		}
		s.release()
		s.counter.Reset()
		testkit.Apply(t, s.ns, widget("later", "{data: {key: new}}"))
		waitCondition(t, widgets, s.ns, "later", "Ready", "True")
		exactly(t, s.counter, 2, "a new upstream")
		waitData(t, s.ns, "changed", "key", "new")
	})
}

// stale serves an earlier answer instead of lists of a resource that may come from memory, and no lists in streams.
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

// TestStartWithAnOldList: an API server without streaming lists may have an old state in memory. A start does not go by
// it: nothing goes back to an older desired state, and nothing is made for an upstream that is gone.
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
		watches := &held{resource: "widgets"} // what happened since is not shown
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
	list := must.Get(testkit.Dynamic(t).Resource(gvr).Namespace(ns).List(t.Context(), metav1.ListOptions{})).In(t)
	body := must.Get(list.MarshalJSON()).In(t)
	return body
}

// TestStartLooksOnce: a start with a guard counts each upstream, and reconciles only those for which there is something
// to do. That finds whatever has happened while no process ran, and the others are as if they had been reconciled.
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

// TestOverload: while custom resources change faster than they are reconciled, others are not left behind: neither one
// that an input concerns, nor one that a start finds.
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
