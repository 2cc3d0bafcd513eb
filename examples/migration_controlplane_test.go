//go:build controlplane

package examples_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// running, succeeded and failed are what the status of a Migration says.
func running() fields {
	return ready("False", "Progressing", "job: the Job is running").with(fields{".status.result": "Running"})
}

func succeeded() fields {
	return ready("True", "Ready", "").with(fields{".status.result": "Succeeded"})
}

func failed() fields {
	return ready("False", "Failed", "job: Job has reached the specified backoff limit").with(fields{".status.result": "Failed"})
}

// collected is what the status says once the Job is gone that a status was about: the same.
func collected(status fields) fields {
	if status[".status.result"] == "Failed" {
		return status.with(fields{
			".status.conditions[type=Ready].message": containing("failed; will not be recreated"),
			".status.downstreams[name=job].uid":      nil,
			".status.downstreams[name=job].state":    "Failed",
		})
	}
	return status.with(fields{
		".status.conditions[type=Ready].reason": "InSync",
		".status.downstreams[name=job].uid":     nil,
		".status.downstreams[name=job].state":   "Finished",
	})
}

// TestMigration: one Job for each spec, whatever becomes of it.
func TestMigration(t *testing.T) {
	t.Parallel()
	ns, migrations := testkit.Namespace(t), platform("migrations")
	o := runExample(t, "migration")
	state(t, ns, "migration")
	first := theJob(t, ns)
	await(t, migrations, ns, "orders", running().with(fields{".status.job": first}))
	endJob(t, ns, first, true)
	await(t, migrations, ns, "orders", succeeded().with(fields{".status.downstreams[name=job].state": "Finished"}))

	testkit.Delete(t, jobs, ns, first)
	await(t, migrations, ns, "orders", collected(succeeded()).with(fields{".status.job": first}))
	o.staysCollected(t, ns, "its Job was collected")
	o.halt()
	o = runExample(t, "migration")
	o.staysCollected(t, ns, "a restart")
	testkit.Patch(t, migrations, ns, "orders", "somebody", `{"metadata":{"labels":{"a":"b"}}}`)
	o.staysCollected(t, ns, "a change of a label")

	o.halt()
	o = operate(t, changed(t, "migration", "ttlSecondsAfterFinished: 86400", "ttlSecondsAfterFinished: 3600"))
	o.staysCollected(t, ns, "a change of the template")

	testkit.Patch(t, migrations, ns, "orders", "somebody", `{"spec":{"image":"registry.example.com/orders:2.2"}}`)
	second := theJob(t, ns)
	await(t, migrations, ns, "orders", running().with(fields{".status.job": second}))
	testkit.Delete(t, jobs, ns, second)
	await(t, jobs, ns, second, fields{".metadata.deletionTimestamp": nil})
	endJob(t, ns, second, false)
	await(t, migrations, ns, "orders", failed().with(fields{".status.conditions[type=Stalled].status": "True"}))
	testkit.Delete(t, jobs, ns, second)
	await(t, migrations, ns, "orders", collected(failed()))
	o.staysCollected(t, ns, "its failed Job was collected")

	testkit.Patch(t, migrations, ns, "orders", "somebody", `{"spec":{"image":"registry.example.com/orders:2.3"}}`)
	third := theJob(t, ns)
	await(t, migrations, ns, "orders", running().with(fields{".status.job": third}))
	if first == second || second == third {
		t.Errorf("Jobs of different specs have one name: %s, %s, %s", first, second, third)
	}
	testkit.Delete(t, migrations, ns, "orders")
	gone(t, jobs, ns, third)
	o.halt()
	finishedStaysFinished(t)
}

// finishedStaysFinished: a Job that has finished and is gone is not run again after its upstream was paused or
// invalid for a while.
func finishedStaysFinished(t *testing.T) {
	for _, row := range []struct {
		name, old, new, leave, back string
		left                        fields
	}{
		{"paused", "  owner: {reference: true}\n", "  owner: {reference: true}\n  pause: {annotation: platform.example.com/paused}\n",
			`{"metadata":{"annotations":{"platform.example.com/paused":"true"}}}`, `{"metadata":{"annotations":null}}`,
			fields{".status.conditions[type=Ready].message": "paused: annotation platform.example.com/paused is true"}},
		{"invalid", "downstreams:\n", "validate:\n  - rule: self.spec.image != 'bad'\ndownstreams:\n",
			`{"spec":{"image":"bad"}}`, `{"spec":{"image":"registry.example.com/orders:2.1"}}`,
			fields{".status.conditions[type=Ready].status": "False"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ns, migrations := testkit.Namespace(t), platform("migrations")
			o := operate(t, changed(t, "migration", row.old, row.new))
			state(t, ns, "migration")
			first := theJob(t, ns)
			endJob(t, ns, first, true)
			await(t, migrations, ns, "orders", succeeded())
			testkit.Delete(t, jobs, ns, first)
			await(t, migrations, ns, "orders", collected(succeeded()))
			testkit.Patch(t, migrations, ns, "orders", "somebody", row.leave)
			await(t, migrations, ns, "orders", row.left)
			testkit.Patch(t, migrations, ns, "orders", "somebody", row.back)
			await(t, migrations, ns, "orders", collected(succeeded()))
			o.staysCollected(t, ns, "it was "+row.name)
		})
	}
}

// staysCollected checks that the engine, once it has nothing more to do, has made no Job again.
func (o *operator) staysCollected(t *testing.T, ns, after string) {
	t.Helper()
	o.idle()
	if list := testkit.List(t, jobs, ns, ""); len(list) > 0 {
		t.Errorf("a Job stands again after %s; requests were %v", after, o.Snapshot())
	}
}

// theJob waits until there is one Job, starts it and returns its name.
func theJob(t *testing.T, ns string) string {
	t.Helper()
	var name string
	testkit.Eventually(t, patience, func() (bool, string) {
		list := testkit.List(t, jobs, ns, "")
		if len(list) != 1 {
			return false, "there is not one Job"
		}
		name = list[0].GetName()
		return true, ""
	})
	setStatus(t, jobs, ns, name, func(*unstructured.Unstructured) map[string]any {
		return map[string]any{"startTime": "2026-01-02T03:04:05Z", "active": int64(1), "uncountedTerminatedPods": map[string]any{}, "ready": int64(1), "terminating": int64(0)}
	})
	return name
}

// endJob ends a Job as its controller does: no pod runs here.
func endJob(t *testing.T, ns, name string, well bool) {
	t.Helper()
	setStatus(t, jobs, ns, name, func(*unstructured.Unstructured) map[string]any { return jobStatus(well) })
}
