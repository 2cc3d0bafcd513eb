//go:build controlplane

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestRecreateUnderAFreeze: updatePolicy Recreate deletes nothing where admission refuses updates, whether the change is to
// a field that is immutable as well or not.
func TestRecreateUnderAFreeze(t *testing.T) {
	t.Parallel()
	freeze := func(expression string) func(t *testing.T, ns string) func() {
		return func(t *testing.T, ns string) func() {
			return testkit.Policy(t, ns, "Validating", "UPDATE", "apps", "statefulsets", fmt.Sprintf("  validations: [{expression: %q, message: frozen}]", expression))
		}
	}
	for _, row := range []struct {
		name   string
		deny   func(t *testing.T, ns string) func()
		change string
		want   string
		lifts  bool // whether the object is recreated once nothing denies it
	}{
		{"a change that could be made", freeze("false"), `{image: b, service: a}`, "Denied", false},
		{"a change to an immutable field", freeze("false"), `{image: a, service: b}`, "Rejected", true},
		{"a policy about the spec", freeze("object.spec == oldObject.spec"), `{image: b, service: b}`, "Rejected", true},
		{"a webhook that names a field", func(t *testing.T, ns string) func() {
			testkit.Webhook(t, ns, "Validating", "UPDATE", "statefulsets", forgedRefusal)
			return nil
		}, `{image: b, service: a}`, "Rejected", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			start(t, testkit.Config(t), with(making(fill(widgetConfig, ns, name), "apps/v1", "StatefulSet", statefulSetBody), "updatePolicy: Recreate")).ready()
			testkit.Apply(t, ns, widget("a", `{data: {image: a, service: a}}`))
			waitDownstream(t, ns, "a", "InSync")
			before := testkit.Get(t, statefulSets, ns, "a")
			lift := row.deny(t, ns)
			probe := func(image string) error {
				_, err := testkit.TryApply(t, ns, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: probe}, spec: {selector: {matchLabels: {app: p}}, template: {metadata: {labels: {app: p}}, spec: {containers: [{name: p, image: "`+image+`"}]}}}}`)
				return err
			}
			if err := probe("p"); err != nil {
				t.Fatal(err)
			}
			n := 0
			testkit.Eventually(t, patience, func() (bool, string) { n++; return probe(fmt.Sprint("p", n)) != nil, "updates are not refused yet" })
			testkit.Apply(t, ns, widget("a", `{data: `+row.change+`}`))
			waitsFor(t, widgets, ns, "a", row.want, "not recreated: ")
			if after := testkit.Get(t, statefulSets, ns, "a"); after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil {
				t.Error("it was deleted")
			}
			if !row.lifts {
				return
			}
			lift()
			waitThat(t, statefulSets, ns, "a", func(after *obj) bool { return after.GetUID() != before.GetUID() })
			waitDownstream(t, ns, "a", "InSync")
		})
	}
}

// TestRestartOverMutatedJobs: what admission changed of an immutable field on creation is nothing to repair: not after a
// restart, whatever the update policy, and whether the status records what the apply returned or not. What can be changed is
// still repaired.
func TestRestartOverMutatedJobs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		policy   string
		recorded bool
	}{{"Apply", true}, {"Apply", false}, {"Recreate", true}, {"Recreate", false}} {
		t.Run(fmt.Sprint(row.policy, " ", row.recorded), func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			mirror(t, ns, "jobs", imageOf, `{apiVersion: batch/v1, kind: Job, metadata: {name: PROBE}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}`)
			conf := with(making(fill(widgetConfig, ns, name), "batch/v1", "Job", jobBody), "updatePolicy: "+row.policy)
			if !row.recorded {
				conf = strings.Replace(conf, "  downstreams: .status.downstreams\n", "", 1)
			}
			r, counter := startCounted(t, conf)
			testkit.Apply(t, ns, widget("a", `{data: {image: a}}`))
			testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, jobs, ns, "a") != nil, "no Job" })
			quiet(t, counter)
			before := testkit.Get(t, jobs, ns, "a")
			r.halt()
			counter.Reset()
			start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			quiet(t, counter)
			if n := counter.Total(func(r testkit.Request) bool { return r.Verb != "LIST" }); row.recorded && n > 0 {
				t.Errorf("a restart takes %d requests: %v", n, counter.Snapshot())
			}
			stays := func() {
				t.Helper()
				after := testkit.Get(t, jobs, ns, "a")
				if _, image := imageOf(after.Object); after.GetUID() != before.GetUID() || image != "mirror/a" {
					t.Errorf("the Job %s is %s now, its image %s", before.GetUID(), after.GetUID(), image)
				}
				if _, reason, message := condition(testkit.Get(t, widgets, ns, "a"), "Ready"); reason != "Progressing" {
					t.Errorf("it is %s: %s", reason, message)
				}
			}
			stays()
			testkit.Patch(t, jobs, ns, "a", "somebody", `{"spec":{"parallelism":3}}`)
			waitField(t, jobs, ns, "a", int64(1), "spec", "parallelism")
			quiet(t, counter)
			stays()
		})
	}
}

// An aggregated API that is unavailable says nothing about its objects: nothing is lost, a deletion waits, all else goes on.
func TestAggregatedAPIIsUnavailable(t *testing.T) {
	t.Parallel()
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	ns, other, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
	source, err := kinds.Live(testkit.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Apply(t, "", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.`+name+`.example.com}, spec: {
		group: `+name+`.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true,
		service: {namespace: `+ns+`, name: none}}}`)
	testkit.Eventually(t, patience, func() (bool, string) {
		_, err := source.Served(t.Context(), lates(name).GroupVersion().WithKind("Late"))
		return err != nil && !errors.Is(err, kinds.ErrUnknown), text(err)
	})
	start(t, testkit.Config(t), withLate(fill(widgetConfig, ns, name), name, other)+"deletion: {wait: true}\n").ready()
	testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
	testkit.Update(t, widgets, ns, "a", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{finalizerOf(name)}) })
	waitData(t, ns, "a", "key", "value")
	waitsFor(t, widgets, ns, "a", "Waiting", "asking the API server for the kinds of "+name+".example.com/v1")
	testkit.Delete(t, widgets, ns, "a")
	waitsFor(t, widgets, ns, "a", "Unavailable", "late", name+".example.com/v1")
	waitGone(t, configMaps, ns, "a")
	testkit.Delete(t, services, "", "v1."+name+".example.com")
	waitGone(t, widgets, ns, "a")
}
