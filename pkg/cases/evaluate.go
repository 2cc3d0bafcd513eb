package cases

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// defaultNow is the time at which cases happen that say none.
var defaultNow = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// came is what came out of a case: the tree that expect is compared with, and what is known of the config by then.
type came struct {
	tree map[string]any
	// downstreams are the config's, in its order; nil where the case did not get as far.
	downstreams []string
	// words are all that is shown of documents that can hold values of a Secret, by downstream.
	words map[string]redact.Words
	// identifiers is where the status has those of downstreams.
	identifiers []fieldpath.Path
}

func refusedWith(errs ...string) came {
	list := make([]any, len(errs))
	for i, e := range errs {
		list[i] = e
	}
	return came{tree: map[string]any{"errors": list}}
}

// evaluate runs a case. Errors are mistakes of the case itself; what is wrong with config or upstream is what came out.
func (c *testCase) evaluate(ctx context.Context, cc *loaded) (came, error) {
	if len(cc.problems) > 0 {
		return refusedWith(cc.told(c)...), nil
	}
	if c.upstream == nil {
		return came{}, fmt.Errorf("%s: upstream is missing: it is the custom resource that the case is about", c.path)
	}
	given := &unstructured.Unstructured{Object: c.upstream}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", given.GetAPIVersion()}, {"kind", given.GetKind()}, {"metadata.name", given.GetName()},
	} {
		if field.value == "" {
			return came{}, c.mistake("upstream", "upstream.%s is missing", field.name)
		}
	}
	gvk := given.GroupVersionKind()
	operator, err := cc.watching(c, gvk.Kind+" of "+gvk.GroupVersion().String(),
		func(o pipeline.Compiled) bool { return o.Pipeline.Upstream.GVK == gvk })
	if err != nil {
		return came{}, c.mistake("upstream", "%s", err)
	}
	upstream, err := offline.Complete(given, operator.Pipeline.Upstream, "")
	if err != nil {
		return refusedWith(err.Error()), nil
	}
	watch := operator.Pipeline.Config.Watch
	if len(watch.Namespaces) > 0 && upstream.GetNamespace() != "" && !slices.Contains(watch.Namespaces, upstream.GetNamespace()) {
		return refusedWith(offline.Unselected(operator.Pipeline, upstream)), nil
	}
	out, err := c.reconciled(ctx, operator, cc, upstream)
	if err != nil {
		return came{}, err
	}
	out.words = map[string]redact.Words{}
	for _, d := range operator.Pipeline.Downstreams {
		out.downstreams = append(out.downstreams, d.Name)
		out.words[d.Name] = d.Words
	}
	if h := operator.Pipeline.Before; h != nil {
		out.words[pipeline.BeforeName] = h.Object.Words
	}
	if path, err := fieldpath.Parse(operator.Pipeline.Config.Status.Downstreams); err == nil && len(path) > 1 {
		out.identifiers = []fieldpath.Path{path}
	}
	return out, nil
}

// mistake is an error about a key of the case, with its line.
func (c *testCase) mistake(key, format string, args ...any) error {
	line := 1
	if k, _ := child(c.root, key); k != nil {
		line = k.Line
	}
	return fmt.Errorf("%s:%d: %s", c.path, line, fmt.Sprintf(format, args...))
}

// reconciled is what comes of an upstream among the inputs and objects of the case.
func (c *testCase) reconciled(ctx context.Context, operator pipeline.Compiled, cc *loaded,
	upstream *unstructured.Unstructured) (came, error) {
	now, err := c.time(upstream)
	if err != nil {
		return came{}, err
	}
	selected, err := c.selected(operator.Pipeline, upstream)
	if err != nil {
		return came{}, err
	}
	w, err := c.newWorld(operator, cc, upstream, now)
	if err != nil {
		return came{}, err
	}
	if err := c.putInputs(w); err != nil {
		return came{}, err
	}
	for i, entry := range c.live {
		if err := w.place(ctx, entry); err != nil {
			return came{}, fmt.Errorf("%s:%d: live[%d]: %w", c.path, entry.line, i, err)
		}
	}
	if _, err := w.cluster.Put(w.upstream); err != nil {
		return came{}, err
	}
	o, err := w.outcomeOf(ctx, selected)
	if err != nil {
		return came{}, err
	}
	if !selected && o.decided == nil { // nothing is there that a decision could be about
		in := pipeline.Input{Upstream: upstream}
		o.Decided(in, w.Pipeline.Decide(in))
	}
	return came{tree: o.tree(selected, upstream)}, nil
}

func (c *testCase) time(upstream *unstructured.Unstructured) (time.Time, error) {
	if deleted := upstream.GetDeletionTimestamp(); c.now == "" && deleted != nil {
		return deleted.Time, nil
	}
	if c.now == "" {
		return defaultNow, nil
	}
	now, err := time.Parse(time.RFC3339, c.now)
	if err != nil {
		return now, c.mistake("now", "now is %q: write it as 2006-01-02T15:04:05Z", c.now)
	}
	return now, nil
}

// selected tells whether the config's selectors match. Without the labels of the namespace they are taken to fit.
func (c *testCase) selected(p *pipeline.Pipeline, upstream *unstructured.Unstructured) (bool, error) {
	if offline.Unselected(p, upstream) != "" {
		return false, nil
	}
	asked := p.Config.Watch.NamespaceSelector
	if c.namespaceLabels == nil || asked == nil {
		if c.namespaceLabels != nil {
			return false, c.mistake("namespaceLabels", "operator %s has no watch.namespaceSelector, so namespaceLabels say nothing: leave them out",
				p.Name)
		}
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(asked)
	if err != nil {
		return false, err // the loader lets no such config through
	}
	return selector.Matches(labels.Set(c.namespaceLabels)), nil
}

// putInputs takes the inputs of a case in. One that nothing could read is a mistake.
func (c *testCase) putInputs(w *world) error {
	p := w.Pipeline
	for i, object := range c.inputs {
		u := &unstructured.Unstructured{Object: object}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return c.mistake("inputs", "inputs[%d] is no object: it needs apiVersion, kind and metadata.name", i)
		}
		read := slices.ContainsFunc(p.Inputs,
			func(s *pipeline.InputSource) bool { return s.Kind.GVK.GroupKind() == u.GroupVersionKind().GroupKind() })
		if !read {
			return c.mistake("inputs", "inputs[%d]: operator %s has no input of kind %s: %s", i, p.Name, u.GetKind(), inputKinds(p))
		}
		if err := w.put(object); err != nil {
			return c.mistake("inputs", "inputs[%d]: %s", i, err)
		}
	}
	return nil
}

func inputKinds(p *pipeline.Pipeline) string {
	kinds := map[string]bool{}
	for _, s := range p.Inputs {
		kinds[s.Kind.GVK.Kind] = true
	}
	if len(kinds) == 0 {
		return "it has none"
	}
	return "it reads " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
}
