package sim_test

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reports are what controllers of other kinds write into the status of an object, by the kind, where examples wait for
// that.
var reports = map[string]func(u *unstructured.Unstructured) map[string]any{
	"VPC": reportID, "Subnet": reportID, "SecurityGroup": reportID,
	"ReplicaSet": func(u *unstructured.Unstructured) map[string]any {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		return map[string]any{"replicas": n, "fullyLabeledReplicas": n, "readyReplicas": n, "availableReplicas": n}
	},
}

func reportID(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"id": "id-of-" + u.GetName(), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
}

// report has these controllers see to the objects that have changed.
func (w *world) report(ctx context.Context) {
	for _, c := range w.pipelines() {
		for _, gvk := range downstreamKinds(c.Pipeline) {
			if reports[gvk.Kind] == nil || w.Setup.Example == "" {
				continue
			}
			for _, u := range w.list(ctx, gvk) {
				if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen == u.GetGeneration() {
					continue
				}
				status := reports[gvk.Kind](u)
				status["observedGeneration"] = u.GetGeneration()
				text, err := json.Marshal(map[string]any{"status": status})
				if err != nil {
					w.t.Fatal(err)
				}
				w.logf("the controller of %s reports: %v", key(u), w.merge(ctx, u, string(text), "status"))
			}
		}
	}
}
