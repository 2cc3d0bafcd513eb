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
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	run, err := c.prepare(ctx, operator, cc, upstream)
	if err != nil {
		return came{}, err
	}
	run.look()
	out := came{tree: run.tree(ctx), words: map[string]redact.Words{}}
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

// prepare puts upstream, inputs and what stands in place.
func (c *testCase) prepare(ctx context.Context, operator pipeline.Compiled, cc *loaded, upstream *unstructured.Unstructured) (*run, error) {
	now, err := c.time(upstream)
	if err != nil {
		return nil, err
	}
	r := &run{Compiled: operator, server: &server{kinds: cc.kinds}, upstream: upstream, now: now}
	if r.selected, err = c.selected(operator.Pipeline, upstream); err != nil {
		return nil, err
	}
	objects, err := c.givenInputs(operator.Pipeline, upstream)
	if err != nil {
		return nil, err
	}
	r.inputs = objects.InputsFor(ctx, operator.Pipeline, upstream)
	r.wish = operator.Pipeline.Desired(ctx, upstream, r.inputs)
	r.recorded = operator.Pipeline.Recorded(upstream)
	for i, entry := range c.live {
		if err := r.place(ctx, entry, objects); err != nil {
			return nil, fmt.Errorf("%s:%d: live[%d]: %w", c.path, entry.line, i, err)
		}
	}
	return r, nil
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

// givenInputs takes the inputs of a case in. One that nothing could read is a mistake.
func (c *testCase) givenInputs(p *pipeline.Pipeline, upstream *unstructured.Unstructured) (offline.Given, error) {
	objects := offline.Given{}
	for i, object := range c.inputs {
		u := &unstructured.Unstructured{Object: object}
		if u.GetKind() == "" || u.GetAPIVersion() == "" || u.GetName() == "" {
			return nil, c.mistake("inputs", "inputs[%d] is no object: it needs apiVersion, kind and metadata.name", i)
		}
		read := slices.ContainsFunc(p.Inputs,
			func(s *pipeline.InputSource) bool { return s.Kind.GVK.GroupKind() == u.GroupVersionKind().GroupKind() })
		if !read {
			return nil, c.mistake("inputs", "inputs[%d]: operator %s has no input of kind %s: %s", i, p.Name, u.GetKind(), inputKinds(p))
		}
		namespace := upstream.GetNamespace()
		if namespace == "" {
			namespace = "default"
		}
		for _, ns := range []string{namespace, ""} {
			if err := objects.Add(u, ns); err != nil {
				return nil, c.mistake("inputs", "inputs[%d]: %s", i, err)
			}
		}
	}
	return objects, nil
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

// tree is what came out in the shape of expect, all of it.
func (r *run) tree(ctx context.Context) map[string]any {
	out := map[string]any{}
	if refusals := r.refusals(); len(refusals) > 0 {
		out = refusedWith(refusals...).tree
	}
	if r.selected {
		var invalid []any
		for _, f := range r.wish.Invalid {
			invalid = append(invalid, f.String())
		}
		put(out, "invalid", invalid, len(invalid) > 0 && !r.deleted())
		report := r.report(ctx)
		put(out, "conditions", conditionsTree(report.Conditions), r.Pipeline.StatusEnabled())
		rest := statusTree(report.Status)
		put(out, "status", rest, len(rest) > 0)
	}
	if o := r.hook; o != nil {
		out["before"] = outcomeTree(*o, r.hookDocument)
	}
	if len(r.decided) > 0 {
		downstreams := map[string]any{}
		for i, o := range r.decided {
			downstreams[r.Pipeline.Downstreams[i].Name] = outcomeTree(o, r.documents[i])
		}
		out["downstreams"] = downstreams
	}
	out["leftovers"] = r.leftoversTree()
	out["finalizer"] = map[pipeline.FinalizerAction]string{pipeline.FinalizerLeave: "None", pipeline.FinalizerAdd: "Add",
		pipeline.FinalizerRemove: "Remove", pipeline.FinalizerSwap: "Swap"}[r.finalizer]
	return out
}

func outcomeTree(o pipeline.Outcome, document map[string]any) map[string]any {
	out := map[string]any{"state": string(o.State)}
	put(out, "message", o.Message, o.Message != "")
	put(out, "document", document, document != nil)
	return out
}

func put(m map[string]any, key string, value any, there bool) {
	if there {
		m[key] = value
	}
}

func (r *run) leftoversTree() []any {
	list := []any{}
	for _, o := range r.leftovers {
		action := string(o.Action)
		if action == "" {
			action = "None"
		}
		kind := schema.FromAPIVersionAndKind(o.Live.APIVersion, o.Live.Kind).Kind
		list = append(list, map[string]any{"downstream": r.Pipeline.Downstreams[o.Downstream].Name, "object": kind + " " + o.Target.String(),
			"state": string(o.State), "action": action, "message": o.Message})
	}
	return list
}

func conditionsTree(conditions []metav1.Condition) []any {
	list := []any{}
	for _, c := range conditions {
		m := map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason}
		put(m, "message", c.Message, c.Message != "")
		put(m, "observedGeneration", c.ObservedGeneration, c.ObservedGeneration != 0)
		list = append(list, m)
	}
	return list
}

// statusTree is the status beside the conditions, which have a key of their own.
func statusTree(status map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range status {
		if key != "conditions" && key != "observedGeneration" {
			out[key] = value
		}
	}
	return out
}
