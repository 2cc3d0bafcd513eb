package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selects is CEL that holds where the selector matches an object, which is object or oldObject; empty if it matches
// everything. A binding's objectSelector lets through to the rules what matches before or after.
func selects(s *metav1.LabelSelector, object string) string {
	if s == nil {
		return ""
	}
	var all []string
	label := func(key string) string { return fmt.Sprintf(`%s.metadata[?"labels"][?%q]`, object, key) }
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		all = append(all, fmt.Sprintf("%s == optional.of(%q)", label(key), s.MatchLabels[key]))
	}
	for _, r := range s.MatchExpressions {
		var one []string
		for _, value := range r.Values {
			one = append(one, fmt.Sprintf("%s == optional.of(%q)", label(r.Key), value))
		}
		switch among := "(" + strings.Join(one, " || ") + ")"; r.Operator {
		case metav1.LabelSelectorOpIn:
			all = append(all, among)
		case metav1.LabelSelectorOpNotIn:
			all = append(all, "!"+among)
		case metav1.LabelSelectorOpExists:
			all = append(all, label(r.Key)+".hasValue()")
		case metav1.LabelSelectorOpDoesNotExist:
			all = append(all, "!"+label(r.Key)+".hasValue()")
		}
	}
	return strings.Join(all, " && ")
}
