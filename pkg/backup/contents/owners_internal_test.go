package contents

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// A status that was up to date is up to date for the new object, and one that lagged behind still does.
func TestObservedGenerations(t *testing.T) {
	for observed, want := range map[int64]int64{5: 2, 4: 1, 3: 1, 1: 1, 0: 0, 77: 77} {
		made := (&Translation{OldGeneration: 5, Generation: 2}).Status(map[string]any{"observedGeneration": observed,
			"conditions": []any{map[string]any{"type": "Ready", "observedGeneration": observed}}})
		if diff := cmp.Diff(map[string]any{"observedGeneration": want,
			"conditions": []any{map[string]any{"type": "Ready", "observedGeneration": want}}}, made); diff != "" {
			t.Errorf("%d: %s", observed, diff)
		}
	}
}

// The status of a copy records what was made for it, and nothing that its original has still. Other lists stay.
func TestRecordsOfACopy(t *testing.T) {
	status := map[string]any{"downstreams": []any{
		map[string]any{"name": "made", "objectName": "a", "namespace": "from", "uid": "1"},
		map[string]any{"name": "shared", "objectName": "b", "namespace": "shared", "uid": "2"},
		map[string]any{"name": "not in the archive", "objectName": "c", "namespace": "from", "uid": "3"},
		map[string]any{"name": "not created yet", "objectName": "d"},
	}, "nodes": []any{map[string]any{"uid": "4"}}}
	names := func(copied bool) (list []string) {
		uids := map[types.UID]types.UID{"1": "11", "2": "2"}
		made := (&Translation{UIDs: uids, Namespace: func(string) string { return "to" }, Copied: copied}).Status(status).(map[string]any)
		for _, item := range made["downstreams"].([]any) {
			list = append(list, item.(map[string]any)["name"].(string))
		}
		if len(made["nodes"].([]any)) != 1 {
			t.Errorf("what is no record is lost: %v", made)
		}
		return list
	}
	if diff := cmp.Diff([]string{"made", "not created yet"}, names(true)); diff != "" {
		t.Errorf("a copy: %s", diff)
	}
	if have := names(false); len(have) != 4 {
		t.Errorf("at its own place: %v", have)
	}
}
