package status_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/status"
)

func condition(kind, state, reason, since string, more ...any) map[string]any {
	c := map[string]any{"type": kind, "status": state, "reason": reason, "message": "", "lastTransitionTime": since}
	for i := 0; i+1 < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}

func TestMerge(t *testing.T) {
	const old, fresh = "2026-01-01T00:00:00Z", "2026-11-20T10:00:00Z"
	now := metav1.NewTime(time.Date(2026, 11, 20, 11, 0, 0, 0, time.FixedZone("", 3600)))
	own := []string{"Ready", "Valid", "Reconciling", "Stalled"}
	isReady := metav1.Condition{Type: "Ready", Status: "True", Reason: "Ready"}
	isValid := metav1.Condition{Type: "Valid", Status: "True", Reason: "Valid", ObservedGeneration: 3}
	for name, test := range map[string]struct {
		reason     string
		have       []any
		want       []metav1.Condition
		wantMerged []any
	}{
		"none yet": {
			reason: "new ones come in the order that is wanted, in UTC, with a generation where there is one", want: []metav1.Condition{isReady, isValid},
			wantMerged: []any{condition("Ready", "True", "Ready", fresh), condition("Valid", "True", "Valid", fresh, "observedGeneration", int64(3))},
		},
		"the same": {
			reason: "the time stands where the status does, though reason and message change",
			have:   []any{condition("Ready", "True", "Other", old, "message", "x")}, want: []metav1.Condition{isReady},
			wantMerged: []any{condition("Ready", "True", "Ready", old)},
		},
		"a transition": {
			reason: "the time goes with the status", have: []any{condition("Ready", "False", "Ready", old)}, want: []metav1.Condition{isReady},
			wantMerged: []any{condition("Ready", "True", "Ready", fresh)},
		},
		"others": {
			reason: "others' survive in their places with all that they have, even what is no condition",
			have:   []any{"garbage", condition("Audited", "True", "Seen", old, "extra", "x"), condition("Ready", "True", "Ready", old), nil, map[string]any{}},
			want:   []metav1.Condition{isReady, isValid},
			wantMerged: []any{"garbage", condition("Audited", "True", "Seen", old, "extra", "x"), condition("Ready", "True", "Ready", old), nil, map[string]any{},
				condition("Valid", "True", "Valid", fresh, "observedGeneration", int64(3))},
		},
		"no longer wanted": {
			reason: "what is abnormal-true goes when it is over",
			have:   []any{condition("Stalled", "True", "Failed", old), condition("Ready", "True", "Ready", old)}, want: []metav1.Condition{isReady},
			wantMerged: []any{condition("Ready", "True", "Ready", old)},
		},
		"twice": {
			reason: "an atomic list may hold a type twice; one is enough", have: []any{condition("Ready", "True", "Ready", old), condition("Ready", "False", "Ready", old)},
			want: []metav1.Condition{isReady}, wantMerged: []any{condition("Ready", "True", "Ready", old)},
		},
		"no time": {
			reason: "a condition that somebody wrote without a time gets one", have: []any{map[string]any{"type": "Ready", "status": "True"}},
			want: []metav1.Condition{isReady}, wantMerged: []any{condition("Ready", "True", "Ready", fresh)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			merged := status.Merge(test.have, test.want, own, now)
			must.Same(t, test.wantMerged, merged, test.reason)
			later := metav1.NewTime(now.Add(time.Hour))
			must.Same(t, merged, status.Merge(merged, test.want, own, later), "merging the same again changes it")
		})
	}
}

func TestRecorded(t *testing.T) {
	list := []status.Recorded{
		{Name: "service", APIVersion: "v1", Kind: "Service", Namespace: "apps", ObjectName: "web", UID: "u-2", Hash: "h", State: "InSync"},
		{Name: "role", APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", ObjectName: "web", UID: "u-1", State: status.StateFinished},
	}
	written := status.RecordedList(list)
	want := []any{
		map[string]any{"name": "role", "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "objectName": "web", "uid": "u-1", "state": "Finished"},
		map[string]any{"name": "service", "apiVersion": "v1", "kind": "Service", "namespace": "apps", "objectName": "web", "uid": "u-2", "hash": "h", "state": "InSync"},
	}
	must.Same(t, want, written, "the list is sorted by name and leaves out what is empty")
	must.Same(t, []status.Recorded{list[1], list[0]}, status.RecordedFrom(written), "what is read is not what was written")
	if list[0].Name != "service" {
		t.Error("the list that was given is sorted too")
	}
	for reason, v := range map[string]any{
		"nothing": nil, "no list": map[string]any{"name": "a"}, "text": "a", "items of no use": []any{nil, "a", int64(1), map[string]any{}, map[string]any{"name": int64(1)}},
	} {
		if got := status.RecordedFrom(v); len(got) > 0 {
			t.Errorf("%s gives %v", reason, got)
		}
	}
}
