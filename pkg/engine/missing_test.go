package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

func lates(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: name + ".example.com", Version: "v1", Resource: "lates"}
}

func installLate(t *testing.T, name string) {
	t.Helper()
	testkit.InstallCRDs(t, strings.ReplaceAll(lateCRD, "NAME", name))
}

func uninstallLate(t *testing.T, name string) {
	t.Helper()
	deleteAndWait(t, crds, "", "lates."+name+".example.com")
}

// withLate adds a downstream of the kind Late to the config: in the namespace other, where only the finalizer cleans it
// up.
func withLate(conf, name, other string, lines ...string) string {
	return strings.Replace(conf, "    # downstream\n", `  - name: late
    apiVersion: `+name+`.example.com/v1
    kind: Late
    targetNamespaces: {from: List, names: [`+other+`]}
    ready: {observedGeneration: Optional}
`+strings.Join(append(lines, ""), "\n")+`    template: |
      metadata: {name: "{{ .metadata.name }}", namespace: `+other+`}
      spec: {data: {{ .spec.data }}}
`, 1)
}

// waitLate waits until the Late has that value.
func waitLate(t *testing.T, ns, name, object, want string) {
	t.Helper()
	waitField(t, lates(name), ns, object, want, "spec", "data", "key")
}

// waitsFor waits until Ready is False with that reason, or any if it is empty, and a message with these texts, and
// returns the object.
func waitsFor(t *testing.T, gvr schema.GroupVersionResource, ns, name, want string, texts ...string) *obj {
	t.Helper()
	return waitThat(t, gvr, ns, name, func(u *obj) bool {
		status, reason, message := condition(u, "Ready")
		lacks := func(text string) bool { return !strings.Contains(message, text) }
		return status == "False" && (want == "" || reason == want) && !slices.ContainsFunc(texts, lacks)
	})
}

// othersGoOn checks that an upstream whose one downstream waits for its kind has the other one created, repaired, made
// again and deleted, and can be deleted itself.
func othersGoOn(t *testing.T, ns, object string) {
	t.Helper()
	testkit.Apply(t, ns, widget(object, `{data: {key: value}}`))
	waitsFor(t, widgets, ns, object, "Waiting", "late", "kind Late in ", "install its CustomResourceDefinition")
	made := waitData(t, ns, object, "key", "value")
	testkit.Patch(t, configMaps, ns, object, "somebody", `{"data":{"key":"tampered"}}`)
	waitData(t, ns, object, "key", "value")
	testkit.Delete(t, configMaps, ns, object)
	waitMadeAgain(t, made)
	testkit.Patch(t, widgets, ns, object, "somebody", `{"spec":{"name":"`+object+`-renamed"}}`)
	waitGone(t, configMaps, ns, object)
	deleteAndWait(t, widgets, ns, object)
	waitGone(t, configMaps, ns, object+"-renamed")
}

// A downstream's kind that is missing at the start, that comes, goes and comes again, stops that downstream alone.
func TestDownstreamKindComesAndGoes(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		start(t, testkit.Config(t), withLate(fill(widgetConfig, ns, name), name, other)).ready()
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "KindMissing")
		testkit.Apply(t, ns, widget("stays", `{data: {key: value}}`))
		othersGoOn(t, ns, "a")

		installLate(t, name)
		waitLate(t, other, name, "stays", "value")
		waitCondition(t, widgets, ns, "stays", "Ready", "True")
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "Running")
		applyReady(t, ns, "goes", `{data: {key: value}}`)

		uninstallLate(t, name)
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "KindMissing")
		waitsFor(t, widgets, ns, "stays", "Waiting", "late", "kind Late in "+name+".example.com/v1", "install its CustomResourceDefinition")
		othersGoOn(t, ns, "b")
		testkit.Delete(t, widgets, ns, "goes") // its Late went with the definition
		waitGone(t, widgets, ns, "goes")

		installLate(t, name)
		waitLate(t, other, name, "stays", "value")
		waitCondition(t, widgets, ns, "stays", "Ready", "True")
		deleteAndWait(t, widgets, ns, "stays")
		waitGone(t, lates(name), other, "stays")
	})
}

// A downstream that is not wanted does not wait for its kind.
func TestUnwantedKindIsNotMissed(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		installLate(t, name)
		start(t, testkit.Config(t), withLate(fill(widgetConfig, ns, name), name, other, "    when: self.spec.?exposed.orValue(false)")).ready()
		applyReady(t, ns, "a", `{exposed: true, data: {key: value}}`)
		uninstallLate(t, name)
		waitsFor(t, widgets, ns, "a", "Waiting", "kind Late in ")
		testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"exposed":false}}`)
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		waitThat(t, widgets, ns, "a", func(up *obj) bool { return len(downstreamsOf(up)) == 1 && len(up.GetFinalizers()) == 0 })
	})
}

// servesLate sets which versions of the Late the API server serves.
func servesLate(t *testing.T, name string, served ...bool) {
	t.Helper()
	testkit.Update(t, crds, "", "lates."+name+".example.com", func(u *unstructured.Unstructured) {
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		for i := range versions {
			versions[i].(map[string]any)["served"] = served[i]
		}
		_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
	})
}

// Objects of a kind that is served in another version only, or in none, are there: nothing is forgotten, and a deletion
// waits for them.
func TestKindServedInAnotherVersion(t *testing.T) {
	t.Parallel()
	for reason, v2 := range map[string]bool{"another": true, "none": false} {
		t.Run(reason, spacedTwice(func(t *testing.T, ns, other, name string) {
			schema := "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"
			testkit.InstallCRDs(t, strings.Replace(strings.ReplaceAll(lateCRD, "NAME", name), "versions: [", "versions: [{name: v2, served: true, storage: false, "+schema+", ", 1))
			says := "its CustomResourceDefinition lates." + name + ".example.com serves it in no version"
			if v2 {
				says = "it serves the kind in " + name + ".example.com/v2"
			}
			conf := strings.Replace(withLate(fill(widgetConfig, ns, name), name, other)+"deletion: {wait: true}\n", "    # downstream\n", "", 1) +
				"inputs: [{name: late, apiVersion: " + name + ".example.com/v1, kind: Late, fixedName: none, missing: Allow}]\n"
			r := startWidget(t, ns, conf)
			servesLate(t, name, v2, false)
			waitsFor(t, widgets, ns, "a", "Waiting", says)
			if !v2 { // what is not known at a start is no less known than what was seen to go
				r.restart(nil, conf)
			}
			testkit.Delete(t, widgets, ns, "a")
			up := waitsFor(t, widgets, ns, "a", "KindNotServed", says)
			waitGone(t, configMaps, ns, "a")
			never(t, func() (bool, string) { return testkit.Find(t, widgets, ns, "a") == nil, "the upstream was let go" })
			if rec := downstreamsOf(up)["late"]; rec["uid"] == "" || rec["uid"] == nil {
				t.Errorf("the record is lost: %v", downstreamsOf(up))
			}
			servesLate(t, name, v2, true)
			waitGone(t, widgets, ns, "a")
			waitGone(t, lates(name), other, "a")
		}))
	}
}

// Without the right to list definitions, a kind that is not served is not known to be gone: a deletion waits, and says
// what to grant.
func TestDefinitionsMustNotBeRead(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		installLate(t, name)
		faults := testkit.NewFaults()
		forbidden := faults.Answer(http.StatusForbidden, testkit.On("LIST", "customresourcedefinitions"))
		start(t, faults.Wrap(testkit.Config(t)), withLate(fill(widgetConfig, ns, name), name, other)+"deletion: {wait: true}\n").ready()
		applyReady(t, ns, "a", `{data: {key: value}}`)
		uninstallLate(t, name)
		waitsFor(t, widgets, ns, "a", "Waiting", "install its CustomResourceDefinition")
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "KindNotServed", "grant list on customresourcedefinitions.apiextensions.k8s.io")
		waitGone(t, configMaps, ns, "a")
		never(t, func() (bool, string) { return testkit.Find(t, widgets, ns, "a") == nil, "the upstream was let go" })
		forbidden.Off()
		waitGone(t, widgets, ns, "a")
	})
}

// An input of a kind that is missing holds up what reads it, and nothing else; where a missing input is allowed, it is
// null. One of a kind whose definition serves no version is not known to be missing.
func TestInputKindIsMissing(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"Wait", "Allow"} {
		t.Run(missing, spaced(func(t *testing.T, ns, name string) {
			conf := strings.Replace(fill(widgetConfig, ns, name), "    # downstream\n", `  - name: reader
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}-reader"}
      data: {key: "{{ with input "late" }}{{ .spec.data.key }}{{ else }}none{{ end }}"}
`, 1) + "inputs: [{name: late, apiVersion: " + name + ".example.com/v1, kind: Late, fixedName: settings, missing: " + missing + "}]\n"
			start(t, testkit.Config(t), conf).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitData(t, ns, "a", "key", "value")
			alone := func() {
				t.Helper()
				if missing == "Allow" {
					waitData(t, ns, "a-reader", "key", "none")
					waitCondition(t, widgets, ns, "a", "Ready", "True")
					return
				}
				waitsFor(t, widgets, ns, "a", "Waiting", "input late", "kind Late in ", "install its CustomResourceDefinition")
			}
			alone()
			installLate(t, name)
			testkit.Eventually(t, patience, func() (bool, string) {
				_, err := testkit.TryApply(t, ns, "{apiVersion: "+name+".example.com/v1, kind: Late, metadata: {name: settings}, spec: {data: {key: first}}}")
				return err == nil, text(err)
			})
			waitData(t, ns, "a-reader", "key", "first")
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			servesLate(t, name, false)
			waitsFor(t, widgets, ns, "a", "Waiting", "input late", "serves it in no version")
			waitData(t, ns, "a-reader", "key", "first")
			servesLate(t, name, true)
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			uninstallLate(t, name)
			alone()
			if missing == "Wait" {
				waitData(t, ns, "a-reader", "key", "first")
			}
			testkit.Patch(t, configMaps, ns, "a", "somebody", `{"data":{"key":"tampered"}}`)
			waitData(t, ns, "a", "key", "value")
			testkit.Delete(t, widgets, ns, "a")
			waitGone(t, configMaps, ns, "a-reader")
		}))
	}
}

// What is to be made before a deletion is not skipped because its kind is missing.
func TestBeforeKindIsMissing(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("    apiVersion: v1\n    kind: ConfigMap\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-drain\"}",
			"    apiVersion: "+name+".example.com/v1\n    kind: Late\n    template: |\n      metadata: {name: \"{{ .metadata.name }}-drain\"}").Replace(withBefore(ns, name))
		startWidget(t, ns, conf)
		testkit.Delete(t, widgets, ns, "a")
		waitsFor(t, widgets, ns, "a", "Waiting", "deletion.before", "kind Late in ", "install its CustomResourceDefinition")
		mustExist(t, configMaps, ns, "a", "the downstream was deleted before")
		installLate(t, name)
		waitBefore(t, ns, "a", "BeforeRunning")
		testkit.Patch(t, lates(name), ns, "a-drain", "somebody", drainDone)
		bothGone(t, ns, ns, "a")
	})
}

// As long as a kind is missing, the API server is asked for it now and then, and for nothing else.
func TestMissingKindsCostLittle(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		counter := testkit.NewCounter()
		late := strings.Replace(fill(widgetConfig, ns, name+"-up"), "{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+name+".example.com/v1, kind: Late,", 1)
		startWith(t, counter.Wrap(testkit.Config(t)), func(_ *config.Operator, o *engine.Options) { o.DiscoveryInterval = time.Second },
			withLate(fill(widgetConfig, ns, name), name, other), late).ready()
		for i := range 10 {
			testkit.Apply(t, ns, widget(named(i), `{data: {key: value}}`))
		}
		for i := range 10 {
			waitsFor(t, widgets, ns, named(i), "Waiting", "kind Late in ")
		}
		const seconds = 20
		<-time.After(2 * time.Second)
		counter.Reset()
		end := time.Now().Add(seconds * time.Second)
		<-time.After(time.Until(end))
		// Every five seconds: a version, its group and the definitions for each of two operators, and for the one that has
		// nothing else to do the API server's version and its other kind.
		asks := seconds/5 + 2
		if n := len(counter.Requests(testkit.Before(end))); n > asks*(3+7) {
			t.Errorf("%d requests in %d s: %v", n, seconds, counter.Snapshot())
		}
		if n := counter.Total(testkit.Before(end), func(r testkit.Request) bool {
			return r.Verb != http.MethodGet && r.Key() != "LIST customresourcedefinitions"
		}); n > 0 {
			t.Errorf("%d requests are no questions for kinds: %v", n, counter.Snapshot())
		}
	})
}

// A kind whose schema cannot be read waits for that, without a config that takes over from itself again and again.
func TestSchemaIsUnavailable(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		installLate(t, name)
		faults := testkit.NewFaults()
		fault := faults.Answer(http.StatusInternalServerError, func(r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/openapi/v3/apis/"+name+".example.com/")
		})
		start(t, faults.Wrap(testkit.Config(t)), withLate(fill(widgetConfig, ns, name), name, other)).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitsFor(t, widgets, ns, "a", "Waiting", "late", "schema of "+name+".example.com/v1 Late")
		waitData(t, ns, "a", "key", "value")
		asked := fault.Hits()
		testkit.Eventually(t, patience, func() (bool, string) {
			return fault.Hits() >= asked+6, "the schema is not asked for"
		})
		metricIs(t, 0, "corollary_config_reloads_total", name)
		fault.Off()
		waitLate(t, other, name, "a", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
	})
}

// While nothing converts the kind, it is neither read nor written: with objects that lack fields, a config would delete
// what follows from these, and each write would drop them.
func TestUnconvertedIsLeftAlone(t *testing.T) {
	spaced(func(t *testing.T, ns, name string) {
		s := newShifting(t, ns, name)
		s.define("", "")
		var why atomic.Value
		why.Store("nothing converts it")
		startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) {
			o.Unconverted = func(_ context.Context, r schema.GroupResource) (string, error) {
				if r == s.gvr.GroupResource() {
					return why.Load().(string), nil
				}
				return "", nil
			}
		}, s.config(""))
		s.give("data: {key: first}")
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "KindMissing")
		<-time.After(time.Hour)
		if _, err := testkit.Dynamic(t).Resource(configMaps).Namespace(ns).Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
			t.Error("it was read")
		}
		why.Store("")
		waitData(t, ns, "a", "key", "first")

		why.Store("somebody has replaced the definition")
		s.define("", "summary: {type: string}") // this ends the watches
		s.give("data: {key: second}")
		waitMetric(t, 1, "corollary_operator_state", name, "reason", "KindMissing")
		<-time.After(time.Hour)
		if have := testkit.Get(t, configMaps, ns, "a"); fmt.Sprint(have.Object["data"]) != "map[key:first]" {
			t.Errorf("it was written: %v", have.Object["data"])
		}
		why.Store("")
		waitData(t, ns, "a", "key", "second")
	})(t)
}

// A kind comes back with another scope: what was made of it went with its definition, so that neither a new object nor
// the deletion of the upstream waits for it.
func TestDownstreamKindChangesItsScope(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.NewReplacer("template: |\n      metadata: {name: \"{{ .metadata.name }}\", namespace: "+ns+"}",
			"template: |\n      metadata: {name: \"{{ .metadata.name }}\"}", "targetNamespaces: {from: List, names: ["+ns+"]}",
			"targetNamespaces: {from: Any}").Replace(withLate(fill(widgetConfig, ns, name), name, ns))
		installLate(t, name)
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
		waitLate(t, ns, name, "a", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		uninstallLate(t, name)
		testkit.InstallCRDs(t, strings.NewReplacer("NAME", name, "scope: Namespaced", "scope: Cluster").Replace(lateCRD))
		waitLate(t, "", name, "a", "value")
		waitCondition(t, widgets, ns, "a", "Ready", "True")
		deleteAndWait(t, widgets, ns, "a")
		waitGone(t, lates(name), "", "a")
	})
}
