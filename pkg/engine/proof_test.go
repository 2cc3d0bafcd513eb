package engine_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// Whoever may create and patch the kind can make an object under our field manager's name. What it has more than the template
// goes with the next apply, as it would if it was added to an object of ours; with CreateOnly it is told, once.
func TestMadeUnderOurName(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"Apply", "CreateOnly"} {
		t.Run(policy, spaced(func(t *testing.T, ns, name string) {
			up := testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			forged := testkit.Parse(t, strings.NewReplacer("NAME", name, "UID", string(up.GetUID())).Replace(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a,
			  labels: {NAME.example.com/managed: "yes"}, annotations: {NAME.example.com/hash: v1-forged}, ownerReferences: [
			  {apiVersion: test.example.com/v1, kind: Widget, name: a, uid: UID, controller: true}]}, data: {key: value, evil: added}}`))
			if _, err := testkit.Dynamic(t).Resource(configMaps).Namespace(ns).Apply(t.Context(), "a", forged, metav1.ApplyOptions{FieldManager: name}); err != nil {
				t.Fatal(err)
			}
			conf := strings.Replace(with(fill(widgetConfig, ns, name), "updatePolicy: "+policy), "events: None", "events: Warnings", 1)
			start(t, testkit.Config(t), conf).ready()
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			if policy == "CreateOnly" {
				waitEvent(t, ns, "a", "Drifted", "only its field manager says so")
				return
			}
			waitData(t, ns, "a", "evil", "")
		}))
	}
}

// TestElectedKeepsTheNewerRecord: whoever takes over while its watches are behind does not write an older record over what
// the process before has recorded of an object that was made again; in the end the status names the object that is there.
func TestElectedKeepsTheNewerRecord(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		s := startElectionTest(t, "a")
		before := testkit.Get(t, configMaps, s.ns, "a").GetUID()
		testkit.Delete(t, configMaps, s.ns, "a")
		var now string
		testkit.Eventually(t, patience, func() (bool, string) {
			cm := testkit.Find(t, configMaps, s.ns, "a")
			if cm == nil || cm.GetUID() == before {
				return false, "it is not made again"
			}
			now = string(cm.GetUID())
			have := downstreamsOf(testkit.Get(t, widgets, s.ns, "a"))["config"]["uid"]
			return have == now, fmt.Sprintf("recorded is %v", have)
		})
		s.elect()
		testkit.Eventually(t, patience, func() (bool, string) { return s.counter.Total() > 0, "it reads nothing" })
		quiet(t, s.counter)
		for _, r := range s.counter.Requests() {
			if r.Key() == writeStatus {
				t.Errorf("it wrote the status: %v", s.counter.Snapshot())
			}
		}
		s.release()
		quiet(t, s.counter)
		if have := downstreamsOf(testkit.Get(t, widgets, s.ns, "a"))["config"]["uid"]; have != now {
			t.Errorf("recorded is %v, the object is %s", have, now)
		}
	})
}
