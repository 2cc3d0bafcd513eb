package hints

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// chainHints are about labels by which a config selects what another one makes, where they are marks of the other one:
// what that one keeps or releases loses its marks, is no longer selected, and what was made for it goes.
func chainHints(list []compile.Compiled, c compile.Compiled) (hints []config.Error) {
	w := c.Pipeline.Config.Watch
	for _, by := range []struct {
		at       string
		selector *metav1.LabelSelector
		kind     schema.GroupKind
	}{
		{"watch.labelSelector", w.LabelSelector, c.Pipeline.Upstream.GVK.GroupKind()},
		{"watch.namespaceSelector", w.NamespaceSelector, schema.GroupKind{Kind: "Namespace"}},
	} {
		for _, other := range list {
			makes := func(d config.Downstream) bool {
				return schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind() == by.kind && !d.OwnsFields()
			}
			key := selectedMark(by.selector, other.Pipeline.Config.Conventions.Labels)
			if key != "" && other.Pipeline != c.Pipeline && slices.ContainsFunc(other.Pipeline.Config.Downstreams, makes) {
				hints = append(hints, *c.File.Errorf(by.at, "select by a label of the template",
					"%s is among conventions.labels of operator %s: a %s that it keeps or releases loses that label, and then what "+
						"was made here for it is deleted",
					key, other.Pipeline.Name, by.kind.Kind))
			}
		}
	}
	return hints
}

// selectedMark is the first of the labels that a selector asks for; empty for none.
func selectedMark(selector *metav1.LabelSelector, marks map[string]string) string {
	if selector == nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(marks)) {
		names := func(r metav1.LabelSelectorRequirement) bool {
			return r.Key == key && (r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists)
		}
		if _, ok := selector.MatchLabels[key]; ok || slices.ContainsFunc(selector.MatchExpressions, names) {
			return key
		}
	}
	return ""
}
