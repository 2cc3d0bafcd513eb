package sim_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// holder is the finalizer of a controller that takes its time.
const holder = "holder.example.com/hold"

// hold adds that finalizer to an object.
func (w *world) hold(ctx context.Context, u *unstructured.Unstructured) error {
	if u.GetDeletionTimestamp() != nil || slices.Contains(u.GetFinalizers(), holder) {
		return nil
	}
	return w.setFinalizers(ctx, u, append(u.GetFinalizers(), holder))
}

func (w *world) setFinalizers(ctx context.Context, u *unstructured.Unstructured, names []string) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": names}})
	if err != nil {
		return err
	}
	return w.merge(ctx, u, string(text))
}

// releaseHeld removes the finalizer from terminating objects, some time after their deletion.
func (w *world) releaseHeld(ctx context.Context) {
	for _, c := range w.pipelines() {
		for _, gvk := range downstreamKinds(c.Pipeline) {
			for _, u := range w.list(ctx, gvk) {
				i := slices.Index(u.GetFinalizers(), holder)
				if i < 0 || u.GetDeletionTimestamp() == nil {
					continue
				}
				if r, _ := w.chance("hold " + string(u.GetUID())); r.IntN(4) > 0 {
					w.notifyChange() // run again later
					continue
				}
				w.logf("%s is let go: %v", key(u), w.setFinalizers(ctx, u, slices.Delete(u.GetFinalizers(), i, i+1)))
			}
		}
	}
}

// checkOrder checks that nothing is deleted before what comes after it is gone, finalizers of others included. It is
// for configs in which what comes after an object is never wanted without it.
func (p *process) checkOrder(request *http.Request, what string) {
	w := p.world
	if request.Method != http.MethodDelete || request.URL.Query().Get("dryRun") != "" || w.Setup.Recreate ||
		w.Setup.Example != "spaces" && (!w.Setup.Related || w.Setup.Example != "") {
		return
	}
	ctx := request.Context()
	for _, c := range w.pipelines() {
		for i, d := range c.Pipeline.Downstreams {
			for _, u := range w.list(ctx, d.GVK()) {
				if !c.Pipeline.Config.Deletion.Wait && !w.isStanding(ctx, c.Pipeline, u) {
					continue // the order is not kept
				}
				path := "/" + d.Kind.GVR.Resource + "/" + u.GetName()
				if uids := ownersOf(c.Pipeline, u); len(uids) > 0 && !isBefore(u) && strings.HasSuffix(request.URL.Path, path) &&
					(u.GetNamespace() == "" || strings.Contains(request.URL.Path, "/namespaces/"+u.GetNamespace()+"/")) {
					w.checkNothingAfter(ctx, c.Pipeline, i, u, uids[0], what)
				}
			}
		}
	}
}

// isStanding reports whether an upstream of an object exists and is not being deleted.
func (w *world) isStanding(ctx context.Context, p *compile.Pipeline, u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(w.list(ctx, p.Upstream.GVK), func(up *unstructured.Unstructured) bool {
		return up.GetDeletionTimestamp() == nil && slices.Contains(ownersOf(p, u), string(up.GetUID()))
	})
}

// checkNothingAfter checks that nothing exists that comes after an object u of downstream i, and belongs to it.
func (w *world) checkNothingAfter(ctx context.Context, p *compile.Pipeline, i int, u *unstructured.Unstructured, uid, what string) {
	for j, later := range p.Downstreams {
		if !w.comesAfter(p, j, i) || later.GVK() == u.GroupVersionKind() {
			continue
		}
		for _, y := range w.list(ctx, later.GVK()) {
			belongs := y.GetNamespace() == u.GetNamespace() && (y.GetName() == u.GetName() || w.Setup.Example != "" && u.GetNamespace() != "default")
			if u.GetKind() == "Namespace" {
				belongs = y.GetNamespace() == u.GetName()
			}
			if belongs && slices.Contains(ownersOf(p, y), uid) && !isBefore(y) {
				w.problem("%s, and %s, which comes after it, exists", what, key(y))
			}
		}
	}
}

// comesAfter reports whether downstream j comes after downstream i, perhaps with others between them.
func (w *world) comesAfter(p *compile.Pipeline, j, i int) bool {
	if w.Setup.Related {
		return p.Downstreams[j].Name == "config" && p.Downstreams[i].Name == "secret"
	}
	for _, a := range p.Downstreams[j].Config.After {
		k := slices.IndexFunc(p.Downstreams, func(d *desired.Downstream) bool { return d.Name == a.Name })
		if k == i || k >= 0 && w.comesAfter(p, k, i) {
			return true
		}
	}
	return false
}
