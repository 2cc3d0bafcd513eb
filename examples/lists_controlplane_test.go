//go:build controlplane

package examples_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestServicePerPodLabels: with the downstream in the README, the pods of the StatefulSet have a label, whoever made
// them and whenever.
func TestServicePerPodLabels(t *testing.T) {
	t.Parallel()
	ns, label := testkit.Namespace(t), ".metadata.labels['platform.example.com/pod']"
	_, rest, _ := strings.Cut(string(read(t, "configs/service-per-pod/README.md")), "```yaml\n")
	downstream, _, _ := strings.Cut(rest, "```")
	o := operate(t, changed(t, "service-per-pod", "conventions:\n", downstream+`
conventions:
  owner: {annotation: platform.example.com/labeled-for}
  finalizer: platform.example.com/labels
`, "kind: StatefulSet\n", "kind: StatefulSet\n  namespaces: ["+ns+"]\n", "service-per-pod\n", "service-per-pod-labels\n"))
	pod := func(name string) {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+", labels: {app: kafka}}, spec: {containers: [{name: kafka, image: kafka}]}}")
	}
	pod("kafka-0")
	state(t, ns, "service-per-pod")
	await(t, pods, ns, "kafka-0", fields{label: "kafka-0", ".metadata.labels.app": "kafka"})
	pod("kafka-1")
	pod("other-0")
	await(t, pods, ns, "kafka-1", fields{label: "kafka-1"})
	testkit.Patch(t, statefulSets, ns, "kafka", "somebody", `{"spec":{"replicas":1}}`)
	await(t, pods, ns, "kafka-1", fields{label: nil, ".metadata.labels.app": "kafka"})
	o.idle()
	await(t, pods, ns, "kafka-0", fields{label: "kafka-0"})
	await(t, pods, ns, "other-0", fields{label: nil})
	testkit.Delete(t, statefulSets, ns, "kafka")
	await(t, pods, ns, "kafka-0", fields{label: nil, ".metadata.labels.app": "kafka"})
	gone(t, statefulSets, ns, "kafka")
}
