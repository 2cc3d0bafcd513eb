package engine_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// In a namespace that is being deleted, the object of deletion.before cannot be created: the deletion does what onFailure says, at once.
func TestBeforeInTerminatingNamespace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		lines        []string
		end          func(t *testing.T, ns string) // what a person does about a deletion that is held
	}{
		{name: "proceeds", reason: "the failure is one like any other", lines: []string{"onFailure: Proceed"}},
		{name: "recorded by hand", reason: "the message says how", end: func(t *testing.T, ns string) {
			up := testkit.Get(t, widgets, ns, "a")
			list, _, _ := unstructured.NestedSlice(up.Object, "status", "downstreams")
			i := slices.IndexFunc(list, func(item any) bool { return item.(map[string]any)["name"] == "deletion.before" })
			list[i].(map[string]any)["state"] = "BeforeFinished"
			_ = unstructured.SetNestedSlice(up.Object, list, "status", "downstreams")
			if _, err := testkit.Dynamic(t).Resource(widgets).Namespace(ns).UpdateStatus(t.Context(), up, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}},
		{name: "switched off", reason: "the author of the upstream does not want it any more", lines: []string{`when: self.spec.?name.orValue("") != "none"`},
			end: func(t *testing.T, ns string) {
				testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"name":"none"}}`)
			}},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			conf := withBefore(ns, name, row.lines...)
			made(t, conf, ns, testkit.NewCounter())
			testkit.Delete(t, namespaces, "", ns)
			testkit.Delete(t, widgets, ns, "a") // as the namespace controller does, which may take its time
			if row.end != nil {
				up := beforeIs(t, ns, "a", "BeforeFailed", "a-drain cannot be created: namespace "+ns+" is being deleted; nothing is deleted: ")
				stalled(t, up)
				if beforeItem(up)["state"] != "BeforeFailed" {
					t.Errorf("recorded is %v", beforeItem(up))
				}
				for _, f := range surveyAll(t, testkit.Config(t), survey.Options{}, conf) {
					if len(f.Changes) == 0 || f.Changes[0].Action != reconcile.ChangeWait {
						t.Errorf("the survey says %+v", f.Changes)
					}
				}
				row.end(t, ns)
			}
			waitGone(t, widgets, ns, "a")
		}))
	}
}
