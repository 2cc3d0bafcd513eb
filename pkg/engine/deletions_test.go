package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// startBroken runs configs as the command does, one with errors among them.
func startBroken(t *testing.T, texts ...string) *running {
	t.Helper()
	dir := writeConfigs(t, texts...)
	loaded, errs := load.Operators(load.Options{Files: []string{dir}})
	files := append(engine.Startable(loaded), engine.Deletable(loaded)...)
	return startLoaded(t, testkit.Config(t), func(*config.Operator, *engine.Options) {}, dir, files, loaded, errs)
}

const (
	cleansUp = "only upstreams that are being deleted are handled"
	holds    = "upstreams that are being deleted keep the finalizer"
)

// A config that cannot be used at a start holds no upstream that is being deleted, as long as nothing is wrong with
// what the deletion depends on. If something is, nothing is deleted, and readiness says so. Other operators run.
func TestDeletionsWithABrokenConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason   string
		from, to string // in the config
		says     string
		goes     bool
	}{
		{"a template that does not parse", "data: {{ .spec.data }}", "data: {{ .spec.data", "downstreams[0].template", true},
		{"a template with an unknown function", "data: {{ .spec.data }}", "data: {{ nosuch .spec.data }}", "downstreams[0].template", true},
		{"no template", "    template: |\n", "    when: |\n", "downstreams[0].template", true},
		{"a template file that does not exist", "    template: |\n", "    templateFile: none.tmpl\n    when: |\n", "none.tmpl", true},
		{"when is no CEL", "    kind: ConfigMap\n", "    kind: ConfigMap\n    when: self.spec.\n", "downstreams[0].when", true},
		{"a type that only the API server's schema shows", "downstreams:\n", "validate: [{rule: self.spec.data == 3}]\ndownstreams:\n", "validate[0].rule", true},
		{"a broken readiness rule", "    kind: ConfigMap\n", "    kind: ConfigMap\n    ready: {rules: [{rule: \"nosuch(\"}]}\n", "ready.rules[0]", true},
		{"a broken status field", "  downstreams: .status.downstreams\n", "  downstreams: .status.downstreams\n  fields: [{path: .status.phase, value: \"nosuch(\"}]\n", "status.fields[0].value", true},
		{"events are misspelt", "events: None", "events: Nothing", "events", true},
		{"retry is too short", "retry: {minDelay: 1s", "retry: {minDelay: 0s", "retry.minDelay", true},
		{"a guard that is no share", "events: None", "guard: {maxDeleted: much}", "guard.maxDeleted", true},
		{"a broken annotation", "  labels: {", "  annotations: {NAME.example.com/x: \"{{ .spec\"}\n  labels: {", "conventions.annotations", true},
		{"an input without a name for its object", "downstreams:\n", "inputs: [{name: x, apiVersion: v1, kind: ConfigMap}]\ndownstreams:\n", "inputs[0]", true},

		{"no YAML", "downstreams:", "downstreams: [", "a.yaml", false},
		{"an unknown field may be any", "events: None", "deletoin: {wait: true}", "deletoin", false},
		{"an unknown field in what is not needed", "    kind: ConfigMap\n", "    kind: ConfigMap\n    ready: {deletionPolicy: Orphan}\n", "ready.deletionPolicy", false},
		{"a misspelt deletionPolicy", "    kind: ConfigMap\n", "    kind: ConfigMap\n    deletionPolicy: Orphn\n", "deletionPolicy", false},
		{"deletion.before does not compile", "events: None", "deletion: {before: {apiVersion: v1, kind: ConfigMap, template: \"metadata: {name: x}\", doneWhen: \"downstream.\"}}", "deletion.before.doneWhen", false},
		{"deletion.before has no template", "events: None", "deletion: {before: {apiVersion: v1, kind: ConfigMap, doneWhen: \"true\"}}", "deletion.before", false},
		{"deletion is no map", "events: None", "deletion: [wait]", "deletion", false},
		{"the owner annotation is not valid", "owner: {annotation: NAME.example.com/owner}", "owner: {annotation: \"a b\"}", "conventions.owner.annotation", false},
		{"the hash is missing", "  hash: {annotation: NAME.example.com/hash}\n", "", "conventions.hash", false},
		{"the watch is not valid", "kind: Widget, ", "", "watch.kind", false},
		{"the finalizer is not valid", "finalizer: NAME.example.com/cleanup", "finalizer: [a]", "conventions.finalizer", false},
		{"where a downstream may be is not valid", "names: [", "namez: [", "targetNamespaces", false},
		{"mode is not valid", "events: None", "mode: Enfroce", "mode", false},
	} {
		t.Run(test.reason, spacedTwice(func(t *testing.T, ns, other, name string) {
			good := elsewhere(fill(widgetConfig, ns, name), other, ns)
			first := start(t, testkit.Config(t), good).ready()
			testkit.Apply(t, ns, widget("a", `{namespace: `+other+`, data: {key: value}}`))
			testkit.Apply(t, ns, widget("stays", `{namespace: `+other+`, data: {key: value}}`))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			waitCondition(t, widgets, ns, "stays", "Ready", "True")
			first.halt()
			stays := testkit.Get(t, widgets, ns, "stays")

			bad := replaceOnce(t, good, strings.ReplaceAll(test.from, "NAME", name), strings.ReplaceAll(test.to, "NAME", name))
			testkit.Delete(t, widgets, ns, "a")
			r := startBroken(t, bad, strings.Replace(fill(widgetConfig, ns, name+"-good"), "kind: Widget", "kind: Gadget", 1))
			testkit.Apply(t, ns, object("Gadget", "g", `{data: {key: value}}`))
			waitData(t, ns, "g", "key", "value")
			if test.goes {
				r.waitUnready("ConfigRefused", test.says, cleansUp)
				bothGone(t, ns, other, "a")
				testkit.Patch(t, configMaps, other, "stays", "somebody", `{"data":{"key":"tampered"}}`)
				testkit.Apply(t, ns, widget("late", `{namespace: `+other+`, data: {key: value}}`))
			} else {
				r.waitUnready("ConfigRefused", test.says, holds)
			}
			never(t, func() (bool, string) {
				up := testkit.Get(t, widgets, ns, "stays")
				return up.GetResourceVersion() != stays.GetResourceVersion() || testkit.Find(t, configMaps, other, "stays") == nil ||
					!test.goes && (testkit.Find(t, widgets, ns, "a") == nil || testkit.Find(t, configMaps, other, "a") == nil), "something else was done"
			})
			r.reloadTo(good)
			r.ready()
			bothGone(t, ns, other, "a")
			waitData(t, other, "stays", "key", "value")
		}))
	}
}

// What deletes goes by the whole of the deletion: deletion.before, deletionPolicy and deletion.wait.
func TestBrokenConfigDeletesAsAlways(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		good := strings.Replace(withBefore(ns, name), "    # downstream\n", `  - name: kept
    apiVersion: v1
    kind: ConfigMap
    deletionPolicy: Orphan
    template: |
      metadata: {name: "{{ .metadata.name }}-kept"}
`, 1)
		first := startWidget(t, ns, good)
		first.halt()
		r := startBroken(t, replaceOnce(t, good, "data: {{ .spec.data }}", "data: {{ .spec.data"))
		r.waitUnready("ConfigRefused", cleansUp)
		testkit.Delete(t, widgets, ns, "a")
		waitBefore(t, ns, "a", "BeforeRunning")
		mustExist(t, configMaps, ns, "a", "the downstream is gone before deletion.before is done")
		drain(t, ns, drainDone)
		bothGone(t, ns, ns, "a")
		kept := testkit.Get(t, configMaps, ns, "a-kept")
		if len(kept.GetAnnotations()) > 0 || len(kept.GetLabels()) > 0 || len(kept.GetOwnerReferences()) > 0 {
			t.Errorf("marks were left: %v", kept.Object["metadata"])
		}
	})
}

// A config that breaks in another way while it is broken is taken up again.
func TestBrokenConfigChanges(t *testing.T) {
	inSpaces(t, func(t *testing.T, ns, other, name string) {
		good := elsewhere(fill(widgetConfig, ns, name), other, ns)
		first := start(t, testkit.Config(t), good).ready()
		applyReady(t, ns, "a", `{namespace: `+other+`, data: {key: value}}`)
		first.halt()
		testkit.Delete(t, widgets, ns, "a")
		second := strings.Replace(fill(widgetConfig, ns, name+"-good"), "kind: Widget", "kind: Gadget", 1)
		r := startBroken(t, replaceOnce(t, good, "downstreams:", "downstreams: ["), second)
		r.waitUnready(holds)
		r.reloadTo(replaceOnce(t, good, "data: {{ .spec.data }}", "data: {{ .spec.data"))
		waitGone(t, widgets, ns, "a")
		r.waitUnready(cleansUp)
		r.reloadTo(replaceOnce(t, good, "events: None", "events: Nothing"))
		r.waitUnready("events", cleansUp)
		r.reloadTo(good)
		r.ready()
	})
}

// As long as an operator goes on by its last good config, no other config that claims its finalizer or field manager
// begins, nor cleans up after its upstreams.
func TestNamesOfAnOperatorAreTaken(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason  string
		files   func(t *testing.T, ns, good, name, other string) map[string]string
		refused string
	}{
		{"the operator is renamed in its file, which has errors", func(t *testing.T, ns, _, name, other string) map[string]string {
			bad := replaceOnce(t, fill(widgetConfig, ns, name), "name: "+name+"}", "name: "+other+"}")
			return map[string]string{"a.yaml": replaceOnce(t, bad, "events: None", "events: Nothing")}
		}, "a.yaml:"},
		{"its file cannot be read, and one with errors has its names", func(t *testing.T, ns, _, name, other string) map[string]string {
			bad := replaceOnce(t, fill(widgetConfig, ns, name), "name: "+name+"}", "name: "+other+"}")
			return map[string]string{"a.yaml": "not: an operator\n", "b.yaml": replaceOnce(t, bad, "events: None", "events: Nothing")}
		}, "b.yaml:"},
		{"its file drops the finalizer that upstreams have, and another one takes it", func(t *testing.T, ns, good, name, other string) map[string]string {
			takes, _, _ := strings.Cut(fill(widgetConfig, ns, other), "status:\n")
			return map[string]string{"a.yaml": replaceOnce(t, good, finalizerOf(name), name+".example.com/renamed"),
				"b.yaml": replaceOnce(t, takes, finalizerOf(other), finalizerOf(name)) + "status: {enabled: false}\n"}
		}, "b.yaml:"},
	} {
		t.Run(test.reason, bubbled(func(t *testing.T) {
			ns, name, other := testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)
			good := strings.Replace(withBefore(ns, name), "{{ .spec.name | default .metadata.name }}", "{{ .metadata.name }}", 1)
			r := startWidget(t, ns, good)
			testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{finalizerOf(name)}) })

			for file, text := range test.files(t, ns, good, name, other) {
				r.write(file, text)
			}
			r.reload()
			waitState(t, name, "ReloadFailed")
			testkit.Delete(t, widgets, ns, "a")
			waitBefore(t, ns, "a", "BeforeRunning")
			never(t, func() (bool, string) {
				return testkit.Find(t, widgets, ns, "a") == nil || testkit.Find(t, configMaps, ns, "a") == nil, "deletion.before was passed over"
			})
			if err := r.Reloaded(nil); err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("it says %v", err)
			}
			drain(t, ns, drainDone)
			waitGone(t, widgets, ns, "a")
		}))
	}
}

// At a start nothing worked before: the log says of a config with errors that it cannot start, once, also if a reload
// comes before anything else.
func TestLogOfABrokenStart(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		broken := strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: Nothing", 1)
		dir := writeConfigs(t, broken, "no: config")
		loaded, errs := load.Operators(load.Options{Files: []string{dir}})
		log := &logText{}
		count := func(text string) int { return strings.Count(log.String(), text) }
		r := startLoaded(t, testkit.Config(t), log.to, dir, engine.Deletable(loaded), loaded, errs)
		r.reload()
		r.waitUnready(cleansUp)
		r.reload()
		for _, wrong := range []string{"last good", "changed config", "no longer blocked"} {
			if count(wrong) > 0 {
				t.Errorf("the log says %q: %s", wrong, log)
			}
		}
		for _, right := range []string{"operator is blocked, will retry", "a config cannot be loaded; the other operators start"} {
			if n := count(right); n != 1 {
				t.Errorf("the log says %q %d times: %s", right, n, log)
			}
		}
		r.write("a.yaml", fill(widgetConfig, ns, name))
		if err := os.Remove(filepath.Join(dir, "b.yaml")); err != nil {
			t.Fatal(err)
		}
		r.reload()
		r.ready()
		r.reloadTo(broken)
		if count("the last good one stays active") != 1 {
			t.Errorf("a change of a config that works: %s", log)
		}
	})
}
