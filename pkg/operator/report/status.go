package report

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// StatusPart is a place of the status that the config has written.
type StatusPart struct {
	Name string
	Path fieldpath.Path
}

func (s StatusPart) String() string { return fmt.Sprintf("%s (%s)", s.Name, s.Path) }

// StatusParts are all places of the status that this operator writes; none where it writes no status.
func StatusParts(s *operator.Settings) []StatusPart {
	if !s.StatusEnabled() {
		return nil
	}
	list := []StatusPart{
		{"status.conditions", fieldpath.New("status", "conditions")},
		{"the generation", fieldpath.New("status", "observedGeneration")},
	}
	if s.DownstreamsPath != nil {
		list = append(list, StatusPart{"status.downstreams", s.DownstreamsPath})
	}
	for i, path := range s.StatusFields {
		list = append(list, StatusPart{fmt.Sprintf("status.fields[%d]", i), path})
	}
	return list
}

// ReadBy reports whether one of the paths, from the status on, reaches the place; an empty one is the whole status.
func (s StatusPart) ReadBy(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(fields []string) bool {
		return s.Path.Overlaps(fieldpath.New(append([]string{"status"}, fields...)...))
	})
}

// OthersStatus is what other writers have in the upstream's status: without our conditions and what else this operator
// writes.
func OthersStatus(s *operator.Settings, upstream *unstructured.Unstructured) map[string]any {
	status, ok := upstream.Object["status"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	theirs := map[string]any{}
	for key, value := range status {
		theirs[key] = value
	}
	list, _ := status["conditions"].([]any)
	var others []any
	for _, item := range list {
		condition, _ := item.(map[string]any)
		if kind, _ := condition["type"].(string); !slices.Contains(s.OwnTypes(), kind) {
			others = append(others, item)
		}
	}
	delete(theirs, "observedGeneration")
	if delete(theirs, "conditions"); len(others) > 0 {
		theirs["conditions"] = others
	}
	var ours []fieldpath.Path
	for _, part := range StatusParts(s) {
		if part.Path[1].Field != "conditions" {
			ours = append(ours, part.Path)
		}
	}
	out, _ := fieldpath.Without(map[string]any{"status": theirs}, ours)["status"].(map[string]any)
	return out
}

// ChangedFields names the status.fields that want gives another value than the upstream's status has.
func ChangedFields(s *operator.Settings, upstream *unstructured.Unstructured, want map[string]any) []string {
	var changed []string
	for i, path := range s.StatusFields {
		have, _ := fieldpath.Get(upstream.Object, path)
		if value, ok := fieldpath.Get(map[string]any{"status": want}, path); ok && !equality.Semantic.DeepEqual(have, value) {
			changed = append(changed, StatusPart{fmt.Sprintf("status.fields[%d]", i), path}.String())
		}
	}
	return changed
}

// OwnConditions returns a status with our condition types alone, for an apply: what it holds becomes ours.
func OwnConditions(s *operator.Settings, want map[string]any) map[string]any {
	all, _ := want["conditions"].([]any)
	own := s.OwnTypes()
	var ours []any
	for _, c := range all {
		condition, _ := c.(map[string]any)
		if t, _ := condition["type"].(string); slices.Contains(own, t) {
			ours = append(ours, c)
		}
	}
	out := make(map[string]any, len(want))
	for key, value := range want {
		out[key] = value
	}
	if len(all) > 0 {
		out["conditions"] = ours
	}
	return out
}

// KeptConditions are the conditions in an upstream's status without those that want has no more; false if it has all of
// them.
func KeptConditions(upstream *unstructured.Unstructured, want map[string]any) ([]any, bool) {
	have, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	wanted, _ := want["conditions"].([]any)
	typeOf := func(c any) any { m, _ := c.(map[string]any); return m["type"] }
	kept := slices.DeleteFunc(slices.Clone(have), func(c any) bool {
		return !slices.ContainsFunc(wanted, func(w any) bool { return typeOf(w) == typeOf(c) })
	})
	return kept, len(kept) < len(have)
}
