//go:build controlplane

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestTakeOver takes a Deployment over from each kind of writer: the next apply removes what only it set, a later one
// what we omit; the fields of others and the entries for the status stay.
func TestTakeOver(t *testing.T) {
	for _, test := range []struct {
		reason, manager string
		make            func(f *fixture, manager string) *unstructured.Unstructured
	}{
		{"kubectl create is an Update that owns the defaults, too", "kubectl-create", posted},
		{"kubectl apply records what it applied in an annotation", "kubectl-client-side-apply", posted},
		{"helm 3 posts and patches", "helm", func(f *fixture, manager string) *unstructured.Unstructured {
			posted(f, manager)
			return testkit.Patch(f.T, deployments, f.ns, "a", manager, `{"spec": {"minReadySeconds": 5}}`)
		}},
		{"another manager of server-side apply", "argocd-controller", applied},
		{"a writer that created first and applied later has two entries", "manager", func(f *fixture, manager string) *unstructured.Unstructured {
			posted(f, manager)
			return applied(f, manager)
		}},
	} {
		t.Run(test.manager, func(t *testing.T) {
			f := setupFor(t, testkit.Config(t))
			test.make(f, test.manager)
			testkit.Patch(t, deployments, f.ns, "a", "other", `{"metadata": {"labels": {"other": "1"}}, "spec": {"revisionHistoryLimit": 4}}`)
			testkit.Patch(t, deployments, f.ns, "a", test.manager, `{"status": {"replicas": 3, "observedGeneration": 1}}`, "status")
			checkTakenOver(f, test.manager)
		})
	}
}
