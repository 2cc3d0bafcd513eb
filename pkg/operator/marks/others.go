package marks

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/drift/managed"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// RemoveOthersStatus removes from an upstream, which was read with its managedFields, the conditions and records that
// another field manager has applied, alone or too. Operators whose selectors contradict each other may write the same
// ones: when a label moves the upstream from one to the other, what that one records is not for the first to clean up.
// What nobody has applied is left: a person may correct a status.
func RemoveOthersStatus(s *operator.Settings, upstream *unstructured.Unstructured) {
	var others []managed.Fields
	for _, e := range managed.Entries(upstream) {
		if e.Operation == "Apply" && e.WritesStatus() && !slices.Contains(s.Config.Conventions.FieldManagers(), e.Manager) {
			others = append(others, e.Owned)
		}
	}
	if len(others) == 0 {
		return
	}
	remove := func(list fieldpath.Path, leaf string) {
		value, _ := fieldpath.Get(upstream.Object, list)
		items, _ := value.([]any)
		var kept []any
		for i, item := range items {
			at := append(slices.Clone(list), fieldpath.Step{Kind: fieldpath.IndexStep, Index: i},
				fieldpath.Step{Kind: fieldpath.FieldStep, Field: leaf})
			if !slices.ContainsFunc(others, func(owned managed.Fields) bool {
				_, how := owned.Follow(upstream.Object, at)
				return how != managed.HoldsNothing
			}) {
				kept = append(kept, item)
			}
		}
		if len(kept) < len(items) {
			_ = fieldpath.Set(upstream.Object, list, kept) // it is there
		}
	}
	remove(fieldpath.New("status", "conditions"), "reason")
	if s.DownstreamsPath != nil {
		remove(s.DownstreamsPath, "uid")
	}
}
