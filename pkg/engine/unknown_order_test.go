package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// What comes after an object is gone before it, also where nothing says any more which of several downstreams of a kind
// an object is of: the upstream asks for other names or for nothing, or is deleted; its status records nothing, or no
// longer these; the process has seen it, or begins only then; the object that goes last is the first or the second of
// the config.
func TestOrderOfUnknownObjects(t *testing.T) {
	t.Parallel()
	const (
		renamed  = "{name: other}"
		unwanted = "{data: {off: 'yes'}}"
		deleted  = ""
	)
	for name, change := range map[string]string{"renamed": renamed, "unwanted": unwanted, "deleted": deleted} {
		for _, record := range []string{"recorded", "not recorded", "recorded elsewhere", "erased"} {
			for _, restarted := range []bool{false, true} {
				for _, swapped := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/restarted %t/swapped %t", name, record, restarted, swapped), spaced(func(t *testing.T, ns, op string) {
						conf := orderedConfig(t, ns, op, swapped)
						if record == "not recorded" {
							conf = replaceOnce(t, conf, "  downstreams: .status.downstreams\n", "")
						}
						r := start(t, testkit.Config(t), conf).ready()
						applyReady(t, ns, "a", "{name: one}")
						testkit.Patch(t, configMaps, ns, "one-app", "somebody", `{"metadata":{"finalizers":["example.com/held"]}}`)
						<-time.After(time.Minute)
						act := func() {
							if change == deleted {
								testkit.Delete(t, widgets, ns, "a")
								return
							}
							testkit.Apply(t, ns, widget("a", change))
						}
						if restarted {
							r.halt()
							if record == "erased" {
								testkit.Patch(t, widgets, ns, "a", "somebody", `{"status":null}`, "status")
							}
							act()
							if record == "recorded elsewhere" {
								conf = replaceOnce(t, conf, ".status.downstreams", ".status.made")
							}
							start(t, testkit.Config(t), conf).ready()
						} else {
							act()
						}
						<-time.After(10 * time.Minute)
						mustExist(t, configMaps, ns, "one-data", "what comes after it still exists")
						if app := testkit.Get(t, configMaps, ns, "one-app"); app.GetDeletionTimestamp() == nil {
							t.Error("app is not even being deleted")
						}
						testkit.Patch(t, configMaps, ns, "one-app", "somebody", `{"metadata":{"finalizers":null}}`)
						<-time.After(time.Minute)
						mustBeAbsent(t, configMaps, ns, "one-app", "nothing holds it")
						mustBeAbsent(t, configMaps, ns, "one-data", "nothing comes after it any more")
					}))
				}
			}
		}
	}
}

// What an edit of the config makes it forget in the middle of an ordered deletion may come after what is still there: a
// downstream that is renamed, or of another kind, while its object is going.
func TestOrderOfForgottenObjects(t *testing.T) {
	t.Parallel()
	app := func(name, kind, rest string) string {
		return "- name: " + name + "\n    apiVersion: v1\n    kind: " + kind + "\n    when: \"!has(self.spec.data)\"\n    after: [{name: data, until: Created}, login]\n" +
			"    template: |\n      metadata: {name: \"{{ .spec.name }}-app\"}\n      " + rest
	}
	for change, other := range map[string]string{
		"renamed":       app("front", "ConfigMap", "data: {of: app}"),
		"other kind":    app("app", "Service", "spec: {ports: [{port: 80}]}"),
		"of the config": "",
	} {
		for _, how := range []string{"reload", "restart"} {
			t.Run(change+"/"+how, spaced(func(t *testing.T, ns, op string) {
				conf := orderedConfig(t, ns, op, false)
				r := start(t, testkit.Config(t), conf).ready()
				applyReady(t, ns, "a", "{name: one}")
				testkit.Patch(t, configMaps, ns, "one-app", "somebody", `{"metadata":{"finalizers":["example.com/held"]}}`)
				testkit.Delete(t, widgets, ns, "a")
				<-time.After(time.Minute)
				r.become(how, replaceOnce(t, conf, app("app", "ConfigMap", "data: {of: app}"), other))
				<-time.After(10 * time.Minute)
				mustExist(t, configMaps, ns, "one-data", "what came after it still exists")
				testkit.Patch(t, configMaps, ns, "one-app", "somebody", `{"metadata":{"finalizers":null}}`)
				<-time.After(10 * time.Minute)
				mustBeAbsent(t, configMaps, ns, "one-data", "nothing is left that may come after it")
				mustBeAbsent(t, widgets, ns, "a", "nothing is left")
			}))
		}
	}
}

// What the config forgets stays, all of it, whatever else has its kind: several objects of a downstream, and one whose
// downstream has another kind now.
func TestForgottenObjectsStay(t *testing.T) {
	t.Parallel()
	down := func(name, kind, more string) string {
		return "  - name: " + name + "\n    apiVersion: v1\n    kind: " + kind + "\n" + more +
			"    template: |\n      metadata: {name: \"{{ .metadata.name }}-" + name + "{{ item }}\"}\n"
	}
	one := strings.ReplaceAll(down("one", "ConfigMap", ""), "{{ item }}", "")
	for change, edit := range map[string][2]string{
		"forEach":      {down("many", "ConfigMap", "    forEach: {items: \"['x', 'y', 'z']\"}\n"), ""},
		"another kind": {strings.ReplaceAll(down("many", "ConfigMap", ""), "{{ item }}", "x"), strings.ReplaceAll(down("many", "Secret", ""), "{{ item }}", "x")},
		"another kind of several": {down("many", "ConfigMap", "    forEach: {items: \"['x', 'y', 'z']\"}\n"),
			down("many", "Secret", "    forEach: {items: \"['x', 'y', 'z']\"}\n")},
	} {
		for _, how := range []string{"reload", "restart"} {
			t.Run(change+"/"+how, spaced(func(t *testing.T, ns, op string) {
				head, tail := around(t, strings.Replace(fill(widgetConfig, ns, op), "kind: Widget", "kind: Pool", 1))
				r := start(t, testkit.Config(t), head+"\n"+one+edit[0]+tail).ready()
				testkit.Apply(t, ns, pool("a"))
				waitCondition(t, pools, ns, "a", "Ready", "True")
				items := []string{"x", "y", "z"}
				if !strings.Contains(edit[0], "forEach") {
					items = items[:1]
				}
				stays := func() {
					for _, item := range items {
						mustExist(t, configMaps, ns, "a-many"+item, "the config has forgotten it")
					}
				}
				stays()
				r.become(how, head+"\n"+one+edit[1]+tail)
				<-time.After(10 * time.Minute)
				stays()
				testkit.Apply(t, ns, pool("a", "w=1"))
				<-time.After(10 * time.Minute)
				stays()
			}))
		}
	}
}

// orderedConfig has ConfigMaps NAME-data and NAME-app, which comes after it.
func orderedConfig(t *testing.T, ns, name string, swapped bool) string {
	t.Helper()
	head, tail := around(t, fill(widgetConfig, ns, name))
	one := func(name, more string) string {
		return "\n  - name: " + name + "\n    apiVersion: v1\n    kind: ConfigMap\n    when: \"!has(self.spec.data)\"\n" + more +
			"    template: |\n      metadata: {name: \"{{ .spec.name }}-" + name + "\"}\n      data: {of: " + name + "}"
	}
	data, app := one("data", ""), one("app", "    after: [{name: data, until: Created}, login]\n")
	if swapped {
		data, app = app, data
	}
	login := "\n  - {name: login, apiVersion: v1, kind: Secret, template: \"metadata: {name: '{{ .spec.name }}-login'}\"}"
	return head + data + login + app + "\n" + tail + "deletion: {wait: true}\n"
}
