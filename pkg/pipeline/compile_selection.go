package pipeline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// warnOfUnselected adds a warning to each operator that watches a kind which another operator makes, and whose labelSelector the labels of
// that other one contradict: objects that it selected until then lose their downstreams.
func warnOfUnselected(list []Compiled) {
	for _, watches := range list {
		watched := watches.Pipeline.Config.Watch.LabelSelector
		if watched == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(watched)
		if err != nil {
			continue // an error of its own
		}
		requirements, _ := selector.Requirements()
		for _, makes := range list {
			given := labels.Set(makes.Pipeline.Config.Conventions.Labels)
			for _, d := range makes.Pipeline.Downstreams {
				if d.OwnsFields() || d.GVK().GroupKind() != watches.Pipeline.Upstream.GVK.GroupKind() {
					continue
				}
				for _, r := range requirements {
					if given.Has(r.Key()) && !r.Matches(given) {
						watches.Pipeline.Warnings = append(watches.Pipeline.Warnings, *watches.File.Errorf("watch.labelSelector",
							"let the selector accept both values (matchExpressions, operator In) before the labels change, or the downstreams of objects that it selected until then are deleted",
							"it requires %s, and operator %s gives %s %s=%s (conventions.labels)",
							r.String(), makes.Pipeline.Config.Metadata.Name, watches.Pipeline.Upstream.GVK.Kind, r.Key(), given[r.Key()]))
					}
				}
			}
		}
	}
}
