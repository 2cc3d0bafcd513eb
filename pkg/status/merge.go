package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReasonOf is the reason of a condition that an upstream's status has; empty if it has none.
func ReasonOf(upstream *unstructured.Unstructured, condition string) string {
	return fieldOf(upstream, condition, "reason")
}

// IsTrue reports whether a condition that an upstream's status has is True.
func IsTrue(upstream *unstructured.Unstructured, condition string) bool {
	return fieldOf(upstream, condition, "status") == string(metav1.ConditionTrue)
}

func fieldOf(upstream *unstructured.Unstructured, condition, field string) string {
	list, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == condition {
			text, _ := c[field].(string)
			return text
		}
	}
	return ""
}

// Merge returns have, the conditions that were read, with our conditions replaced by want. Conditions of types that are
// not in ours, and invalid items, stay unchanged. lastTransitionTime changes only with the status. The order is that of
// have, then that of want. have is not changed.
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

// toMap returns a condition as unstructured data. It keeps the time of an old condition with the same status.
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
