//go:build controlplane

package examples_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

func TestMain(m *testing.M) {
	testkit.Main(m, testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces),
		testkit.WithCRDs("configs/appoperator/crd.yaml", "configs/chain/crd.yaml", "configs/webapp/crd.yaml"))
}

// patience is long enough for a busy machine; what is waited for takes milliseconds.
const patience = 30 * time.Second

// TestExamplesOnACluster runs all examples in one process on a real API server and holds what becomes of each cr.yaml to
// rendered.yaml.
func TestExamplesOnACluster(t *testing.T) {
	for _, name := range []string{"platform", "team-a", "team-b"} {
		testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	runAll(t)
	for _, e := range examples(t) {
		t.Run(e.name(), func(t *testing.T) {
			for _, cr := range documents(t, e.path("cr.yaml")) {
				testkit.Apply(t, "", marshal(t, cr))
			}
			for _, want := range documents(t, e.path("rendered.yaml")) {
				testkit.Eventually(t, patience, func() (bool, string) { return applied(t, want) })
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
		configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		testkit.Delete(t, configMaps, "platform", "trusted-hosts")
		for _, namespace := range []string{"team-a", "team-b", "platform"} {
			testkit.Eventually(t, patience, func() (bool, string) {
				return testkit.Find(t, configMaps, namespace, "trusted-hosts") == nil, "it is still in " + namespace
			})
		}
	})
}

// runAll runs every example in one engine until the test ends.
func runAll(t *testing.T) {
	t.Helper()
	var paths []string
	for _, e := range examples(t) {
		paths = append(paths, e.config())
	}
	files, errs := config.Load(config.Options{Files: paths})
	if len(errs) > 0 {
		t.Fatalf("the examples cannot run together:\n%v", errs)
	}
	mgr, err := manager.New(testkit.Config(), manager.Options{Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.New(testkit.Config(), mgr, files, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// applied compares a live object with what was rendered offline. The uid of the owner is a placeholder there, and the API
// server adds defaults; the hash tells that the documents are the same.
func applied(t *testing.T, want *unstructured.Unstructured) (bool, string) {
	t.Helper()
	cluster, err := kinds.Live(testkit.Config())
	if err != nil {
		t.Fatal(err)
	}
	kind, err := cluster.Kind(want.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
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
	for _, owner := range u.GetOwnerReferences() {
		out["owner "+owner.Kind] = owner.Name
	}
	return out
}

func documents(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	list, err := controlplane.Documents(string(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func marshal(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
