//go:build controlplane

package examples_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// workerImage is where the image of a Worker's Deployment is.
const workerImage = ".spec.template.spec.containers[name=worker].image"

// TestAutoscaled: the replicas are the autoscaler's, whatever else changes. It begins with a config that leaves
// drift.initialFields out, and then runs the example's, which has it.
func TestAutoscaled(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	reasons := map[string]string{
		"untouched": "nobody has scaled it yet: the field is still ours alone, and leaving it out would reset it to 1",
		"unmoved":   "an autoscaler that wants what is there owns nothing",
		"meanwhile": "it is scaled between the two configs",
		"fought":    "it is scaled while the first config undoes that",
	}
	before := operate(t, changed(t, "autoscaled", "initialFields: [.spec.replicas] ", "policy: Enforce "))
	for name := range reasons {
		testkit.Apply(t, ns, "{apiVersion: platform.example.com/v1, kind: Worker, metadata: {name: "+name+"}, spec: {image: old, minReplicas: 2}}")
	}
	hashes := map[string]any{}
	for name := range reasons {
		hashes[name] = at(await(t, deployments, ns, name, fields{".spec.replicas": int64(2)}), specHash)
	}
	scale(t, ns, "fought", 5)
	await(t, deployments, ns, "fought", fields{".spec.replicas": int64(2)})
	before.idle()
	before.halt()
	wanted := map[string]int64{"untouched": 2, "unmoved": 2, "meanwhile": 5, "fought": 5}
	for _, name := range []string{"unmoved", "meanwhile", "fought"} {
		scale(t, ns, name, wanted[name])
	}

	seen := watchReplicas(t, ns)
	unchanged := func(after string) {
		t.Helper()
		for name, reason := range reasons {
			if have := seen(name); !slices.Equal(have, []int64{wanted[name]}) {
				t.Errorf("%s (%s): after %s its replicas were %v, not always %d", name, reason, after, have, wanted[name])
			}
		}
	}
	o := runExample(t, "autoscaled")
	for name := range reasons {
		testkit.Eventually(t, patience, func() (bool, string) {
			return at(testkit.Get(t, deployments, ns, name), specHash) != hashes[name], name + " has not been applied by the new config"
		})
	}
	o.idle()
	if n := o.writes("deployments", ns); n > len(reasons) {
		t.Errorf("the new config took %d writes to %d Deployments", n, len(reasons))
	}
	unchanged("initialFields was added")

	for name := range reasons {
		testkit.Patch(t, platform("workers"), ns, name, "somebody", `{"spec":{"image":"new"}}`)
		await(t, deployments, ns, name, fields{workerImage: "new"})
	}
	o.idle()
	unchanged("a change of the image")

	await(t, autoscalers, ns, "untouched", fields{".spec.minReplicas": int64(2), ".spec.maxReplicas": int64(10), ".spec.scaleTargetRef.name": "untouched"})
	o.Reset()
	scale(t, ns, "untouched", 6)
	await(t, platform("workers"), ns, "untouched", fields{".status.replicas": int64(6)})
	o.idle()
	testkit.Eventually(t, patience, func() (bool, string) {
		return slices.Contains(seen("untouched"), 6), "the scale has not been seen here yet"
	})
	if have := seen("untouched"); !slices.Equal(have, []int64{2, 6}) || o.writes("deployments", ns) > 0 {
		t.Errorf("scaling was not left alone: replicas were %v, requests were %v", have, o.Snapshot())
	}
	o.halt()
	o = runExample(t, "autoscaled")
	o.idle()
	if have := seen("untouched"); !slices.Equal(have, []int64{2, 6}) {
		t.Errorf("after a restart, replicas were %v", have)
	}
}

// specHash is where the examples' operators write the hash of a document.
const specHash = ".metadata.annotations['platform.example.com/spec-hash']"

// scale sets a Deployment's replicas as an autoscaler does it.
func scale(t *testing.T, namespace, name string, replicas int64) {
	t.Helper()
	testkit.Patch(t, deployments, namespace, name, "kube-controller-manager", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas), "scale")
}

// watchReplicas records what the replicas of a namespace's Deployments are from now on, each value once.
func watchReplicas(t *testing.T, namespace string) func(name string) []int64 {
	t.Helper()
	client := testkit.Dynamic(t).Resource(deployments).Namespace(namespace)
	list := must.Get(client.List(t.Context(), metav1.ListOptions{})).In(t)
	var mu sync.Mutex
	seen := map[string][]int64{}
	note := func(u *unstructured.Unstructured) {
		mu.Lock()
		defer mu.Unlock()
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if !slices.Contains(seen[u.GetName()], n) {
			seen[u.GetName()] = append(seen[u.GetName()], n)
		}
	}
	for i := range list.Items {
		note(&list.Items[i])
	}
	w := must.Get(client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})).In(t)
	go func() {
		for event := range w.ResultChan() {
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				note(u)
			}
		}
	}()
	t.Cleanup(w.Stop)
	return func(name string) []int64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen[name])
	}
}
