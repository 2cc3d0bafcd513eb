package cases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// defaultNow is the time of cases without now.
var defaultNow = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// evaluate runs a case. It returns errors for mistakes in the case itself; errors of config or upstream are a result.
func (c *testCase) evaluate(ctx context.Context, cc *loaded) (result, error) {
	if len(cc.problems) > 0 {
		return refusedWith(cc.problemsFor(c)...), nil
	}
	given, err := c.givenUpstream()
	if err != nil {
		return result{}, err
	}
	gvk := given.GroupVersionKind()
	compiled, err := cc.operatorFor(c, gvk.Kind+" of "+gvk.GroupVersion().String(),
		func(o compile.Compiled) bool { return o.Pipeline.Upstream.GVK == gvk })
	if err != nil {
		return result{}, c.errorAt(c.upstreamKey(), "%s", err)
	}
	upstream, err := offline.Complete(given, compiled.Pipeline.Renderer, "")
	if err != nil {
		return refusedWith(err.Error()), nil
	}
	watch := compiled.Pipeline.Config.Watch
	if len(watch.Namespaces) > 0 && upstream.GetNamespace() != "" &&
		!slices.Contains(watch.Namespaces, upstream.GetNamespace()) {
		return refusedWith(offline.Unselected(compiled.Pipeline.Renderer, upstream)), nil
	}
	out, err := c.reconciled(ctx, compiled, cc, upstream)
	if err != nil {
		return result{}, err
	}
	out.words = map[string]redact.Words{}
	for _, d := range compiled.Pipeline.Downstreams {
		out.downstreams = append(out.downstreams, d.Name)
		out.words[d.Name] = d.Words
	}
	if h := compiled.Pipeline.Before; h != nil {
		out.words[operator.BeforeName] = h.Object.Words
	}
	if path, err := fieldpath.Parse(compiled.Pipeline.Config.Status.Downstreams); err == nil && len(path) > 1 {
		out.identifiers = []fieldpath.Path{path}
	}
	return out, nil
}

// givenUpstream is the upstream as the case gives it.
func (c *testCase) givenUpstream() (*unstructured.Unstructured, error) {
	if c.row != nil {
		given := &unstructured.Unstructured{Object: map[string]any{"row": c.row}}
		given.SetGroupVersionKind(desired.RowKind().GVK)
		return given, nil
	}
	if c.upstream == nil {
		return nil, fmt.Errorf(
			"%s: upstream is missing: it is the custom resource that the case is about; of an operator with source, it is row",
			c.path)
	}
	given := &unstructured.Unstructured{Object: c.upstream}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", given.GetAPIVersion()}, {"kind", given.GetKind()}, {"metadata.name", given.GetName()},
	} {
		if field.value == "" {
			return nil, c.errorAt("upstream", "upstream.%s is missing", field.name)
		}
	}
	return given, nil
}

// upstreamKey is the key under which the case gives the upstream.
func (c *testCase) upstreamKey() string {
	if c.row != nil {
		return "row"
	}
	return "upstream"
}

// reconciled returns the result for an upstream with the inputs and objects of the case.
func (c *testCase) reconciled(ctx context.Context, compiled compile.Compiled, cc *loaded,
	upstream *unstructured.Unstructured) (result, error) {
	now, err := c.timeOf(upstream)
	if err != nil {
		return result{}, err
	}
	selected, err := c.isSelected(compiled.Pipeline, upstream)
	if err != nil {
		return result{}, err
	}
	w, err := c.newRun(compiled, cc.kinds, upstream, now)
	if err != nil {
		return result{}, err
	}
	if err := c.putInputs(w); err != nil {
		return result{}, err
	}
	for i, entry := range c.live {
		if err := w.putLive(ctx, entry); err != nil {
			return result{}, fmt.Errorf("%s:%d: live[%d]: %w", c.path, entry.line, i, err)
		}
	}
	if _, err := w.putUpstream(w.upstream); err != nil {
		return result{}, err
	}
	o, err := w.outcomeOf(ctx, selected)
	if err != nil {
		return result{}, err
	}
	if !selected && o.decided == nil { // there is nothing to decide
		in := operator.Input{Upstream: upstream, SelectionErr: w.Pipeline.Match(upstream).Err}
		o.Decided(in, decide.Decide(w.Pipeline.Settings, in))
	}
	return result{tree: o.tree(selected, upstream)}, nil
}

func (c *testCase) timeOf(upstream *unstructured.Unstructured) (time.Time, error) {
	if deleted := upstream.GetDeletionTimestamp(); c.now == "" && deleted != nil {
		return deleted.Time, nil
	}
	if c.now == "" {
		return defaultNow, nil
	}
	now, err := time.Parse(time.RFC3339, c.now)
	if err != nil {
		return now, c.errorAt("now", "now is %q: write it as 2006-01-02T15:04:05Z", c.now)
	}
	return now, nil
}

// isSelected reports whether the config's selectors match. If the case has no labels of the namespace, they match.
func (c *testCase) isSelected(p *compile.Pipeline, upstream *unstructured.Unstructured) (bool, error) {
	if offline.Unselected(p.Renderer, upstream) != "" {
		return false, nil
	}
	asked := p.Config.Watch.NamespaceSelector
	if c.namespaceLabels == nil || asked == nil {
		if c.namespaceLabels != nil {
			return false, c.errorAt("namespaceLabels",
				"operator %s has no watch.namespaceSelector, so namespaceLabels have no effect: remove them",
				p.Name)
		}
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(asked)
	if err != nil {
		return false, err // the loader refuses such a config
	}
	return selector.Matches(labels.Set(c.namespaceLabels)), nil
}

// putInputs stores the inputs of a case. An input that the operator does not read is an error.
func (c *testCase) putInputs(w *caseRun) error {
	p := w.Pipeline
	for i, object := range c.inputs {
		u := &unstructured.Unstructured{Object: object}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return c.errorAt("inputs", "inputs[%d] is not an object: set apiVersion, kind and metadata.name", i)
		}
		if u.GroupVersionKind() == desired.RowKind().GVK {
			if err := w.addRow(u); err != nil {
				return c.errorAt("inputs", "inputs[%d]: %s", i, err)
			}
			continue
		}
		read := slices.ContainsFunc(p.Inputs,
			func(s *desired.InputSource) bool { return s.Kind.GVK.GroupKind() == u.GroupVersionKind().GroupKind() })
		if !read {
			return c.errorAt("inputs", "inputs[%d]: operator %s has no input of kind %s: %s", i,
				p.Name, u.GetKind(), inputKinds(p))
		}
		if err := w.put(object); err != nil {
			return c.errorAt("inputs", "inputs[%d]: %s", i, err)
		}
	}
	return nil
}

// addRow adds a row of the input that its namespace names.
func (w *caseRun) addRow(u *unstructured.Unstructured) error {
	k := slices.IndexFunc(w.Pipeline.Inputs, func(s *desired.InputSource) bool {
		return s.HasRows() && s.Name == u.GetNamespace()
	})
	if k < 0 {
		return fmt.Errorf("operator %s has no input %q with sql: set metadata.namespace to the name of the input",
			w.Pipeline.Name, u.GetNamespace())
	}
	content, err := canonical.Form(u.Object)
	if err != nil {
		return err
	}
	columns, ok := content["row"].(map[string]any)
	if !ok {
		return errors.New("row is missing: write the columns below it")
	}
	w.cache.rows = append(w.cache.rows, w.Pipeline.Inputs[k].Row(desired.RowName(u.GetName()), columns))
	return nil
}

func inputKinds(p *compile.Pipeline) string {
	kinds := map[string]bool{}
	for _, s := range p.Inputs {
		kinds[s.Kind.GVK.Kind] = true
	}
	if len(kinds) == 0 {
		return "it has none"
	}
	return "it reads " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
}
