package backup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A status that was up to date is up to date for the new object, and one that lagged behind still does.
func TestObservedGenerations(t *testing.T) {
	for observed, want := range map[int64]int64{5: 2, 4: 1, 3: 1, 1: 1, 0: 0, 77: 77} {
		made := (&translation{oldGeneration: 5, generation: 2}).status(map[string]any{"observedGeneration": observed,
			"conditions": []any{map[string]any{"type": "Ready", "observedGeneration": observed}}})
		if diff := cmp.Diff(map[string]any{"observedGeneration": want,
			"conditions": []any{map[string]any{"type": "Ready", "observedGeneration": want}}}, made); diff != "" {
			t.Errorf("%d: %s", observed, diff)
		}
	}
}
