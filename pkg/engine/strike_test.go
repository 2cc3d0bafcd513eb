package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// stricken is an operator one of whose writes goes wrong.
type stricken struct {
	*strickenStage
	t               *testing.T
	ns, other, name string
	conf            string
	life            *testkit.Life // nil before it begins
}

// strickenStage is what all of them share.
type strickenStage struct{ widgets, configMaps *testkit.Mirror }

// strickenStory is that of Widget a, step by step; each waits for what it has brought about.
type strickenStory struct {
	name, reason string
	conf         func(ns, other, name string) string
	// before is what is there already.
	before func(t *testing.T, s *stricken)
	steps  []func(t *testing.T, s *stricken)
	// answers says that lost and wrong answers are tried, too.
	answers bool
}

// until waits for something, whatever happens to the operator meanwhile.
func (s *stricken) until(cond func() (bool, string)) {
	s.t.Helper()
	if s.life == nil {
		testkit.Eventually(s.t, patience, cond)
		return
	}
	s.life.Eventually(patience, cond)
}

// upstream is Widget a, nil if it is gone.
func (s *stricken) upstream() *unstructured.Unstructured {
	for _, u := range s.widgets.In(s.ns) {
		return u
	}
	return nil
}

// made are the operator's ConfigMaps.
func (s *stricken) made() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Concat(s.configMaps.In(s.ns), s.configMaps.In(s.other)), func(cm *unstructured.Unstructured) bool {
		return cm.GetLabels()[s.name+".example.com/managed"] == ""
	})
}

// holdsOne waits until Widget a is ready and has exactly one ConfigMap, with that name and value.
func (s *stricken) holdsOne(at, value string) {
	s.t.Helper()
	s.until(func() (bool, string) {
		up, list := s.upstream(), s.made()
		if up == nil {
			return false, "Widget a has not been seen"
		}
		status, reason, message := condition(up, "Ready")
		if len(list) != 1 {
			return false, fmt.Sprintf("there are %d ConfigMaps; Ready is %s, %s: %s", len(list), status, reason, message)
		}
		cm := list[0]
		have, _, _ := unstructured.NestedString(cm.Object, "data", "key")
		if id := downstreamsOf(up)["config"]; len(id) > 0 && id["uid"] != string(cm.GetUID()) {
			return false, fmt.Sprintf("recorded is %v, not %s", id, cm.GetUID())
		} else if len(id) == 0 && strings.Contains(s.conf, "downstreams: .status") {
			return false, "nothing is recorded; Ready is " + status + ", " + reason + ": " + message
		}
		return cm.GetName() == at && have == value && status == "True", fmt.Sprintf("%s has %s; Ready is %s, %s: %s", cm.GetName(), have, status, reason, message)
	})
}

// goes deletes Widget a and waits until nothing of it is left.
func (s *stricken) goes() {
	s.t.Helper()
	testkit.Delete(s.t, widgets, s.ns, "a")
	s.until(func() (bool, string) {
		up, left := s.upstream(), len(s.made())
		if up == nil {
			return left == 0, fmt.Sprintf("%d ConfigMaps are left", left)
		}
		_, reason, message := condition(up, "Ready")
		return false, "Widget a is there; Ready: " + reason + ": " + message
	})
}

func (s *stricken) states(spec string) { testkit.Apply(s.t, s.ns, widget("a", spec)) }

// meddle is another controller: it puts a finalizer, a label and a key on what is made, at once, and takes its
// finalizer off what is being deleted. It does the work of an object of deletion.before, too.
func meddle(t *testing.T) func(cm *unstructured.Unstructured) {
	client := testkit.Dynamic(t).Resource(configMaps)
	const hold = "meddler.example.com/hold"
	return func(cm *unstructured.Unstructured) {
		made := func(label string) bool { return strings.HasSuffix(label, ".example.com/managed") }
		if !strings.HasPrefix(cm.GetNamespace(), "testeverywritestricken") || !slices.ContainsFunc(slices.Collect(maps.Keys(cm.GetLabels())), made) {
			return
		}
		done, _, _ := unstructured.NestedString(cm.Object, "data", "done")
		ours, set := slices.Contains(cm.GetFinalizers(), hold), cm.DeepCopy()
		switch {
		case cm.GetDeletionTimestamp() == nil && !ours:
			labels := set.GetLabels()
			labels["meddler"] = "yes"
			set.SetLabels(labels)
			set.SetFinalizers(append(set.GetFinalizers(), hold))
			_ = unstructured.SetNestedField(set.Object, "yes", "data", "meddled")
		case cm.GetDeletionTimestamp() != nil && ours:
			set.SetFinalizers(slices.DeleteFunc(set.GetFinalizers(), func(f string) bool { return f == hold }))
		case strings.HasSuffix(cm.GetName(), "-drain") && done == "":
			_ = unstructured.SetNestedField(set.Object, "yes", "data", "done")
		default:
			return
		}
		// What fails is done at the next reconciliation.
		_, _ = client.Namespace(cm.GetNamespace()).Update(t.Context(), set, metav1.UpdateOptions{FieldManager: "meddler"})
	}
}

// renames has a Widget's spec name its ConfigMap, in either namespace.
func renames(conf, ns, other string) string {
	return strings.NewReplacer(
		"        name: {{ .spec.name | default .metadata.name }}\n", "        name: {{ .spec.name | default .metadata.name }}\n        namespace: {{ .spec.namespace }}\n",
		"    # downstream\n", "    targetNamespaces: {from: List, names: ["+other+", "+ns+"]}\n    # downstream\n").Replace(conf)
}

func life(spec func(s *stricken, name, value string) string) []func(t *testing.T, s *stricken) {
	step := func(at, value string) func(*testing.T, *stricken) {
		return func(_ *testing.T, s *stricken) { s.states(spec(s, at, value)); s.holdsOne(at, value) }
	}
	return []func(*testing.T, *stricken){step("x", "one"), step("x", "two"), step("z", "two"), func(_ *testing.T, s *stricken) { s.goes() }}
}

func strickenStories() []strickenStory {
	const spec = `{name: %s, namespace: %s, data: {key: %s}}`
	near := func(s *stricken, name, value string) string { return fmt.Sprintf(spec, name, s.ns, value) }
	far := func(s *stricken, name, value string) string { return fmt.Sprintf(spec, name, s.other, value) }
	plain := func(ns, other, name string) string { return renames(fill(widgetConfig, ns, name), ns, other) }
	unrecorded := func(ns, other, name string) string {
		return strings.Replace(plain(ns, other, name), "  downstreams: .status.downstreams\n", "", 1)
	}
	return []strickenStory{
		{name: "near", reason: "an owner reference cleans up", conf: plain, steps: life(near)},
		{name: "far", reason: "the finalizer cleans up", conf: plain, steps: life(far), answers: true},
		{name: "unrecorded", reason: "no status names what was made", conf: unrecorded, steps: life(near)},
		{name: "unrecorded-far", reason: "and the finalizer cleans up", conf: unrecorded, steps: life(far)},
		{name: "waiting", reason: "the upstream stays until all is gone", steps: life(far), conf: func(ns, other, name string) string {
			return strings.Replace(plain(ns, other, name), "status:\n", "deletion: {wait: true}\nstatus:\n", 1)
		}},
		{name: "before", reason: "an object is made before anything goes, once", answers: true, steps: life(near)[2:], conf: func(ns, other, name string) string {
			return renames(withBefore(ns, name), ns, other)
		}},
		{name: "adoption", reason: "what stands is taken over", answers: true, steps: append(life(near)[:1], life(near)[3]), conf: func(ns, other, name string) string {
			return with(plain(ns, other, name), "adoptionPolicy: IfUnowned", "adopt: {fieldManagers: [helm]}")
		}, before: func(t *testing.T, s *stricken) {
			post(t, s.ns, "helm", `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {key: old, theirs: "1"}}`)
		}},
		{name: "previous", reason: "the manager of before leaves nothing behind", conf: func(ns, other, name string) string {
			return renamed(name).in(plain(ns, other, name), name)
		}, before: func(t *testing.T, s *stricken) {
			r := start(t, testkit.Config(t), plain(s.ns, s.other, s.name)).ready()
			s.states(near(s, "x", "one"))
			s.holdsOne("x", "one")
			r.halt()
		}, steps: append([]func(*testing.T, *stricken){func(_ *testing.T, s *stricken) {
			s.until(func() (bool, string) {
				up := s.upstream()
				left := slices.ContainsFunc(up.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == s.name && e.Subresource == "status" })
				return !left, fmt.Sprintf("the earlier manager has fields of the status: %v", up.GetManagedFields())
			})
		}}, life(near)...)},
	}
}

// tell plays a story with one write gone wrong.
func (story strickenStory) tell(t *testing.T, stage *strickenStage, strike *testkit.Strike) {
	t.Helper()
	s := &stricken{strickenStage: stage, t: t, ns: testkit.Namespace(t), other: testkit.Namespace(t), name: testkit.Unique(t)}
	s.conf = story.conf(s.ns, s.other, s.name)
	if story.before != nil {
		story.before(t, s)
	}
	s.life = strike.Run(t, testkit.Config(t), func(cfg *rest.Config) func() { return start(t, cfg, s.conf).halt })
	for _, step := range story.steps {
		step(t, s)
	}
	s.life.Stop()
}

// TestEveryWriteStricken runs each story once for each of its writes and for each thing that can go wrong with it,
// while another controller puts its finalizer on whatever is made. It always ends well.
func TestEveryWriteStricken(t *testing.T) {
	t.Parallel()
	for _, story := range strickenStories() {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			mishaps := testkit.Deaths
			if story.answers {
				mishaps = slices.Concat(testkit.Deaths, testkit.Answers)
			}
			testkit.EachWrite(t, mishaps, func(t *testing.T, strike *testkit.Strike) {
				inTurn(t, func(t *testing.T) {
					stage := &strickenStage{widgets: testkit.NewMirror(t, widgets, nil), configMaps: testkit.NewMirror(t, configMaps, meddle(t))}
					story.tell(t, stage, strike)
				})
			})
		})
	}
}
