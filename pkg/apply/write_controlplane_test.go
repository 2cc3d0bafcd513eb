//go:build controlplane

package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestLeavingOut: what happens to a field that an apply does not have any more.
func TestLeavingOut(t *testing.T) {
	with := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {keep: "1", drop: "1"}}`
	without := `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {keep: "1"}}`

	t.Run("sole owner: removed", func(t *testing.T) {
		f := setupFor(t, testkit.Config(t))
		tg := f.target(configMaps, "a")
		out := f.apply(tg, f.create(tg, with).GetUID(), without)
		must.Same[any](t, map[string]any{"keep": "1"}, field(t, out, "data"), "data")
	})
	t.Run("co-owned: stays, and nothing says so", func(t *testing.T) {
		f := setupFor(t, testkit.Config(t))
		tg := f.target(configMaps, "a")
		uid := f.create(tg, with).GetUID()
		testkit.Patch(t, configMaps, f.ns, "a", "kubectl-edit", `{"data": {"drop": "2"}}`)
		f.apply(tg, uid, with) // forced back
		testkit.Patch(t, configMaps, f.ns, "a", "kubectl-edit", `{"data": {"drop": "1", "theirs": "1"}}`)
		testkit.Apply(t, f.ns, with) // a second manager with the same value owns it with us
		out := f.apply(tg, uid, without)
		if field(t, out, "data", "drop") != "1" {
			t.Error("a co-owned field was removed")
		}
		must.Same(t, `{"f:data":{"f:keep":{}}}`, entry(out, ours, metav1.ManagedFieldsOperationApply, ""), "we own")
	})
	t.Run("with a default: reset", func(t *testing.T) {
		f := setupFor(t, testkit.Config(t))
		tg := f.target(deployments, "web")
		uid := f.create(tg, deployment).GetUID()
		less := doc(t, deployment)
		delete(less["spec"].(map[string]any), "replicas")
		out := must.Get(f.c.Apply(t.Context(), tg, uid, less)).In(t)
		if got := field(t, out, "spec", "replicas"); got != int64(1) {
			t.Errorf("replicas are %v, want the default 1", got)
		}
	})
	t.Run("null for a field of a built-in kind, unlike with a CRD: reset", func(t *testing.T) {
		f := setupFor(t, testkit.Config(t))
		out := f.create(f.target(deployments, "web"), strings.Replace(deployment, "replicas: 3", "replicas: null", 1))
		if got := field(t, out, "spec", "replicas"); got != int64(1) {
			t.Errorf("replicas are %v, want the default 1", got)
		}
	})
	t.Run("scaled by another: theirs stays", func(t *testing.T) {
		f := setupFor(t, testkit.Config(t))
		tg := f.target(deployments, "web")
		uid := f.create(tg, deployment).GetUID()
		testkit.Patch(t, deployments, f.ns, "web", "autoscaler", `{"spec": {"replicas": 7}}`, "scale")
		less := doc(t, deployment)
		delete(less["spec"].(map[string]any), "replicas")
		out := must.Get(f.c.Apply(t.Context(), tg, uid, less)).In(t)
		if got := field(t, out, "spec", "replicas"); got != int64(7) {
			t.Errorf("replicas are %v, want the autoscaler's 7", got)
		}
	})
}
