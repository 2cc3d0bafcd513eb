//go:build controlplane

package engine_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// hookText makes a ConfigMap before anything is deleted, of the kind that the downstream has too; whoever writes done: "yes"
// into it has done its work.
const hookText = `deletion:
  before:
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}-drain"}
      data: {for: "{{ .metadata.name }}"}
    doneWhen: downstream.?data.?done.orValue("") == "yes"
    failedWhen: downstream.?data.?done.orValue("") == "no"
    # hook
`

const drainDone, drainFailed = `{"data":{"done":"yes"}}`, `{"data":{"done":"no"}}`

// hooked is the config with a hook, and lines added to it at its own indentation.
func hooked(ns, name string, lines ...string) string {
	text := hookText
	for _, line := range lines {
		text = strings.Replace(text, "    # hook\n", "    "+line+"\n    # hook\n", 1)
	}
	return fill(widgetConfig, ns, name) + text
}

// hookItem is what the status records of deletion.before.
func hookItem(u *unstructured.Unstructured) map[string]any {
	return downstreamsOf(u)["deletion.before"]
}

// waitHook waits until the status says that of deletion.before, and returns the upstream.
func waitHook(t *testing.T, ns, name, state string) *unstructured.Unstructured {
	t.Helper()
	var u *unstructured.Unstructured
	testkit.Eventually(t, patience, func() (bool, string) {
		if u = testkit.Find(t, widgets, ns, name); u == nil {
			return false, name + " is gone"
		}
		_, reason, message := condition(u, "Ready")
		return hookItem(u)["state"] == state, "deletion.before is " + textOf(hookItem(u)["state"]) + "; Ready: " + reason + ": " + message
	})
	return u
}

func textOf(v any) string { s, _ := v.(string); return s }

func finalizerOf(name string) string { return name + ".example.com/cleanup" }

func TestHookBeforeDeletion(t *testing.T) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	counter := testkit.NewCounter()
	made(t, hooked(ns, name), ns, counter)
	if f := testkit.Get(t, widgets, ns, "a").GetFinalizers(); !slices.Contains(f, finalizerOf(name)) {
		t.Fatalf("finalizers are %v", f)
	}
	quiet(t, counter)
	counter.Reset()
	testkit.Delete(t, widgets, ns, "a")
	up := waitHook(t, ns, "a", "HookRunning")
	hook := testkit.Get(t, configMaps, ns, "a-drain")
	if hookItem(up)["uid"] != string(hook.GetUID()) || !slices.Contains(hook.GetFinalizers(), finalizerOf(name)) ||
		len(hook.GetOwnerReferences()) != 1 || hook.GetLabels()[name+".example.com/managed"] != "yes" {
		t.Errorf("recorded is %v, made %v", hookItem(up), hook.Object["metadata"])
	}
	if status, reason, message := condition(up, "Ready"); status != "False" || reason != "HookRunning" || !strings.Contains(message, "ConfigMap "+ns+"/a-drain") {
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
	t.Logf("a deletion with a hook: %d requests: %v", counter.Total(), counter.Snapshot())
	if n := counter.Total(); n > 7 {
		t.Errorf("%d requests: %v", n, counter.Snapshot())
	}
}
