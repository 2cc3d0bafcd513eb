package engine_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// beforeText makes a ConfigMap before anything is deleted, of the kind that the downstream has too; whoever writes
// done: "yes" into it finished.
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
func waitBefore(t *testing.T, ns, name, state string) *obj {
	t.Helper()
	return waitThat(t, widgets, ns, name, func(u *obj) bool { return beforeItem(u)["state"] == state })
}

func finalizerOf(name string) string { return name + ".example.com/cleanup" }

func TestBeforeDeletion(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		_, counter := startMade(t, ns, withBefore(ns, name))
		if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); !slices.Contains(f, finalizerOf(name)) {
			t.Fatalf("finalizers are %v", f)
		}
		settle(t, counter)
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
		for _, kind := range []string{"Reconciling", "Valid"} {
			if status, _, _ := condition(up, kind); status != "True" {
				t.Errorf("%s is %s", kind, status)
			}
		}
		if downstreamsOf(up)["config"]["uid"] == nil {
			t.Error("the downstream is no longer recorded")
		}
		waitData(t, ns, "a", "key", "value")
		drain(t, ns, drainDone)
		nothingIsLeft(t, ns)
		// Seven; three more if the watch of the upstreams is ahead, so that the other one still shows our finalizer, which is
		// then released once more.
		atMostRequests(t, counter, 10, "a deletion with deletion.before")
	})
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

// Requests that fail or whose answers get lost delay a deletion; they neither skip deletion.before nor carry it out
// twice.
func TestBeforeRequestsFail(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason string
		code         int // 0: the answer gets lost
		verb, of     string
		state        string
	}{
		{"create refused", "a missing right is reported and tried again", 403, "PATCH", "configmaps", "Denied"},
		{"create's answer lost", "it may have been made all the same", 0, "PATCH", "configmaps", ""},
		{"status refused", "nothing goes on before it is recorded", 500, "PATCH", "widgets/status", ""},
		{"status' answer lost", "what was recorded is found again", 0, "PATCH", "widgets/status", ""},
		{"read refused", "without the latest record nothing is made", 503, "GET", "widgets", ""},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			counter, faults := testkit.NewCounter(), testkit.NewFaults()
			start(t, counter.Wrap(faults.Wrap(testkit.Config(t))), withBefore(ns, name)).ready()
			applyReady(t, ns, "a", `{data: {key: value}}`)
			quiet(t, counter)
			fails := func() *testkit.Fault {
				if row.code == 0 {
					return faults.Lose(testkit.On(row.verb, row.of))
				}
				return faults.Answer(row.code, testkit.On(row.verb, row.of))
			}
			fault := fails()
			testkit.Delete(t, widgets, ns, "a")
			testkit.Eventually(t, patience, func() (bool, string) { return fault.Hits() > 0, "nothing failed" })
			if row.state != "" {
				waitsFor(t, widgets, ns, "a", row.state, "a-drain")
			}
			stays(t, ns)
			fault.Off()
			item := beforeItem(waitBefore(t, ns, "a", "BeforeRunning"))
			if made := testkit.Get(t, configMaps, ns, "a-drain").GetUID(); item["uid"] != string(made) {
				t.Errorf("recorded is %v, made %s", item, made)
			}
			again := fails()
			drain(t, ns, drainDone)
			if row.name != "read refused" {
				testkit.Eventually(t, patience, func() (bool, string) { return again.Hits() > 0, "nothing failed" })
				if row.name == "create refused" || row.name == "status refused" {
					stays(t, ns)
				}
			}
			again.Off()
			nothingIsLeft(t, ns)
		}))
	}
}

// drain writes into the object of deletion.before what has become of its work.
func drain(t *testing.T, ns, outcome string) {
	t.Helper()
	testkit.Patch(t, configMaps, ns, "a-drain", "worker", outcome)
}

// deleteUntilBefore makes Widget a and deletes it, so that the object of deletion.before runs.
func deleteUntilBefore(t *testing.T, ns string) {
	t.Helper()
	applyReady(t, ns, "a", `{data: {key: value}}`)
	testkit.Delete(t, widgets, ns, "a")
	waitBefore(t, ns, "a", "BeforeRunning")
}

// nothingIsLeft waits until Widget a and all that was made for it are gone.
func nothingIsLeft(t *testing.T, ns string) {
	t.Helper()
	waitGone(t, widgets, ns, "a")
	waitGone(t, configMaps, ns, "a", "a-drain")
}

// beforeStep is what happens to the object of deletion.before.
type beforeStep func(t *testing.T, ns string)

func failDrain(t *testing.T, ns string) { drain(t, ns, drainFailed) }

func deleteDrain(t *testing.T, ns string) { testkit.Delete(t, configMaps, ns, "a-drain") }

func forceDrain(t *testing.T, ns string) {
	testkit.Update(t, configMaps, ns, "a-drain", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	deleteDrain(t, ns)
}

// otherDrain is an object of someone else that has its name.
func otherDrain(t *testing.T, ns string) {
	testkit.Apply(t, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a-drain}, data: {done: "yes"}}`)
}

// finishDrain waits until the object exists and does its work.
func finishDrain(t *testing.T, ns string) {
	waitThat(t, configMaps, ns, "a-drain", func(u *obj) bool { return len(u.GetFinalizers()) == 1 })
	drain(t, ns, drainDone)
}

// deleteWith deletes Widget a: first is done before, then once the object exists or is in conflict.
func deleteWith(t *testing.T, ns string, first, then beforeStep) {
	t.Helper()
	if first != nil {
		first(t, ns)
	}
	testkit.Delete(t, widgets, ns, "a")
	if first == nil {
		waitBefore(t, ns, "a", "BeforeRunning")
	} else {
		stalled(t, waitsFor(t, widgets, ns, "a", "Conflict", "was not made by deletion.before"))
	}
	if then != nil {
		then(t, ns)
	}
}

// A deletion that is held says why. It goes on once the work is done after all, or once anyone who may write the status
// says so, for this one alone, by the state that its work done would have. Anyone who may only write the upstream
// cannot.
func TestBeforeHeld(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason        string
		lines               []string
		first, then, finish beforeStep
		state, says         string
	}{
		{name: "failed", reason: "nothing is deleted after a failure unless the config says so", lines: []string{"timeout: 1h"},
			then: failDrain, finish: finishDrain, state: "BeforeFailed", says: "failedWhen is true"},
		{name: "deleted", reason: "what a person deletes has not done its work", then: deleteDrain, state: "BeforeFailed", says: "was deleted before it finished"},
		{name: "removed by force", reason: "what is gone is not made a second time", then: forceDrain, state: "BeforeFailed", says: "disappeared before it finished"},
		{name: "running", reason: "nothing is deleted before it has finished", state: "BeforeRunning"},
		{name: "timed out", reason: "by default the timeout deletes nothing", lines: []string{"timeout: 20s"},
			finish: finishDrain, state: "BeforeTimedOut", says: "not finished within 20s"},
		{name: "in conflict", reason: "what has its name is somebody else's", first: otherDrain, state: "Conflict", says: "was not made by deletion.before"},
		{name: "in conflict until it timed out", reason: "out of the way, it is made after all", lines: []string{"timeout: 20s"},
			first: otherDrain, finish: func(t *testing.T, ns string) { deleteDrain(t, ns); finishDrain(t, ns) }, state: "BeforeTimedOut", says: "not finished within 20s"},
	} {
		for _, until := range []string{"its work is done", "a person says so", "a person says so at a restart"} {
			if until == "its work is done" && row.finish == nil {
				continue
			}
			t.Run(row.name+", until "+until, spaced(func(t *testing.T, ns, name string) {
				conf := withBefore(ns, name, row.lines...)
				r, _ := startMade(t, ns, conf)
				deleteWith(t, ns, row.first, row.then)
				if up := waitsFor(t, widgets, ns, "a", row.state, row.says); row.state != "BeforeRunning" {
					stalled(t, up)
				}
				stays(t, ns)
				if row.state == "BeforeFailed" {
					metricIs(t, 1, "corollary_objects", name, "downstream", "deletion.before", "state", row.state)
				}
				if until == "its work is done" {
					row.finish(t, ns)
					nothingIsLeft(t, ns)
					return
				}
				const done = `{"status":{"downstreams":[{"name":"deletion.before","state":"BeforeFinished"}]}}`
				testkit.Patch(t, widgets, ns, "a", "author", done)
				stays(t, ns)
				waitsFor(t, widgets, ns, "a", row.state, row.says)
				if until == "a person says so at a restart" {
					r.halt()
				}
				testkit.Patch(t, widgets, ns, "a", "platform", done, "status")
				if until == "a person says so at a restart" {
					start(t, testkit.Config(t), conf).ready()
				}
				bothGone(t, ns, ns, "a")
				if row.first != nil {
					mustExist(t, configMaps, ns, "a-drain", "it is somebody else's")
					return
				}
				waitGone(t, configMaps, ns, "a-drain")
			}))
		}
	}
}

// The config may say that a deletion goes on in spite of a failure, or after a time.
func TestBeforeProceeds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, reason, line string
		first, then        beforeStep
	}{
		{"failed", "the config says to go on in spite of it", "onFailure: Proceed", nil, failDrain},
		{"deleted", "deleted is failed", "onFailure: Proceed", nil, deleteDrain},
		{"timed out", "the config says to go on after it", "onTimeout: Proceed", nil, nil},
		{"not made", "time also runs while another object has its name", "onTimeout: Proceed", otherDrain, nil},
	} {
		t.Run(row.name, spaced(func(t *testing.T, ns, name string) {
			startMade(t, ns, withBefore(ns, name, row.line, "timeout: 20s"))
			deleteWith(t, ns, row.first, row.then)
			bothGone(t, ns, ns, "a")
			if row.first != nil {
				mustExist(t, configMaps, ns, "a-drain", "it is somebody else's")
				return
			}
			waitGone(t, configMaps, ns, "a-drain")
		}))
	}
}
