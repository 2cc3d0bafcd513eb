package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// related has a downstream that reads two others, which are declared after it: what someone writes into a ConfigMap,
// and one of each of several.
func related(ns, name string) string {
	conf := strings.Replace(fill(widgetConfig, ns, name), "  downstreams: .status.downstreams\n", "", 1)
	head, _, _ := strings.Cut(conf, "downstreams:\n")
	return head + `variables:
  - {name: address, expression: downstreams.service.data.address}
downstreams:
  - name: page
    apiVersion: v1
    kind: ConfigMap
    when: downstreams.service.data.?published.orValue('') != 'no'
    template: |
      metadata: {name: "{{ .metadata.name }}-page"}
      data:
        address: {{ variable "address" }}
        port: {{ (downstream "service").data.port }}
        {{- range $name, $worker := downstream "worker" }}
        {{ $name }}: {{ $worker.data.id | default "none" }}
        {{- end }}
  - name: never
    apiVersion: v1
    kind: ConfigMap
    when: size(self.spec.data) > 10
    template: |
      metadata: {name: "{{ (downstream "service").data.never }}"}
  - name: each
    apiVersion: v1
    kind: ConfigMap
    forEach: {items: "downstreams.worker.map(name, name)"}
    template: |
      metadata: {name: "{{ item }}-each"}
  - name: service
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}-service"}
      data: {mine: "yes"}
  - name: worker
    apiVersion: v1
    kind: ConfigMap
    forEach: {items: "self.spec.data"}
    template: |
      metadata: {name: "{{ item.value }}"}
      data: {mine: "yes"}
conventions:
` + strings.SplitN(conf, "conventions:\n", 2)[1]
}

func patchData(t *testing.T, ns, name, data string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, name, "somebody", `{"data":`+data+`}`)
}

// What reads another downstream waits for it and for its fields, follows it, and costs nothing at rest.
func TestSiblings(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Apply(t, ns, widget("w", "{data: {a: one, b: two}}"))
		counter := testkit.NewCounter()
		start(t, counter.Wrap(testkit.Config(t)), related(ns, name))
		eventuallyCondition(t, ns, "w", "False", "Waiting", `page: variable "address": evaluating "downstreams.service.data.address": no such key: address`)
		for _, made := range []string{"one-each", "two-each"} {
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, configMaps, ns, made) != nil, made + " is missing" })
		}
		quiet(t, counter)
		patchData(t, ns, "w-service", `{"address":"10.0.0.1"}`)
		eventuallyCondition(t, ns, "w", "False", "Waiting", `downstream service exists, but (downstream "service").data.port is not set`)
		patchData(t, ns, "w-service", `{"port":"80"}`)
		waitData(t, ns, "w-page", "port", "80")
		waitData(t, ns, "w-page", "address", "10.0.0.1")
		waitData(t, ns, "w-page", "one", "none")
		eventuallyCondition(t, ns, "w", "True", "", "")

		patchData(t, ns, "one", `{"id":"first"}`)
		waitData(t, ns, "w-page", "one", "first")
		testkit.Apply(t, ns, widget("w", "{data: {a: one, c: three}}"))
		waitData(t, ns, "w-page", "three", "none")
		waitData(t, ns, "w-page", "two", "")
		waitGone(t, configMaps, ns, "two-each")
		quiet(t, counter)

		renders := metric(t, "corollary_renders_total", name)
		for i := range 5 {
			testkit.Patch(t, configMaps, ns, "w-service", "somebody", fmt.Sprintf(`{"metadata":{"annotations":{"x.example.com/y":"%d"}}}`, i))
		}
		patchData(t, ns, "w-service", `{"port":"81"}`)
		waitData(t, ns, "w-page", "port", "81")
		if more := metric(t, "corollary_renders_total", name) - renders; more != 1 {
			t.Errorf("rendered %v times, not once for the port", more)
		}
		patchData(t, ns, "w-service", `{"published":"no"}`)
		waitGone(t, configMaps, ns, "w-page")
		patchData(t, ns, "w-service", `{"published":null}`)
		waitData(t, ns, "w-page", "port", "81")

		testkit.Delete(t, configMaps, ns, "w-service")
		waitData(t, ns, "w-service", "mine", "yes")
		eventuallyCondition(t, ns, "w", "False", "Waiting", "page: ")
		waitData(t, ns, "w-page", "port", "81")
	})
}

// An object that is not the upstream's own is not read, whatever it says of itself.
func TestSiblingOfSomebodyElse(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Apply(t, ns, widget("w", "{data: {}}"))
		uid := testkit.Get(t, widgets, ns, "w").GetUID()
		testkit.Apply(t, ns, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: w-service
  labels: {%[1]s.example.com/managed: "yes"}
  annotations: {%[1]s.example.com/owner: "%[2]s/w/%[3]s"}
  ownerReferences: [{apiVersion: test.example.com/v1, kind: Widget, name: w, uid: %[3]s, controller: true}]
data: {address: stolen, port: "1"}
`, name, ns, uid))
		start(t, testkit.Config(t), related(ns, name))
		eventuallyCondition(t, ns, "w", "False", "Conflict", "")
		eventuallyCondition(t, ns, "w", "False", "Conflict", "page: downstream service, which it reads, is missing: "+ns+"/w-service")
		mustBeAbsent(t, configMaps, ns, "w-page", "a page was made of somebody else's object")
	})
}

// ordered has three ConfigMaps: database is ready once someone annotates it, app comes after it, and page is made as
// soon as app exists.
func ordered(ns, name string) string {
	return strings.Replace(fill(widgetConfig, ns, name)+waiting, `downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .spec.name | default .metadata.name }}
      data: {{ .spec.data }}
`, `downstreams:
  - name: page
    apiVersion: v1
    kind: ConfigMap
    after: [{name: app, until: Created}]
    template: |
      metadata: {name: "{{ .metadata.name }}-page"}
      data: {{ .spec.data }}
  - name: app
    apiVersion: v1
    kind: ConfigMap
    after: [database]
    template: |
      metadata: {name: "{{ .metadata.name }}-app"}
      data: {{ .spec.data }}
  - name: database
    apiVersion: v1
    kind: ConfigMap
    ready:
      rules: [{rule: "downstream.metadata.?annotations[?'test.example.com/up'].orValue('') == downstream.data.a", message: the database is starting}]
    template: |
      metadata: {name: "{{ .metadata.name }}-database"}
      data: {{ .spec.data }}
`, 1)
}

const databaseStarts = "it comes after database, which is not ready: the database is starting"

func markUp(t *testing.T, ns, name, value string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, name, "somebody", `{"metadata":{"annotations":{"test.example.com/up":"`+value+`"}}}`)
}

// Nothing is created or changed before what it comes after is ready. What exists is repaired meanwhile, and a deletion
// goes the other way.
func TestAfter(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		testkit.Apply(t, ns, widget("w", `{data: {a: one}}`))
		counter := testkit.NewCounter()
		start(t, counter.Wrap(testkit.Config(t)), ordered(ns, name))
		eventuallyCondition(t, ns, "w", "False", "", "app: "+databaseStarts)
		for _, object := range []string{"w-app", "w-page"} {
			if testkit.Find(t, configMaps, ns, object) != nil {
				t.Errorf("%s was made before the database was ready", object)
			}
		}

		quiet(t, counter)

		markUp(t, ns, "w-database", "one")
		waitData(t, ns, "w-page", "a", "one")
		eventuallyCondition(t, ns, "w", "True", "", "")

		testkit.Apply(t, ns, widget("w", `{data: {a: two}}`))
		waitData(t, ns, "w-database", "a", "two")
		eventuallyCondition(t, ns, "w", "False", "", "app: "+databaseStarts)
		waitData(t, ns, "w-page", "a", "two") // which only waits for app to exist
		isRepaired(t, ns, "w-page", "a", "two")
		waitData(t, ns, "w-app", "a", "one")

		markUp(t, ns, "w-database", "two")
		waitData(t, ns, "w-app", "a", "two")
		eventuallyCondition(t, ns, "w", "True", "", "")

		quiet(t, counter)

		markUp(t, ns, "w-database", "down")
		isRepaired(t, ns, "w-app", "a", "two")

		holdFor(t, ns, "w-page")
		testkit.Delete(t, widgets, ns, "w")
		eventuallyCondition(t, ns, "w", "False", "", "app: ConfigMap "+ns+"/w-app: it stays until ConfigMap "+ns+"/w-page, which comes after it, is gone")
		for _, object := range []string{"w-app", "w-database"} {
			if found := testkit.Find(t, configMaps, ns, object); found == nil || found.GetDeletionTimestamp() != nil {
				t.Errorf("%s was deleted before what comes after it", object)
			}
		}
		letGo(t, ns, "w-page")
		waitGone(t, widgets, ns, "w")
		for _, object := range []string{"w-page", "w-app", "w-database"} {
			if testkit.Find(t, configMaps, ns, object) != nil {
				t.Errorf("%s is left", object)
			}
		}
	})
}

// What no watch shows still uses what it comes after, also while its template cannot be rendered.
func TestUnseenUsesWhatItComesAfter(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, fill(widgetConfig, ns, name), "    # downstream\n", `    when: self.spec.?exposed.orValue(false)
  - name: app
    apiVersion: v1
    kind: ConfigMap
    after: [config]
    template: |
      metadata: {name: "{{ .metadata.name }}-app"}
      data: {key: "{{ if .spec.exposed }}value{{ else }}{{ fail "not now" }}{{ end }}"}
`)
		start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", "{exposed: true, data: {key: value}}")
		testkit.Apply(t, ns, widget("a", "{exposed: true, data: {key: value}, name: other}"))
		waitGone(t, configMaps, ns, "a")
		testkit.Update(t, configMaps, ns, "a-app", func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		testkit.Apply(t, ns, widget("a", "{exposed: false, data: {key: value}, name: other}"))
		eventuallyCondition(t, ns, "a", "False", "RenderFailed", "not now")
		never(t, func() (bool, string) {
			return testkit.Find(t, configMaps, ns, "other") == nil, "what the app comes after was deleted before the app"
		})
		testkit.Delete(t, configMaps, ns, "a-app")
		waitGone(t, configMaps, ns, "other")
	})
}

// What the watch stops showing while other objects are read still uses what it comes after.
func TestUnseenWhileOthersAreRead(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		const more = `    when: self.spec.exposed
  - {name: app, apiVersion: v1, kind: ConfigMap, after: [config], when: self.spec.exposed, template: "{metadata: {name: app}, data: {key: value}}"}
  - {name: read, apiVersion: v1, kind: ConfigMap, when: self.spec.exposed, template: "{metadata: {name: read}, data: {key: value}}"}
`
		conf := replaceOnce(t, fill(widgetConfig, ns, name), "    # downstream\n", more)
		r := start(t, testkit.Config(t), conf).ready()
		applyReady(t, ns, "a", "{exposed: true, data: {key: value}}")
		r.halt()
		strip := func(name string) {
			testkit.Update(t, configMaps, ns, name, func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		}
		strip("read")
		testkit.Apply(t, ns, widget("a", "{exposed: false, data: {key: value}}"))
		stripped := sync.OnceFunc(func() {
			strip("app")
			<-time.After(time.Second)
		})
		counter := testkit.NewCounter()
		start(t, intercepted(counter.Wrap(testkit.Config(t)), func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/read") {
				stripped()
			}
			return next.RoundTrip(r)
		}), conf).ready()
		waitGone(t, configMaps, ns, "a")
		deleted := func(name string) int {
			return slices.IndexFunc(counter.Requests(), func(r testkit.Request) bool { return r.Verb == "DELETE" && r.Name == name })
		}
		if app, config := deleted("app"), deleted("a"); app < 0 || app > config {
			t.Errorf("what the app comes after was deleted before the app: requests %d and %d", config, app)
		}
	})
}

// What a renamed object has replaced stays until what comes after it has changed. Meanwhile the status alone finds it:
// after a start with another label, no watch shows it.
func TestReplacedIsFoundWithAnotherLabel(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"the new one is ready", "the upstream goes"} {
		t.Run(end, spaced(func(t *testing.T, ns, name string) {
			conf := replaceOnce(t, ordered(ns, name), "owner: {", "owner: {reference: false, ")
			testkit.Apply(t, ns, widget("w", `{data: {a: one}}`))
			r := start(t, testkit.Config(t), conf).ready()
			markUp(t, ns, "w-database", "one")
			waitCondition(t, widgets, ns, "w", "Ready", "True")
			conf = replaceOnce(t, replaceOnce(t, conf, "-database", "-db"), "-app\"}\n      data: {{ .spec.data }}", "-app\"}\n      data: {of: db}")
			r.become("reload", conf)
			eventuallyCondition(t, ns, "w", "False", "", "app: "+databaseStarts)
			r.halt()
			start(t, testkit.Config(t), replaceOnce(t, conf, `managed: "yes"`, `managed: "true"`)).ready()
			if eventuallyCondition(t, ns, "w", "False", "", "app: "+databaseStarts); end == "the upstream goes" {
				testkit.Delete(t, widgets, ns, "w")
				waitGone(t, widgets, ns, "w")
			} else {
				markUp(t, ns, "w-db", "one")
				waitCondition(t, widgets, ns, "w", "Ready", "True")
			}
			waitGone(t, configMaps, ns, "w-database")
		}))
	}
}
