package engine_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// beforeText makes a ConfigMap before anything is deleted, of the kind that the downstream has too; whoever writes done: "yes"
// into it finished.
const beforeText = `deletion:
  before:
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}-drain"}
      data: {for: "{{ .metadata.name }}"}
    doneWhen: downstream.?data.?done.orValue("") == "yes"
    failedWhen: downstream.?data.?done.orValue("") == "no"
    # before
`

const drainDone, drainFailed = `{"data":{"done":"yes"}}`, `{"data":{"done":"no"}}`

// withBefore is the config with deletion.before, and lines added to it at its own indentation.
func withBefore(ns, name string, lines ...string) string {
	text := beforeText
	for _, line := range lines {
		text = strings.Replace(text, "    # before\n", "    "+line+"\n    # before\n", 1)
	}
	return fill(widgetConfig, ns, name) + text
}

// beforeItem is what the status records of deletion.before.
func beforeItem(u *unstructured.Unstructured) map[string]any {
	return downstreamsOf(u)["deletion.before"]
}

// waitBefore waits until the status says that of deletion.before, and returns the upstream.
func waitBefore(t *testing.T, ns, name, state string) *unstructured.Unstructured {
	t.Helper()
	var u *unstructured.Unstructured
	testkit.Eventually(t, patience, func() (bool, string) {
		if u = testkit.Find(t, widgets, ns, name); u == nil {
			return false, name + " is gone"
		}
		_, reason, message := condition(u, "Ready")
		return beforeItem(u)["state"] == state, "deletion.before is " + textOf(beforeItem(u)["state"]) + "; Ready: " + reason + ": " + message
	})
	return u
}

func textOf(v any) string { s, _ := v.(string); return s }

func finalizerOf(name string) string { return name + ".example.com/cleanup" }

func TestBeforeDeletion(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		counter := testkit.NewCounter()
		made(t, withBefore(ns, name), ns, counter)
		if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); !slices.Contains(f, finalizerOf(name)) {
			t.Fatalf("finalizers are %v", f)
		}
		quiet(t, counter)
		counter.Reset()
		testkit.Delete(t, widgets, ns, "a")
		up := waitBefore(t, ns, "a", "BeforeRunning")
		before := testkit.Get(t, configMaps, ns, "a-drain")
		if beforeItem(up)["uid"] != string(before.GetUID()) || !slices.Contains(before.GetFinalizers(), finalizerOf(name)) ||
			len(before.GetOwnerReferences()) != 1 || before.GetLabels()[name+".example.com/managed"] != "yes" {
			t.Errorf("recorded is %v, made %v", beforeItem(up), before.Object["metadata"])
		}
		if status, reason, message := condition(up, "Ready"); status != "False" || reason != "BeforeRunning" || !strings.Contains(message, "ConfigMap "+ns+"/a-drain") {
			t.Errorf("Ready is %s, %s: %s", status, reason, message)
		}
		if status, _, _ := condition(up, "Reconciling"); status != "True" {
			t.Error("not Reconciling")
		}
		if status, _, _ := condition(up, "Valid"); status != "True" {
			t.Error("Valid was lost")
		}
		if downstreamsOf(up)["config"]["uid"] == nil {
			t.Error("the downstream is no longer recorded")
		}
		waitData(t, ns, "a", "key", "value")
		testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainDone)
		waitGone(t, widgets, ns, "a")
		waitGone(t, configMaps, ns, "a")
		waitGone(t, configMaps, ns, "a-drain")
		quiet(t, counter)
		t.Logf("a deletion with deletion.before: %d requests: %v", counter.Total(), counter.Snapshot())
		if n := counter.Total(); n > 7 {
			t.Errorf("%d requests: %v", n, counter.Snapshot())
			for _, r := range counter.Requests() {
				t.Log(r)
			}
		}
	})
}

// beforeIs waits until Ready has that reason, and returns the upstream.
func beforeIs(t *testing.T, ns, name, reason, text string) *unstructured.Unstructured {
	t.Helper()
	var u *unstructured.Unstructured
	testkit.Eventually(t, patience, func() (bool, string) {
		if u = testkit.Find(t, widgets, ns, name); u == nil {
			return false, name + " is gone"
		}
		status, have, message := condition(u, "Ready")
		return status == "False" && have == reason && strings.Contains(message, text), "Ready is " + status + ", " + have + ": " + message
	})
	return u
}

// stays fails where the downstream goes, or a second object is made, while the upstream is held.
func stays(t *testing.T, ns string) {
	t.Helper()
	never(t, func() (bool, string) {
		return testkit.Find(t, widgets, ns, "a") == nil || testkit.Find(t, configMaps, ns, "a") == nil, "the upstream or its downstream went"
	})
}

func stalled(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if status, _, _ := condition(u, "Stalled"); status != "True" {
		t.Error("it is not Stalled")
	}
}

func TestBeforeFails(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		lines        []string
		fail         func(t *testing.T, ns string)
		held         string
	}{
		{name: "held", reason: "nothing is deleted after a failure unless the config says so", held: "failedWhen is true",
			fail: func(t *testing.T, ns string) { testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainFailed) }},
		{name: "proceeds", reason: "the config says to go on in spite of it", lines: []string{"onFailure: Proceed"},
			fail: func(t *testing.T, ns string) { testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainFailed) }},
		{name: "deleted and held", reason: "what a person deletes has not done its work", held: "was deleted before it finished",
			fail: func(t *testing.T, ns string) { testkit.Delete(t, configMaps, ns, "a-drain") }},
		{name: "deleted and proceeds", reason: "deleted is failed", lines: []string{"onFailure: Proceed"},
			fail: func(t *testing.T, ns string) { testkit.Delete(t, configMaps, ns, "a-drain") }},
		{name: "removed by force", reason: "what is gone is not made a second time", held: "disappeared before it finished",
			fail: func(t *testing.T, ns string) {
				testkit.Update(t, configMaps, ns, "a-drain", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
				testkit.Delete(t, configMaps, ns, "a-drain")
			}},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			counter := testkit.NewCounter()
			made(t, withBefore(ns, name, append(row.lines, "timeout: 1h")...), ns, counter)
			testkit.Delete(t, widgets, ns, "a")
			waitBefore(t, ns, "a", "BeforeRunning")
			row.fail(t, ns)
			if row.held != "" {
				stalled(t, beforeIs(t, ns, "a", "BeforeFailed", row.held))
				stays(t, ns)
				if n := metric(t, "corollary_objects", name, "downstream", "deletion.before", "state", "BeforeFailed"); n != 1 {
					t.Errorf("%v are counted as BeforeFailed", n)
				}
				if row.name == "held" { // a person may still bring it to its end
					testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainDone)
					waitGone(t, widgets, ns, "a")
				}
				return
			}
			waitGone(t, widgets, ns, "a")
			waitGone(t, configMaps, ns, "a")
			waitGone(t, configMaps, ns, "a-drain")
		}))
	}
}

func TestBeforeTimesOut(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		lines        []string
		prevent      func(t *testing.T, ns string) // what keeps it from being made
		held         bool
	}{
		{name: "held", reason: "by default the timeout deletes nothing", held: true},
		{name: "proceeds", reason: "the config says to go on after it", lines: []string{"onTimeout: Proceed"}},
		{name: "not made and proceeds", reason: "time also runs while another object has its name", lines: []string{"onTimeout: Proceed"},
			prevent: func(t *testing.T, ns string) {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a-drain}, data: {done: \"yes\"}}")
			}},
		{name: "not made and held", reason: "what keeps it from being made is told along", held: true,
			prevent: func(t *testing.T, ns string) {
				testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a-drain}, data: {done: \"yes\"}}")
			}},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			counter := testkit.NewCounter()
			// What comes before the timeout is there to be seen for this long, and a busy machine sees it late.
			made(t, withBefore(ns, name, append(row.lines, "timeout: 20s")...), ns, counter)
			if row.prevent != nil {
				row.prevent(t, ns)
			}
			testkit.Delete(t, widgets, ns, "a")
			if row.prevent != nil {
				stalled(t, beforeIs(t, ns, "a", "Conflict", "was not made by deletion.before"))
			} else {
				waitBefore(t, ns, "a", "BeforeRunning")
			}
			if !row.held {
				waitGone(t, widgets, ns, "a")
				waitGone(t, configMaps, ns, "a")
				if row.prevent == nil {
					waitGone(t, configMaps, ns, "a-drain")
				} else if testkit.Find(t, configMaps, ns, "a-drain") == nil {
					t.Error("what somebody else made is gone")
				}
				return
			}
			stalled(t, beforeIs(t, ns, "a", "BeforeTimedOut", "not finished within 20s"))
			stays(t, ns)
			if row.prevent != nil { // out of the way, it is made after all
				testkit.Delete(t, configMaps, ns, "a-drain")
			}
			testkit.Eventually(t, patience, func() (bool, string) {
				u := testkit.Find(t, configMaps, ns, "a-drain")
				return u != nil && len(u.GetFinalizers()) == 1, "it was not made"
			})
			testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainDone)
			waitGone(t, widgets, ns, "a")
		}))
	}
}

// Requests that fail or whose answers get lost delay a deletion; they neither skip deletion.before nor carry it out twice.
func TestBeforeRequestsFail(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		fault        func(f *testkit.Faults) *testkit.Fault
		told         string
	}{
		{name: "create refused", reason: "a right that is missing is told and tried again", told: "Denied",
			fault: func(f *testkit.Faults) *testkit.Fault { return f.Answer(403, testkit.On("PATCH", "configmaps")) }},
		{name: "create's answer lost", reason: "it may have been made all the same",
			fault: func(f *testkit.Faults) *testkit.Fault { return f.Lose(testkit.On("PATCH", "configmaps")) }},
		{name: "status refused", reason: "nothing goes on before it is recorded",
			fault: func(f *testkit.Faults) *testkit.Fault { return f.Answer(500, testkit.On("PATCH", "widgets/status")) }},
		{name: "status' answer lost", reason: "what was recorded is found again",
			fault: func(f *testkit.Faults) *testkit.Fault { return f.Lose(testkit.On("PATCH", "widgets/status")) }},
		{name: "read refused", reason: "without the latest record nothing is made",
			fault: func(f *testkit.Faults) *testkit.Fault { return f.Answer(503, testkit.On("GET", "widgets")) }},
	} {
		t.Run(row.name, bubbled(func(t *testing.T) {
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			counter, faults := testkit.NewCounter(), testkit.NewFaults()
			start(t, counter.Wrap(faults.Wrap(testkit.Config(t))), withBefore(ns, name)).ready()
			testkit.Apply(t, ns, widget("a", `{data: {key: value}}`))
			waitCondition(t, widgets, ns, "a", "Ready", "True")
			quiet(t, counter)
			fault := row.fault(faults)
			testkit.Delete(t, widgets, ns, "a")
			testkit.Eventually(t, patience, func() (bool, string) { return fault.Hits() > 0, "nothing failed" })
			if row.told != "" {
				beforeIs(t, ns, "a", row.told, "a-drain")
			}
			stays(t, ns)
			fault.Off()
			uid := waitBefore(t, ns, "a", "BeforeRunning").Object
			before := testkit.Get(t, configMaps, ns, "a-drain")
			if item := beforeItem(&unstructured.Unstructured{Object: uid}); item["uid"] != string(before.GetUID()) {
				t.Errorf("recorded is %v, made %s", item, before.GetUID())
			}
			again := row.fault(faults)
			testkit.Patch(t, configMaps, ns, "a-drain", "worker", drainDone)
			if row.name != "read refused" {
				testkit.Eventually(t, patience, func() (bool, string) { return again.Hits() > 0, "nothing failed" })
				if row.name == "create refused" || row.name == "status refused" {
					stays(t, ns)
				}
			}
			again.Off()
			waitGone(t, widgets, ns, "a")
			waitGone(t, configMaps, ns, "a")
			waitGone(t, configMaps, ns, "a-drain")
		}))
	}
}
