//go:build controlplane

package examples_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
)

var (
	editSteps = flag.Int("edits", 4, "how many random edits of each example TestExamplesEdited makes")
	editSeed  = flag.Uint64("seed", 1, "which ones")
)

// TestExamplesEdited makes random edits of custom resources, by their schema, of downstreams, and of inputs. After each of them:
//   - the status is about the current generation, and `plan` finds nothing to do;
//   - a downstream that was changed or deleted is as before, and what the API server refuses changes nothing;
//   - once the edit of a custom resource or an input is undone, everything is as before. Half of the edits stay, if they leave the upstream ready.
//
// A restart takes no request. In the end, deletion leaves nothing, and creation makes all of it again as it was.
func TestExamplesEdited(t *testing.T) {
	stage := newStage(t, others(t), examples(t)...)
	for _, e := range examples(t) {
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			newStory(t, stage.sandbox(t, e)).run(*editSteps)
		})
	}
}

// story is a run of random edits of one example.
type story struct {
	*sandbox
	editor
	client dynamic.Interface
	o      *operator
	stop   func()
	did    []string
}

func newStory(t *testing.T, b *sandbox) *story {
	s := &story{sandbox: b, editor: editor{rand.New(rand.NewPCG(*editSeed, 7))}, client: testkit.Dynamic(t)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d:\n%s", *editSeed, strings.Join(s.did, "\n"))
		}
	})
	return s
}

func (s *story) run(steps int) {
	s.o, s.stop = s.runUntilIdle()
	s.create()
	s.waitReady(true, false)
	for range steps {
		s.settle()
		before := s.picture()
		switch s.r.IntN(12) {
		case 0:
			s.restart()
		case 1, 2, 3:
			s.disturb()
			s.awaitPicture(before)
		case 4, 5:
			s.editInput(before)
		default:
			s.editUpstream(before)
		}
	}
	s.settle()
	s.restart()
	s.again()
	s.stop()
}

func (s *story) note(format string, args ...any) { s.did = append(s.did, fmt.Sprintf(format, args...)) }

// editUpstream edits the spec of one of the custom resources, and may undo that.
func (s *story) editUpstream(before string) {
	u := s.pick(func(u *unstructured.Unstructured) bool {
		return u.Object["spec"] != nil && slices.Contains(s.reporting, u.GetKind()) && strings.HasSuffix(u.GroupVersionKind().Group, ".example.com") && !s.isDownstream(u)
	})
	if u == nil {
		return
	}
	k := s.kindOf(u)
	spec := s.change(u.Object["spec"], fieldOf(k.Schema, "spec"))
	switch {
	case reflect.DeepEqual(spec, u.Object["spec"]):
	case s.put(u, spec):
		s.mayUndo(before, func() { s.put(u, u.Object["spec"]) })
	default:
		s.awaitPicture(before)
	}
}

// editInput edits a value of one of the ConfigMaps that are inputs, and may undo that.
func (s *story) editInput(before string) {
	docs := slices.DeleteFunc(s.documents("inputs.yaml"), func(doc *unstructured.Unstructured) bool { return doc.GetKind() != "ConfigMap" })
	if len(docs) == 0 {
		s.editUpstream(before)
		return
	}
	doc := docs[s.r.IntN(len(docs))]
	data := doc.Object["data"].(map[string]any)
	key := slices.Sorted(maps.Keys(data))[s.r.IntN(len(data))]
	objects := s.client.Resource(s.kindOf(doc).GVR).Namespace(s.names[doc.GetNamespace()])
	name := s.nameOf(doc.GetNamespace(), doc.GetName())
	was, _, _ := unstructured.NestedString(must.Get(objects.Get(s.t.Context(), name, metav1.GetOptions{})).In(s.t).Object, "data", key)
	set := func(value string) {
		patch, _ := json.Marshal(map[string]any{"data": map[string]any{key: value}})
		s.note("somebody writes %s to ConfigMap %s", patch, name)
		must.Get(objects.Patch(s.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"})).In(s.t)
	}
	set([]string{"7", "x y", "", was + "0"}[s.r.IntN(4)])
	s.mayUndo(before, func() { set(was) })
}

// mayUndo undoes an edit half of the times, and always if an upstream is not ready with it. Then everything is as before.
func (s *story) mayUndo(before string, undo func()) {
	s.t.Helper()
	s.settle()
	if s.unready() != "" || s.r.IntN(2) == 0 {
		undo()
		s.settle()
		s.awaitPicture(before)
	}
}

// put replaces the spec of a custom resource. It returns false if the API server refuses that.
func (s *story) put(u *unstructured.Unstructured, spec any) bool {
	s.t.Helper()
	k := s.kindOf(u)
	now := testkit.Get(s.t, k.GVR, u.GetNamespace(), u.GetName())
	now.Object["spec"] = spec
	_, err := s.client.Resource(k.GVR).Namespace(u.GetNamespace()).Update(s.t.Context(), now, metav1.UpdateOptions{FieldManager: "somebody"})
	text, _ := json.Marshal(spec)
	s.note("%s %s becomes %s: %v", u.GetKind(), u.GetName(), text, err)
	switch {
	case apierrors.IsInvalid(err):
		return false
	case apierrors.IsConflict(err):
		return s.put(u, spec)
	case err != nil:
		s.t.Fatal(err)
	}
	return true
}

// disturb deletes a downstream, or changes one of its labels. Jobs are spared: those of the examples are not repaired.
func (s *story) disturb() {
	u := s.pick(func(u *unstructured.Unstructured) bool {
		return s.isDownstream(u) && u.GetDeletionTimestamp() == nil && u.GetKind() != "Job"
	})
	if u == nil {
		return
	}
	objects := s.client.Resource(s.kindOf(u).GVR).Namespace(u.GetNamespace())
	if s.r.IntN(3) == 0 && !s.hasInitialFields(u) {
		s.note("somebody deletes %s %s: %v", u.GetKind(), u.GetName(), objects.Delete(s.t.Context(), u.GetName(), metav1.DeleteOptions{}))
		s.changed(u, func(now *unstructured.Unstructured) bool { return now == nil || now.GetUID() != u.GetUID() })
		return
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(u.GetLabels())), func(key string) bool { return strings.Contains(key, "kubernetes.io/") })
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, keys[s.r.IntN(len(keys))], texts[s.r.IntN(3)])
	resp, err := objects.Patch(s.t.Context(), u.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	s.note("somebody writes %s to %s %s: %v", patch, u.GetKind(), u.GetName(), err)
	if err == nil {
		s.changed(u, func(now *unstructured.Unstructured) bool {
			return now == nil || now.GetUID() != u.GetUID() || !isOlder(now, resp)
		})
	}
}

// hasInitialFields reports whether a downstream has fields that others may have changed since it was created: a new one
// has other values.
func (s *story) hasInitialFields(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.load(), func(file *load.File) bool {
		return slices.ContainsFunc(file.Downstreams, func(d config.Downstream) bool {
			return d.Kind == u.GetKind() && len(d.Drift.InitialFields) > 0
		})
	})
}

// changed waits until the sandbox shows a change of an object.
func (s *story) changed(u *unstructured.Unstructured, shows func(now *unstructured.Unstructured) bool) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() (bool, string) {
		for _, now := range s.mirrors[s.kindOf(u).GVR].In(u.GetNamespace()) {
			if now.GetName() == u.GetName() {
				return shows(now), "the change is not seen"
			}
		}
		return shows(nil), "the change is not seen"
	})
}

// isDownstream: it is neither an upstream of the example nor an input.
func (s *story) isDownstream(u *unstructured.Unstructured) bool {
	return u.GetLabels()[sandboxLabel] == s.id && !slices.ContainsFunc(s.documents("cr.yaml"), func(doc *unstructured.Unstructured) bool {
		return doc.GroupVersionKind() == u.GroupVersionKind() && s.nameOf(doc.GetNamespace(), doc.GetName()) == u.GetName()
	})
}

// pick chooses one of the sandbox's objects; nil if none meets the condition.
func (s *story) pick(condition func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	list := slices.DeleteFunc(s.objects(), func(u *unstructured.Unstructured) bool { return !condition(u) })
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetKind()+"/"+a.GetNamespace()+"/"+a.GetName(), b.GetKind()+"/"+b.GetNamespace()+"/"+b.GetName())
	})
	return list[s.r.IntN(len(list))]
}

func (s *story) kindOf(u *unstructured.Unstructured) *kinds.Kind {
	k := must.Get(s.cluster.Kind(u.GroupVersionKind())).In(s.t)
	return k
}

// settle waits until each status is about the current generation and `plan` finds nothing to do.
func (s *story) settle() {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() (bool, string) {
		objects := s.objects()
		for _, u := range objects {
			if u.GetDeletionTimestamp() != nil {
				return false, fmt.Sprintf("%s %s is being deleted", u.GetKind(), u.GetName())
			}
			if seen := at(u, ".status.observedGeneration"); slices.Contains(s.reporting, u.GetKind()) && seen != u.GetGeneration() {
				return false, fmt.Sprintf("the status of %s %s is about generation %v, not %d", u.GetKind(), u.GetName(), seen, u.GetGeneration())
			}
			recorded, _, _ := unstructured.NestedSlice(u.Object, "status", "downstreams")
			for _, rec := range recorded {
				uid, _, _ := unstructured.NestedString(rec.(map[string]any), "uid")
				isLeft := slices.Contains([]any{"Unwanted", "Superseded"}, rec.(map[string]any)["state"])
				if isLeft && !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return string(o.GetUID()) == uid }) {
					return false, fmt.Sprintf("the status of %s %s records an object that is gone", u.GetKind(), u.GetName())
				}
			}
		}
		planned := s.planned()
		return len(planned) == 0, fmt.Sprint("plan finds something to do: ", planned)
	})
}

// planned is what `plan` would do, without what it cannot do.
func (s *story) planned() (list []string) {
	surveyor := must.Get(survey.NewSurveyor(testkit.Config(s.t), survey.Options{Workers: 4})).In(s.t)
	for _, file := range s.load() {
		v, err := surveyor.Open(s.t.Context(), file)
		if err != nil {
			s.t.Fatal(err)
		}
		err = v.Visit(s.t.Context(), v.Refs(), func(f *preview.Finding) error {
			for _, c := range f.Changes {
				if c.Action.Writes() && c.Action != preview.Refuse {
					list = append(list, fmt.Sprintf("%s: %s %s", f.Ref, c.Action, c.Target))
				}
			}
			return nil
		})
		v.Close()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return list
}

// awaitPicture waits until everything is as in a picture.
func (s *story) awaitPicture(want string) {
	s.t.Helper()
	var have string
	s.t.Cleanup(func() {
		if s.t.Failed() && have != want {
			s.t.Logf("before and after:\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n")))
		}
	})
	testkit.Eventually(s.t, patience, func() (bool, string) {
		have = s.picture()
		return have == want, "it is not as before"
	})
	have = want
}

// restart starts the operators again: nothing is to be done.
func (s *story) restart() {
	s.t.Helper()
	s.o.idle()
	s.stop()
	s.o, s.stop = s.runUntilIdle()
	if asked := s.o.Requests(aboutObjects); len(asked) > 0 {
		s.t.Errorf("a restart takes requests: %v", asked)
	}
}

// again deletes the upstreams, which leaves nothing, and creates them as they were, which creates all of it.
func (s *story) again() {
	s.t.Helper()
	before := s.picture()
	var upstreams []*unstructured.Unstructured
	for _, doc := range s.documents("cr.yaml") {
		u := testkit.Get(s.t, s.kindOf(doc).GVR, s.names[doc.GetNamespace()], s.nameOf(doc.GetNamespace(), doc.GetName()))
		upstreams = append(upstreams, u)
	}
	s.delete()
	s.waitReady(false, true)
	for _, u := range upstreams {
		u.SetResourceVersion("")
		u.SetUID("")
		u.SetFinalizers(nil)
		u.SetManagedFields(nil)
		delete(u.Object, "status")
		must.Get(s.client.Resource(s.kindOf(u).GVR).Namespace(u.GetNamespace()).Create(s.t.Context(), u, metav1.CreateOptions{})).In(s.t)
	}
	s.settle()
	if !s.keepsCreated() {
		s.awaitPicture(before)
	}
}

// keepsCreated: a downstream depends on when it was created.
func (s *story) keepsCreated() bool {
	for _, file := range s.load() {
		for _, d := range file.Downstreams {
			if d.UpdatePolicy == config.UpdateCreateOnly || len(d.Drift.InitialFields) > 0 {
				return true
			}
		}
	}
	return false
}

func isOlder(a, b *unstructured.Unstructured) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}
