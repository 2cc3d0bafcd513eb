package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/spelling"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// explainUnselected explains why the operator does not look at an upstream: it is read once more, since only a look at
// it and at its namespace shows what of the config's watch passes it over.
func (e *explanation) explainUnselected(ctx context.Context, n int, v *survey.Survey, at operator.Ref) error {
	p := v.Pipeline()
	up := e.begin(p.Name, findings.Object{Kind: p.Upstream.GVK, At: at})
	if p.HasRows() {
		up.Notes = []string{"it has no downstreams: source.query does not return it"}
		return nil
	}
	upstream, err := apply.New(e.Client, "why").Get(ctx, apply.Target{GVR: p.Upstream.GVR,
		Namespace: at.Namespace, Name: at.Name})
	switch {
	case errors.Is(err, apply.ErrGone):
		up.Notes = []string{"it has no downstreams: it does not exist"}
		return nil
	case err != nil:
		return err
	}
	match := p.Match(upstream)
	reasons := e.passedOver(ctx, e.Files[n], upstream, match)
	conclusion := "it has no downstreams"
	switch {
	case len(reasons) == 0 && match.Err != nil:
		conclusion, reasons = findings.LeftAsItIs, []string{match.Err.Error()}
	case len(reasons) == 0:
		reasons = []string{"this operator created it, and never uses its own objects as upstreams"}
	}
	for _, reason := range reasons {
		up.Notes = append(up.Notes, conclusion+": "+reason)
	}
	return nil
}

// passedOver says what of a config's watch an upstream does not satisfy, each with the value found, the value wanted
// and its place in the config; none where it satisfies all.
func (e *explanation) passedOver(
	ctx context.Context, f *load.File, upstream *unstructured.Unstructured, m desired.MatchResult,
) []string {
	var reasons []string
	watch, ns := f.Watch, upstream.GetNamespace()
	place := func(path string) string {
		file, line := f.TextPos(path)
		return fmt.Sprintf("%s:%d: %s", file, line, path)
	}
	if ns != "" && len(watch.Namespaces) > 0 && !slices.Contains(watch.Namespaces, ns) {
		reasons = append(reasons, fmt.Sprintf("it is in namespace %s; %s requires %s", ns, place("watch.namespaces"),
			spelling.Either(watch.Namespaces)))
	}
	for _, r := range unmet(watch.LabelSelector, upstream.GetLabels()) {
		reasons = append(reasons, fmt.Sprintf("it has %s; %s requires %s", r.found, place("watch.labelSelector"), r.wanted))
	}
	if m.Unmet != "" {
		i := slices.IndexFunc(watch.MatchConditions, func(c config.MatchCondition) bool { return c.Name == m.Unmet })
		at := place(fmt.Sprintf("watch.matchConditions[%d]", i))
		reasons = append(reasons, fmt.Sprintf("it does not meet the match condition %s, %s", m.Unmet, at))
	}
	if ns == "" || watch.NamespaceSelector == nil {
		return reasons
	}
	have, err := e.namespaceLabels(ctx, ns)
	if err != nil {
		return append(reasons, fmt.Sprintf("%s may not fit namespace %s, which cannot be read: %s",
			place("watch.namespaceSelector"), ns,
			apply.Classify(err).Message))
	}
	for _, r := range unmet(watch.NamespaceSelector, have) {
		reasons = append(reasons, fmt.Sprintf("its namespace %s has %s; %s requires %s", ns, r.found,
			place("watch.namespaceSelector"), r.wanted))
	}
	return reasons
}

// namespaceLabels reads the labels of a namespace by a list of it alone, which takes no more rights than to watch it.
func (e *explanation) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	list, err := e.Client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return list.Items[0].GetLabels(), nil
}

// unmet lists the requirements of a selector that labels do not satisfy, each with what they have instead.
func unmet(s *metav1.LabelSelector, have map[string]string) (list []struct{ wanted, found string }) {
	if s == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil // the loader lets no such config through
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Matches(labels.Set(have)) {
			continue
		}
		found := "no label " + r.Key()
		if value, ok := have[r.Key()]; ok {
			found = "label " + r.Key() + "=" + value
		}
		list = append(list, struct{ wanted, found string }{r.String(), found})
	}
	return list
}

// deselected says why an upstream that has downstreams is not selected any more.
func (e *explanation) deselected(ctx context.Context, f *preview.Finding, line func(string, ...any)) {
	if f.Upstream.GetKind() == query.RowKind {
		return // each downstream says that the query does not return it
	}
	i := slices.IndexFunc(e.Files, func(file *load.File) bool { return file.Metadata.Name == f.Operator })
	reasons := e.passedOver(ctx, e.Files[i], f.Upstream, f.Match)
	for _, reason := range reasons {
		line("the config does not select it: %s", reason)
	}
	switch {
	case len(reasons) == 0 && f.Match.Err != nil:
		line("whether the config selects it is not known: %v", f.Match.Err)
	case len(reasons) == 0: // it has changed since it was looked at
		line("the config does not select it")
	}
}
