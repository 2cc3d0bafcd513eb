package engine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// chosen is a config that selects by a label, one way or the other, and makes its ConfigMaps in another namespace: only the finalizer cleans up. What
// authors do is not guard's.
func chosen(selection, ns, other, name string) string {
	return elsewhere(watched(fill(widgetConfig, ns, name), selection), other, ns) + "guard: {maxDeleted: 0%, minimum: 0}\n"
}

func applyChosen(t *testing.T, ns, other string, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Apply(t, ns, strings.Replace(widget(name, `{namespace: `+other+`, data: {key: value}}`),
			"{name: "+name+"}", "{name: "+name+`, labels: {served: "yes"}}`, 1))
	}
	for _, name := range names {
		waitCondition(t, widgets, ns, name, "Ready", "True")
	}
}

func unchoose(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		testkit.Patch(t, widgets, ns, name, "somebody", `{"metadata":{"labels":{"served":null}}}`)
	}
}

// cleanedUp waits until nothing is left of upstreams that are not selected.
func cleanedUp(t *testing.T, ns, other string, names ...string) {
	t.Helper()
	waitGone(t, configMaps, other, names...)
	for _, name := range names {
		waitThat(t, widgets, ns, name, func(up *obj) bool {
			_, reason, _ := condition(up, "Ready")
			return len(up.GetFinalizers()) == 0 && reason == "NotSelected"
		})
	}
}

// A label that is lost while a config with errors only deletes: nothing is done until the config is right, and then its
// downstreams go. What is deleted meanwhile goes at once.
func TestLabelLostWithABrokenConfig(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		good := chosen(selection, ns, other, name)
		first := start(t, testkit.Config(t), good).ready()
		applyChosen(t, ns, other, "loses", "goes", "stays", "bare", "first")
		first.halt()
		r := startBroken(t, replaceOnce(t, good, "data: {{ .spec.data }}", "data: {{ .spec.data"))
		r.waitUnready("ConfigRefused", cleansUp)
		testkit.Delete(t, widgets, ns, "first") // once it is gone, the watches are known to show what happens
		waitGone(t, widgets, ns, "first")
		testkit.Delete(t, configMaps, other, "bare") // but for its finalizer, nothing leads to it
		unchoose(t, ns, "loses", "goes", "bare")
		never(t, func() (bool, string) {
			for _, object := range []string{"loses", "goes", "stays"} {
				if testkit.Find(t, configMaps, other, object) == nil || len(testkit.Get(t, widgets, ns, object).GetFinalizers()) == 0 {
					return true, object + " was cleaned up after"
				}
			}
			return false, ""
		})
		deleteAndWait(t, widgets, ns, "goes")
		waitGone(t, configMaps, other, "goes")
		r.reloadTo(good)
		r.ready()
		cleanedUp(t, ns, other, "loses", "bare")
		waitData(t, other, "stays", "key", "value")
		waitCondition(t, widgets, ns, "stays", "Ready", "True")
	})
}

// A label that is lost while no process runs looks like a changed selector: what there is stays, and is told. A deletion is
// none of that. Once the label is set and removed again, it goes.
func TestLabelLostWhileNothingRuns(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		conf := chosen(selection, ns, other, name)
		first := start(t, testkit.Config(t), conf).ready()
		applyChosen(t, ns, other, "loses", "goes", "later")
		first.halt()
		unchoose(t, ns, "loses", "later", "goes")
		testkit.Delete(t, widgets, ns, "goes")
		startWith(t, testkit.Config(t), func(op *config.Operator, _ *engine.Options) { op.ResyncPeriod = config.Duration(time.Second) }, conf).ready()
		waitGone(t, widgets, ns, "goes")
		waitGone(t, configMaps, other, "goes")
		waitMetric(t, 2, "corollary_shared_upstreams", name)
		surveyAll(t, testkit.Config(t), survey.Options{}, conf).expect(t, "loses", "leftover loses")
		waitData(t, other, "loses", "key", "value")
		if len(testkit.Get(t, widgets, ns, "loses").GetFinalizers()) != 1 {
			t.Error("the finalizer is off what is left")
		}
		testkit.Patch(t, widgets, ns, "loses", "somebody", `{"metadata":{"labels":{"served":"yes"}}}`)
		waitCondition(t, widgets, ns, "loses", "Ready", "True")
		unchoose(t, ns, "loses")
		cleanedUp(t, ns, other, "loses")
		testkit.Delete(t, widgets, ns, "later") // no watch tells of it: a resync finds it
		waitGone(t, widgets, ns, "later")
		waitGone(t, configMaps, other, "later")
	})
}

// A standby keeps nothing of upstreams that are gone, or that the leader has cleaned up after; and it cleans up itself after one
// that the leader did not live to clean up after.
func TestStandbyKeepsNothing(t *testing.T) {
	bySelection(t, func(t *testing.T, selection string) {
		ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		conf := chosen(selection, ns, other, name)
		leader := start(t, testkit.Config(t), conf).ready()
		elected := make(chan struct{})
		standby := startWith(t, testkit.Config(t), func(_ *config.Operator, o *engine.Options) {
			o.Elected, o.HadOtherLeader = elected, func() bool { return true }
		}, conf).ready()
		objects := []string{"a", "b", "c", "d", "e", "f"}
		applyChosen(t, ns, other, objects...)
		for i, object := range objects {
			if i%2 == 0 {
				unchoose(t, ns, object)
				cleanedUp(t, ns, other, object)
			}
			deleteAndWait(t, widgets, ns, object)
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			n, text := standby.Kept(name)
			return n == 0, text
		})

		applyChosen(t, ns, other, "loses", "bare")
		leader.halt()
		testkit.Delete(t, configMaps, other, "bare")
		unchoose(t, ns, "loses", "bare")
		testkit.Eventually(t, patience, func() (bool, string) {
			n, text := standby.Kept(name)
			return n >= 2, text
		})
		close(elected)
		cleanedUp(t, ns, other, "loses", "bare")
		testkit.Delete(t, widgets, ns, "loses")
		testkit.Delete(t, widgets, ns, "bare")
	})
}

// A session that only deletes, of a config that has run before, hears of a kind that comes back.
func TestKindComesBackToABrokenConfig(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, other, name, up := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t), testkit.Unique(t)+"-up"
		installLate(t, name)
		installLate(t, up)
		conf := withLate(fill(widgetConfig, ns, name), name, other) + "validate: [{rule: '!has(self.spec.level) || self.spec.level <= 20'}]\n"
		r, faults := startFaulty(t, replaceOnce(t, conf, "{apiVersion: test.example.com/v1, kind: Widget,", "{apiVersion: "+up+".example.com/v1, kind: Late,"))
		testkit.Eventually(t, patience, func() (bool, string) {
			_, err := testkit.TryApply(t, ns, "{apiVersion: "+up+".example.com/v1, kind: Late, metadata: {name: a}, spec: {data: {key: value}}}")
			return err == nil, text(err)
		})
		waitLate(t, other, name, "a", "value")
		waitThat(t, lates(up), ns, "a", isReady)
		servesLate(t, up, false)
		waitState(t, name, "KindMissing")
		servesLate(t, name, false)
		// It hears of the kind once the changed schema is published: then no session goes on by the one before.
		deaf := faults.Answer(http.StatusServiceUnavailable, func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/"+up+".example.com") })
		testkit.Update(t, crds, "", "lates."+up+".example.com", func(u *unstructured.Unstructured) {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			free := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
			spec := map[string]any{"type": "object", "properties": map[string]any{"level": map[string]any{"type": "string"}, "data": free}}
			_ = unstructured.SetNestedMap(versions[0].(map[string]any), map[string]any{"type": "object", "properties": map[string]any{"spec": spec, "status": runtime.DeepCopyJSON(free)}},
				"schema", "openAPIV3Schema")
			_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
		})
		servesLate(t, up, true)
		source, err := kinds.Live(testkit.Config(t))
		if err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			source.Invalidate()
			k, err := source.Kind(lates(up).GroupVersion().WithKind("Late"))
			return err == nil && k.Schema != nil && len(k.Schema.Properties["spec"].Properties) > 0, text(err)
		})
		deaf.Off()
		r.waitUnready("ConfigRefused", "validate[0].rule", cleansUp)
		testkit.Delete(t, lates(up), ns, "a")
		waitsFor(t, lates(up), ns, "a", "KindNotServed", "serves it in no version")
		servesLate(t, name, true)
		waitGone(t, lates(up), ns, "a")
		waitGone(t, lates(name), other, "a")
	})
}
