//go:build controlplane

package examples_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestBucket: drained, then deleted, and seen until then. The test is the operator that has the buckets, and the Jobs'
// controller.
func TestBucket(t *testing.T) {
	t.Parallel()
	ns, storages := testkit.Namespace(t), platform("storages")
	o := runExample(t, "bucket")
	state(t, ns, "bucket")
	provide(t, ns, "invoices")
	await(t, storages, ns, "invoices", ready("True", "Ready", "").with(fields{".status.endpoint": "https://invoices.example.com"}))
	o.idle()
	if list := testkit.List(t, jobs, ns, ""); len(list) > 0 {
		t.Error("the Job runs though nothing is being deleted")
	}

	testkit.Delete(t, storages, ns, "invoices")
	await(t, jobs, ns, "invoices-drain", fields{".spec.template.spec.containers[name=drain].args": []any{"--from", "invoices", "--to", "s3://archive/invoices"}})
	running := ready("False", "BeforeRunning", "waiting for Job "+ns+"/invoices-drain to finish")
	await(t, storages, ns, "invoices", running.with(fields{".status.conditions[type=Reconciling].status": "True"}))
	o.isKept(t, ns, "invoices", "the Job is not done")
	o.halt()
	o = runExample(t, "bucket")
	await(t, storages, ns, "invoices", running)
	o.isKept(t, ns, "invoices", "a restart")

	endJob(t, ns, "invoices-drain", true)
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Get(t, buckets, ns, "invoices").GetDeletionTimestamp() != nil, "the Bucket is not being deleted"
	})
	await(t, storages, ns, "invoices", ready("False", "Deleting", "Bucket "+ns+"/invoices"))
	o.idle()
	await(t, storages, ns, "invoices", ready("False", "Deleting", "Bucket "+ns+"/invoices"))
	release(t, ns, "invoices")
	gone(t, storages, ns, "invoices")
	if testkit.Find(t, buckets, ns, "invoices") != nil {
		t.Error("the Storage was gone before its Bucket")
	}
	gone(t, jobs, ns, "invoices-drain")

	testkit.Apply(t, ns, "{apiVersion: platform.example.com/v1, kind: Storage, metadata: {name: photos}, spec: {region: eu-central, archive: a}}")
	provide(t, ns, "photos")
	await(t, storages, ns, "photos", ready("True", "Ready", ""))
	testkit.Delete(t, storages, ns, "photos")
	await(t, jobs, ns, "photos-drain", fields{})
	endJob(t, ns, "photos-drain", false)
	held := ready("False", "BeforeFailed", "Job "+ns+"/photos-drain failed").with(fields{".status.conditions[type=Stalled].status": "True"})
	await(t, storages, ns, "photos", held)
	o.isKept(t, ns, "photos", "it could not be drained")
	await(t, storages, ns, "photos", held)
	testkit.Update(t, jobs, ns, "photos-drain", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	testkit.Delete(t, jobs, ns, "photos-drain") // what is gone does not get it done either
	await(t, storages, ns, "photos", ready("False", "BeforeFailed", "Job "+ns+"/photos-drain disappeared before it finished"))
	o.isKept(t, ns, "photos", "nobody says that it is drained")
	sayDrained(t, storages, ns, "photos")
	await(t, storages, ns, "photos", ready("False", "Deleting", "Bucket "+ns+"/photos"))
	release(t, ns, "photos")
	gone(t, storages, ns, "photos")
	gone(t, jobs, ns, "photos-drain")
}

// sayDrained does what the page says for a bucket that was drained by hand.
func sayDrained(t *testing.T, storages schema.GroupVersionResource, ns, name string) {
	t.Helper()
	up := testkit.Get(t, storages, ns, name)
	list, _, _ := unstructured.NestedSlice(up.Object, "status", "downstreams")
	for _, item := range list {
		if m, _ := item.(map[string]any); m["name"] == "deletion.before" {
			m["state"] = "BeforeFinished"
		}
	}
	if err := unstructured.SetNestedSlice(up.Object, list, "status", "downstreams"); err != nil {
		t.Fatal(err)
	}
	if _, err := testkit.Dynamic(t).Resource(storages).Namespace(ns).UpdateStatus(t.Context(), up, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}

// provide makes a Bucket ready as its own operator does, with a finalizer of its own.
func provide(t *testing.T, ns, name string) {
	t.Helper()
	await(t, buckets, ns, name, fields{".spec.region": "eu-central"})
	testkit.Patch(t, buckets, ns, name, "buckets", `{"metadata":{"finalizers":["storage.example.com/content"]}}`)
	setStatus(t, buckets, ns, name, func(u *unstructured.Unstructured) map[string]any {
		return map[string]any{"observedGeneration": u.GetGeneration(), "endpoint": "https://" + name + ".example.com",
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	})
}

// release lets a Bucket go that is being deleted.
func release(t *testing.T, ns, name string) {
	t.Helper()
	testkit.Patch(t, buckets, ns, name, "buckets", `{"metadata":{"finalizers":null}}`)
}

// isKept checks that the engine, once it has nothing more to do, has not asked for a Bucket's deletion.
func (o *operator) isKept(t *testing.T, ns, name, though string) {
	t.Helper()
	o.idle()
	if testkit.Get(t, buckets, ns, name).GetDeletionTimestamp() != nil {
		t.Errorf("the Bucket is being deleted though %s", though)
	}
}
