//go:build controlplane

package examples_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// TestExamplesOnACluster runs all examples in one process on a real API server and holds what becomes of each cr.yaml
// to rendered.yaml, and to what `test` makes of it.
func TestExamplesOnACluster(t *testing.T) {
	for _, name := range []string{"platform", "team-a", "team-b"} {
		testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	for gvr, control := range others(t) {
		if gvr == replicaSets || gvr.Group == network("").Group { // what an example waits for before it makes the rest
			testkit.NewMirror(t, gvr, func(u *unstructured.Unstructured) { control(u.DeepCopy()) })
		}
	}
	var paths []string
	for _, e := range examples(t) {
		paths = append(paths, e.config())
	}
	operate(t, paths...)
	for _, e := range examples(t) {
		t.Run(e.name(), func(t *testing.T) {
			for _, file := range []string{"inputs.yaml", "cr.yaml"} {
				if _, err := os.Stat(e.path(file)); err != nil {
					continue // few have inputs
				}
				for _, u := range documents(t, e.path(file)) {
					testkit.Apply(t, "", marshal(t, u))
				}
			}
			for _, want := range documents(t, e.path("rendered.yaml")) {
				testkit.Eventually(t, patience, func() (bool, string) { return applied(t, want) })
			}
			for _, u := range documents(t, e.path("cr.yaml")) {
				sameAsRun(t, e, u)
			}
		})
	}
	t.Run("what others open in a default-deny policy is closed again", func(t *testing.T) {
		policies := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
		testkit.Patch(t, policies, "team-a", "default-deny", "somebody", `{"spec":{"ingress":[{}]}}`)
		testkit.Eventually(t, patience, func() (bool, string) {
			_, open, _ := unstructured.NestedSlice(testkit.Get(t, policies, "team-a", "default-deny").Object, "spec", "ingress")
			return !open, "the ingress rule is still there"
		})
	})
	t.Run("copies go with their original", func(t *testing.T) {
		testkit.Delete(t, configMaps, "platform", "trusted-hosts")
		for _, namespace := range []string{"team-a", "team-b", "platform"} {
			testkit.Eventually(t, patience, func() (bool, string) {
				return testkit.Find(t, configMaps, namespace, "trusted-hosts") == nil, "it is still in " + namespace
			})
		}
	})
}

// applied compares a live object with what was rendered offline. The uid of the owner is a placeholder there, and the
// API server adds defaults; by the hash the documents are the same.
func applied(t *testing.T, want *unstructured.Unstructured) (bool, string) {
	t.Helper()
	cluster := must.Get(discovered.New(testkit.Config(t))).In(t)
	kind := must.Get(cluster.Kind(want.GroupVersionKind())).In(t)
	live := testkit.Find(t, kind.GVR, want.GetNamespace(), want.GetName())
	if live == nil {
		return false, want.GetKind() + " " + want.GetName() + " does not stand"
	}
	diff := cmp.Diff(marks(want), marks(live))
	return diff == "", diff
}

// marks are an object's labels, and its annotations and owners less the owner's uid.
func marks(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for key, value := range u.GetLabels() {
		out["label "+key] = value
	}
	for key, value := range u.GetAnnotations() {
		if parts := strings.Split(value, "/"); len(parts) == 3 {
			value = parts[0] + "/" + parts[1]
		}
		out["annotation "+key] = value
	}
	delete(out, "annotation deployment.kubernetes.io/revision")
	delete(out, "annotation platform.example.com/rollout") // only a process that runs knows the rollout
	delete(out, "label kubernetes.io/metadata.name")
	for _, owner := range u.GetOwnerReferences() {
		out["owner "+owner.Kind] = owner.Name
	}
	return out
}
