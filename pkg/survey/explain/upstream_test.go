package explain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
)

func TestConditionTexts(t *testing.T) {
	condition := func(kind, status, reason, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
	}
	names := config.Conditions{Ready: "Ready", Valid: "Valid", Stalled: "Stalled"}
	for _, c := range []struct {
		reason     string
		conditions []any
		want       []string
	}{
		{"one without a message ends with its reason", []any{condition("Ready", "True", "Ready", "")},
			[]string{"condition Ready is True: Ready"}},
		{"what two say alike is said once", []any{condition("Stalled", "True", "Conflict", "app: taken"), condition("Ready", "False", "Conflict",
			"app: taken")},
			[]string{"condition Ready is False, Stalled is True: Conflict: app: taken"}},
		{"those of others are theirs to explain", []any{condition("Synced", "True", "Ok", ""), condition("Valid", "True", "Valid", "")},
			[]string{"condition Valid is True: Valid"}},
		{"what is no condition is passed over", []any{"text"}, []string{}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			upstream := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": c.conditions}}}
			if diff := cmp.Diff(c.want, conditionTexts(names, upstream)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeletionText(t *testing.T) {
	for _, c := range []struct {
		reason     string
		finalizers []string
		want       string
	}{
		{"the operator's own", []string{"example.com/now", "example.com/previous"}, "it is being deleted"},
		{"others' are named", []string{"example.com/now", "example.com/old", "foregroundDeletion"},
			"it is being deleted, and finalizers that are not the operator's hold it until somebody removes them: " +
				"example.com/old, foregroundDeletion"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			upstream := &unstructured.Unstructured{}
			upstream.SetFinalizers(c.finalizers)
			if got := deletionText(upstream, []string{"example.com/now", "example.com/previous"}); got != c.want {
				t.Error(got)
			}
		})
	}
}
