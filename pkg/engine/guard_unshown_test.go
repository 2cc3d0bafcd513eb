package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// Guard counts what is deleted also where no watch shows it any more, since the same change of the config has given the
// label of conventions another value, or someone has taken the label off.
func TestGuardCountsWhatNoWatchShows(t *testing.T) {
	t.Parallel()
	edits := map[string][]string{
		"when is false": {"    # downstream", "    when: 'false'\n    # downstream"},
		"renamed":       {"default .metadata.name }}", "default (printf \"%s-b\" .metadata.name) }}"},
		"immutable":     {"data: {{ .spec.data }}", "data: {key: other}"},
	}
	for edit, change := range edits {
		for _, at := range []string{"start", "reload"} {
			for _, unlabeled := range []bool{false, true} {
				t.Run(fmt.Sprint(edit, " ", at, " ", unlabeled), spaced(func(t *testing.T, ns, name string) {
					conf := replaceOnce(t, fill(widgetConfig, ns, name), "data: {{ .spec.data }}", "immutable: true\n      data: {{ .spec.data }}")
					conf = replaceOnce(t, conf, "    # downstream", "    updatePolicy: Recreate\n    # downstream") + "guard: {minimum: 2}\n"
					r := runReady(t, ns, conf)
					uids := map[string]string{}
					for i := range guardedWidgets {
						waitCondition(t, widgets, ns, named(i), "Ready", "True")
						uids[named(i)] = string(testkit.Get(t, configMaps, ns, named(i)).GetUID())
					}
					conf = strings.NewReplacer(change...).Replace(conf)
					if unlabeled {
						if at == "start" {
							r.halt()
						}
						for i := range guardedWidgets {
							testkit.Patch(t, configMaps, ns, named(i), "somebody", `{"metadata":{"labels":null}}`)
						}
					} else {
						conf = replaceOnce(t, conf, `managed: "yes"`, `managed: "true"`)
					}
					r.become(at, conf)
					neverGuarded(t, func(up string) string {
						cm := testkit.Find(t, configMaps, ns, up)
						if cm == nil || string(cm.GetUID()) != uids[up] {
							return "was deleted before anybody confirmed"
						}
						return ""
					})
				}))
			}
		}
	}
}

// What no watch shows any more is recreated all the same, and a preview says so, also of a Secret whose random value is
// kept.
func TestRecreatesWhatNoWatchShows(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, at := range []string{"start", "reload"} {
			t.Run(kind+" "+at, spaced(func(t *testing.T, ns, name string) {
				gvr, key := configMaps, "key"
				conf := replaceOnce(t, fill(widgetConfig, ns, name), "data: {{ .spec.data }}", "immutable: true\n      data: {{ .spec.data }}")
				conf = replaceOnce(t, conf, "    # downstream", "    updatePolicy: Recreate\n    # downstream")
				if kind == "Secret" {
					gvr, key = secretKind, "a"
					conf = strings.NewReplacer("kind: ConfigMap", "kind: Secret", "data: {{ .spec.data }}", "data: {key: b25l}", "# downstream", "generated: [{path: .data.a}]").Replace(conf)
				}
				testkit.Apply(t, ns, widget("w", `{data: {key: value}}`))
				r := start(t, testkit.Config(t), conf).ready()
				waitCondition(t, widgets, ns, "w", "Ready", "True")
				before, _, _ := unstructured.NestedString(testkit.Get(t, gvr, ns, "w").Object, "data", key)
				conf = replaceOnce(t, conf, `managed: "yes"`, `managed: "true"`)
				conf = strings.NewReplacer("data: {{ .spec.data }}", "data: {key: other}", "data: {key: b25l}", "data: {key: dHdv}").Replace(conf)
				surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "w", "recreate w")
				uid := testkit.Get(t, gvr, ns, "w").GetUID()
				r.become(at, conf)
				after := waitThat(t, gvr, ns, "w", func(u *obj) bool { return u.GetUID() != uid })
				waitCondition(t, widgets, ns, "w", "Ready", "True")
				if value, _, _ := unstructured.NestedString(after.Object, "data", key); kind == "Secret" && value != before {
					t.Errorf("the random value was %s and is %s", before, value)
				}
			}))
		}
	}
}
