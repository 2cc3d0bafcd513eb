package apply

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

func TestDeletionOf(t *testing.T) {
	const object = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": `
	for _, row := range []struct {
		reason, answer    string
		gone, terminating bool
	}{
		{"the API server says what it deleted", `{"apiVersion": "v1", "kind": "Status", "status": "Success", "details": {"uid": "u"}}`, true, false},
		{"another API server may have begun to", `{"apiVersion": "v1", "kind": "Status", "status": "Success"}`, false, false},
		{"it says that something else is deleted", `{"apiVersion": "v1", "kind": "Status", "status": "Success", "details": {"uid": "v"}}`, false, false},
		{"a finalizer holds it", object + `"u", "deletionTimestamp": "2026-01-01T00:00:00Z"}}`, false, true},
		{"the last state of one that is deleted", object + `"u"}}`, true, false},
		{"another object", object + `"v"}}`, false, false},
		{"nothing was kept", "", false, false},
	} {
		if d := deletionOf([]byte(row.answer), "u"); d.Gone != row.gone || (d.Terminating != nil) != row.terminating {
			t.Errorf("%s: %+v", row.reason, d)
		}
	}
}

func TestDelete(t *testing.T) {
	f := setup(t)
	tg := f.target(configMaps, "a")
	first := f.create(tg, configMap)

	_, err := f.c.Delete(t.Context(), tg, nobody, metav1.DeletePropagationBackground)
	expectError(t, err, ErrReplaced, ReasonReplaced)
	if got := f.get(tg); got.GetUID() != first.GetUID() || got.GetDeletionTimestamp() != nil {
		t.Fatal("an object of another uid was deleted")
	}

	f.requests = nil
	for range 2 { // the second delete finds no object, which is not an error
		must.Get(f.c.Delete(t.Context(), tg, first.GetUID(), metav1.DeletePropagationBackground)).In(t)
	}
	if want := []string{"delete configmaps 200", "delete configmaps 404"}; !slices.Equal(f.requests, want) {
		t.Errorf("the observer heard %v, want %v", f.requests, want)
	}
	if testkit.Find(t, configMaps, f.ns, "a") != nil {
		t.Error("the object is still there")
	}
	if _, err := f.c.Delete(t.Context(), tg, "", metav1.DeletePropagationBackground); err == nil {
		t.Error("a delete without a uid was sent")
	}
	elsewhere := Target{GVR: configMaps, Namespace: "no-such-namespace", Name: "a"}
	if _, err := f.c.Delete(t.Context(), elsewhere, first.GetUID(), metav1.DeletePropagationBackground); err != nil {
		t.Errorf("in a namespace that is gone everything is gone: %v", err)
	}
}

func TestDeleteTwiceWhileTerminating(t *testing.T) {
	f := setup(t)
	tg := f.terminating("a")
	if _, err := f.c.Delete(t.Context(), tg, f.get(tg).GetUID(), metav1.DeletePropagationBackground); err != nil {
		t.Error(err)
	}
}

// TestDeleteUnservedKind: a kind that is not served does not mean that the object is gone: it may still be stored.
func TestDeleteUnservedKind(t *testing.T) {
	f := setup(t)
	gone := schema.GroupVersionResource{Group: "tools.example.com", Version: "v9", Resource: "widgets"}
	_, err := f.c.Delete(t.Context(), f.target(gone, "a"), nobody, metav1.DeletePropagationBackground)
	expectError(t, err, nil, ReasonKindNotServed)
	messageContains(t, err, "widgets.tools.example.com in version v9")
}

// TestDeletePropagation: what a Job owns is deleted or stays according to the policy, whatever the kind's default is.
func TestDeletePropagation(t *testing.T) {
	cases := []struct {
		reason      string
		propagation metav1.DeletionPropagation
		podStays    bool
	}{
		{"Background takes the pod along", metav1.DeletePropagationBackground, false},
		{"Foreground takes the pod along, first", metav1.DeletePropagationForeground, false},
		{"Orphan leaves the pod, without its owner reference", metav1.DeletePropagationOrphan, true},
	}
	for _, tc := range cases {
		t.Run(tc.reason, in(func(t *testing.T) {
			f := setupFor(t, testkit.Config(t))
			tg := f.target(jobs, "j")
			job := f.create(tg, `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`)
			testkit.Apply(t, f.ns,
				`{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: "`+
					string(job.GetUID())+`", controller: true, blockOwnerDeletion: true}]}, spec: {containers: [{name: a, image: a}]}}`)
			collectorSeesPods(t, f.ns) // the collector orphans only what it knows
			must.Get(f.c.Delete(t.Context(), tg, job.GetUID(), tc.propagation)).In(t)
			testkit.Eventually(t, eventually, func() (bool, string) {
				if testkit.Find(t, jobs, f.ns, "j") != nil {
					return false, "the job is still there"
				}
				pod := testkit.Find(t, pods, f.ns, "p")
				if !tc.podStays {
					return pod == nil, "the pod is still there"
				}
				return pod != nil && len(pod.GetOwnerReferences()) == 0, "the pod is gone or owned"
			})
		}))
	}
}

// in runs a test with the garbage collector, in virtual time.
func in(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { bubble.Test(t, []string{widgetsCRD}, test) }
}

// collectorSeesPods waits until the garbage collector has seen all Pods: it creates one more, whose owner does not
// exist. The collector deletes it when it sees it, which is after the others.
func collectorSeesPods(t *testing.T, ns string) {
	t.Helper()
	testkit.Apply(t, ns,
		`{apiVersion: v1, kind: Pod, metadata: {name: stray, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: never, uid: never}]}, spec: {containers: [{name: a, image: a}]}}`)
	testkit.Eventually(t, eventually, func() (bool, string) {
		return testkit.Find(t, pods, ns, "stray") == nil, "the collector has not seen a Pod whose owner is not there"
	})
}
