package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// ordered has three ConfigMaps: database is ready once somebody annotates it, app comes after it, and page is made as soon as app exists.
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

// Nothing is created or changed before what it comes after is ready. What stands is repaired meanwhile, and a deletion goes the other way.
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
		testkit.Apply(t, ns, widget("a", "{exposed: true, data: {key: value}}"))
		waitCondition(t, widgets, ns, "a", "Ready", "True")
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
