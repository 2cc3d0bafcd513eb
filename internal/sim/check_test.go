package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// pipelines returns the operators, compiled as in `corollary render`.
func (w *world) pipelines() []compile.Compiled {
	w.mu.Lock()
	v := w.variant
	w.mu.Unlock()
	v.broken = 0
	return compiled(w.t, w.Setup, v)
}

// list lists all objects of a kind.
func (w *world) list(ctx context.Context, gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	list, err := w.resource(gvk, "").List(context.WithoutCancel(ctx), metav1.ListOptions{})
	if err != nil {
		w.t.Error(err)
		return nil
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
		objects[i].SetGroupVersionKind(gvk)
	}
	return objects
}

// ownersOf returns the uids of the upstreams in the owner marks of an object.
func ownersOf(p *compile.Pipeline, u *unstructured.Unstructured) (uids []string) {
	for _, ref := range u.GetOwnerReferences() {
		if ref.Kind == p.Upstream.GVK.Kind && strings.HasPrefix(ref.APIVersion, p.Upstream.GVK.Group) {
			uids = append(uids, string(ref.UID))
		}
	}
	keys := []string{p.Config.Conventions.Owner.Annotation}
	if previous := p.Config.Conventions.Previous; previous != nil && previous.Owner != nil {
		keys = append(keys, previous.Owner.Annotation)
	}
	for _, key := range keys {
		if mark := u.GetAnnotations()[key]; mark != "" {
			uids = append(uids, mark[strings.LastIndex(mark, "/")+1:])
		}
	}
	return slices.Compact(uids)
}

func isBefore(u *unstructured.Unstructured) bool { return strings.HasSuffix(u.GetName(), "-before") }

// ownedObjects returns the objects of the operators, without those of deletion.before.
func (w *world) ownedObjects(ctx context.Context) (owned []*unstructured.Unstructured) {
	for _, c := range w.pipelines() {
		for _, gvk := range downstreamKinds(c.Pipeline) {
			for _, u := range w.list(ctx, gvk) {
				if len(ownersOf(c.Pipeline, u)) > 0 && !isBefore(u) {
					owned = append(owned, u)
				}
			}
		}
	}
	return owned
}

func downstreamKinds(p *compile.Pipeline) (list []schema.GroupVersionKind) {
	for _, d := range p.Downstreams {
		if !slices.Contains(list, d.GVK()) {
			list = append(list, d.GVK())
		}
	}
	return list
}

func key(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GetKind(), u.GetNamespace(), u.GetName())
}

// noteForgotten notes the objects of a downstream that was removed from the config, as the status has them: they stay,
// whatever becomes of their upstream.
func (w *world) noteForgotten(ctx context.Context) {
	for _, c := range w.pipelines() {
		for _, u := range w.list(ctx, c.Pipeline.Upstream.GVK) {
			for _, rec := range c.Pipeline.Forgotten(u) {
				w.forgotten[rec.UID] = true
			}
		}
	}
}

// check compares the cluster with what render prints.
func (w *world) check(ctx context.Context) {
	w.noteForgotten(ctx)
	for _, c := range w.pipelines() {
		p := c.Pipeline
		want := map[string]string{} // the uid of the upstream, by object
		for _, u := range w.list(ctx, p.Upstream.GVK) {
			w.checkUpstream(ctx, p, u, want)
		}
		for _, gvk := range downstreamKinds(p) {
			for _, u := range w.list(ctx, gvk) {
				for _, uid := range ownersOf(p, u) {
					if want[key(u)] != uid && !w.forgotten[u.GetUID()] {
						w.problem("%s has the mark of the upstream %s and nothing asks for it", key(u), uid)
					}
				}
			}
		}
	}
	for name, ok := range w.orphaned {
		if _, err := w.users.Resource(configMaps).Namespace("ns").Get(ctx, name, getOptions); ok && err != nil {
			w.problem("an object was to stay without its upstream: %v", err)
		}
	}
}

// checkUpstream adds to want the downstreams of an upstream.
func (w *world) checkUpstream(ctx context.Context, p *compile.Pipeline, u *unstructured.Unstructured, want map[string]string) {
	if len(ownersOf(p, u)) > 0 {
		return // a copy is not copied again
	}
	if u.GetDeletionTimestamp() != nil {
		w.problem("%s is still being deleted, with the finalizers %v", key(u), u.GetFinalizers())
		return
	}
	if selector, err := metav1.LabelSelectorAsSelector(p.Config.Watch.LabelSelector); err != nil {
		w.t.Fatal(err)
	} else if p.Config.Watch.LabelSelector != nil && !selector.Matches(labels.Set(u.GetLabels())) {
		return
	}
	in := p.InputsAt(p.InputRefs(ctx, u), desired.WholeObjects(func(s *desired.InputSource) []*unstructured.Unstructured {
		return w.list(ctx, s.Kind.GVK)
	})).WithSiblings(func(downstream int, at operator.Ref) map[string]any {
		for _, u := range w.list(ctx, p.Downstreams[downstream].GVK()) {
			if u.GetNamespace() == at.Namespace && u.GetName() == at.Name {
				return u.Object
			}
		}
		return nil
	})
	desired := p.Render(ctx, u, in)
	for k, d := range desired.Objects {
		if d.Err != nil {
			w.problem("%s: downstream %s cannot be rendered: %v", key(u), p.Downstreams[d.Downstream].Name, d.Err)
		}
		if d.Err != nil || !d.Wanted {
			continue
		}
		document := must.Get(p.Document(desired, k, u, in, nil)).In(w.t)
		object := &unstructured.Unstructured{Object: document}
		want[key(object)] = string(u.GetUID())
		w.checkDownstream(ctx, p, p.Downstreams[d.Downstream], object, string(u.GetUID()))
	}
	w.checkStatus(p, u)
}

// checkStatus checks that the upstream is ready, if everything that this needs exists.
func (w *world) checkStatus(p *compile.Pipeline, u *unstructured.Unstructured) {
	if w.Setup.Example != "" || w.Setup.Drift != "" || w.Setup.CreateOnly {
		return
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	text := must.Get(json.Marshal(status)).In(w.t)
	var have struct{ Conditions []metav1.Condition }
	must.Do(w.t, json.Unmarshal(text, &have))
	c := meta.FindStatusCondition(have.Conditions, p.Config.Status.Conditions.Ready)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != u.GetGeneration() {
		w.problem("%s of generation %d is not ready: %+v", key(u), u.GetGeneration(), c)
	}
}

// checkDownstream checks that an object exists, belongs to its upstream, and would not be changed by an apply.
func (w *world) checkDownstream(
	ctx context.Context, p *compile.Pipeline, d *desired.Downstream, want *unstructured.Unstructured, uid string,
) {
	have, err := w.of(want).Get(ctx, want.GetName(), getOptions)
	if err != nil {
		w.problem("%s is missing: %v", key(want), err)
		return
	}
	have.SetGroupVersionKind(want.GroupVersionKind())
	if owners := ownersOf(p, have); !slices.Equal(owners, []string{uid}) {
		w.problem("%s has the marks of the upstreams %v, want %s", key(want), owners, uid)
		return
	}
	if d.Config.UpdatePolicy == "CreateOnly" || d.Config.Drift.Policy != "" && w.edited[key(want)] {
		return
	}
	fillGenerated(want, have)
	marks.KeepAside(p.Settings, have, want) // only a process that runs knows in which rollout that is
	text := must.Get(json.Marshal(want)).In(w.t)
	force := true
	options := metav1.PatchOptions{FieldManager: p.Config.Conventions.FieldManager, Force: &force, DryRun: []string{metav1.DryRunAll}}
	then, err := w.of(want).Patch(ctx, want.GetName(), types.ApplyPatchType, text, options)
	if err != nil {
		w.problem("%s cannot be applied: %v", key(want), err)
		return
	}
	for _, u := range []*unstructured.Unstructured{have, then} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
	}
	if diff := cmp.Diff(have.Object, then.Object); diff != "" {
		w.problem("%s is not what render says: %s", key(want), diff)
	}
	data, _, _ := unstructured.NestedMap(have.Object, "data")
	if len(d.Config.Drift.ExclusiveFields) > 0 && data["theirs"] != nil {
		w.problem("%s has a key that nothing asks for: %v", key(want), data)
	}
}

// fillGenerated replaces the placeholders of generated values by the live ones; a missing one becomes "", which is a
// difference.
func fillGenerated(want, have *unstructured.Unstructured) {
	data, _ := want.Object["data"].(map[string]any)
	live, _ := have.Object["data"].(map[string]any)
	for name, value := range data {
		if value == generated.Placeholder {
			data[name], _ = live[name].(string)
		}
	}
}

// counted returns the requests during a function.
func (w *world) counted(during func()) []string {
	w.mu.Lock()
	w.requests = nil
	w.mu.Unlock()
	during()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// checkRequestCounts checks the number of requests of operations without failures.
func (w *world) checkRequestCounts(ctx context.Context) {
	if w.Setup.Example == "" {
		w.promisesOfWidget(ctx)
	}
	if n := w.counted(func() { wait(10 * time.Minute) }); len(n) > 0 {
		w.problem("%d requests at rest: %v", len(n), n)
	}
}

// objects returns how many objects of each downstream a widget requests.
func (w *world) objects(u *unstructured.Unstructured) int {
	if items, _, _ := unstructured.NestedSlice(u.Object, "spec", "items"); w.Setup.Several {
		return len(items)
	}
	return 1
}

func (w *world) promisesOfWidget(ctx context.Context) {
	const settled = time.Minute
	u := w.widget("fresh", 6, nil)
	n := w.counted(func() {
		must.Do(w.t, w.apply(ctx, u))
		wait(settled)
	})
	made := must.Get(w.of(u).Get(ctx, u.GetName(), getOptions)).In(w.t)
	if want := w.objects(u)*len(w.pipelines()[0].Pipeline.Downstreams) + 1 + min(len(made.GetFinalizers()), 1); len(n) != want {
		w.problem("a new object takes %d requests, want %d: %v", len(n), want, n)
	}
	n = w.counted(func() {
		must.Do(w.t, w.merge(ctx, u, `{"metadata":{"annotations":{"theirs":"x"}}}`))
		wait(settled)
	})
	if len(n) > 0 {
		w.problem("an event that changes nothing takes requests: %v", n)
	}
}
