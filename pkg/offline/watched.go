package offline

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// WatchedKinds lists the kinds that configs watch, for a message.
func WatchedKinds(configs []compile.Compiled) string {
	var list []string
	for _, c := range configs {
		w := c.Pipeline.Config.Watch
		list = append(list, w.Kind+" of "+w.APIVersion)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == 1 {
		return "watched is " + list[0]
	}
	return "watched are " + strings.Join(list, ", ")
}

// Unselected returns why the config's watch does not select an upstream, or "" if it does. The labels of the upstream's
// namespace are unknown here.
func Unselected(p *desired.Renderer, u *unstructured.Unstructured) string {
	watch := p.Config.Watch
	if len(watch.Namespaces) > 0 && u.GetNamespace() != "" && !slices.Contains(watch.Namespaces, u.GetNamespace()) {
		return fmt.Sprintf("operator %s watches namespaces %s", p.Name, strings.Join(watch.Namespaces, ", "))
	}
	switch match := p.Match(u); {
	case match.Err != nil:
		return fmt.Sprintf("operator %s: %v", p.Name, match.Err)
	case match.Unmet != "":
		return fmt.Sprintf("operator %s: the upstream does not meet the match condition %s", p.Name, match.Unmet)
	case watch.LabelSelector == nil:
		return ""
	}
	// The loader has checked the selector.
	selector, err := metav1.LabelSelectorAsSelector(watch.LabelSelector)
	if err != nil || selector.Matches(labels.Set(u.GetLabels())) {
		return ""
	}
	return fmt.Sprintf("operator %s selects the labels %s", p.Name, selector)
}
