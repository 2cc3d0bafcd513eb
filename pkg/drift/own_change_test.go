package drift_test

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

func TestIsOwnChange(t *testing.T) {
	hash, data := fieldpath.New("metadata", "annotations", "example.com/hash"), fieldpath.New("data", "a")
	reference := fieldpath.MustParse(".metadata.ownerReferences[uid=1].apiVersion")
	for _, row := range []struct {
		reason string
		list   []drift.Difference
		want   bool
	}{
		{"nothing differs, as with another field manager", nil, true},
		{"the hash has another key", []drift.Difference{{Path: hash, Have: "v1-a", Manager: manager}}, true},
		{"the upstream has another version",
			[]drift.Difference{{Path: reference, Want: "example.com/v2", Have: "example.com/v1", Manager: manager}}, true},
		{"another manager changed something", []drift.Difference{{Path: data, Want: "a", Have: "b", Manager: "other"}}, false},
		{"beside a change of another manager",
			[]drift.Difference{{Path: hash, Have: "v1-a", Manager: manager}, {Path: data, Want: "a", Manager: "other"}}, false},
		{"admission changed something under our name", []drift.Difference{{Path: data, Want: "a", Have: "b", Manager: manager}}, false},
	} {
		if got := drift.IsOwnChange(row.list, manager); got != row.want {
			t.Errorf("%s: %t", row.reason, got)
		}
	}
}
