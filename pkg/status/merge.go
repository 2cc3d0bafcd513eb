package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Merge puts our conditions into the list that stands. Conditions of other types survive in their places; ours that are
// no longer wanted go; a transition time changes only with the status. have is the list as it was read and is not changed;
// whatever stands in it that is no condition survives too, for it is not ours to judge. ours are the types that belong to
// us. The order is that of have, with new conditions after it in the order of want.
func Merge(have []any, want []metav1.Condition, ours []string, now metav1.Time) []any {
	var merged []any
	placed := map[string]bool{}
	for _, item := range have {
		old, _ := item.(map[string]any)
		kind, _ := old["type"].(string)
		if kind == "" || !slices.Contains(ours, kind) {
			merged = append(merged, item)
			continue
		}
		i := slices.IndexFunc(want, func(c metav1.Condition) bool { return c.Type == kind })
		if i >= 0 && !placed[kind] {
			merged = append(merged, toMap(want[i], old, now))
			placed[kind] = true
		}
	}
	for _, c := range want {
		if !placed[c.Type] {
			merged = append(merged, toMap(c, nil, now))
		}
	}
	return merged
}

// toMap writes a condition as unstructured data has it. The time of an old one of the same status is kept.
func toMap(c metav1.Condition, old map[string]any, now metav1.Time) map[string]any {
	since, _ := old["lastTransitionTime"].(string)
	if old["status"] != string(c.Status) || since == "" {
		since = now.UTC().Format(time.RFC3339)
	}
	m := map[string]any{
		"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message, "lastTransitionTime": since,
	}
	if c.ObservedGeneration != 0 {
		m["observedGeneration"] = c.ObservedGeneration
	}
	return m
}
