package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/render"
)

// rendering gathers the documents of several upstreams, and everything that is wrong with any of them.
type rendering struct {
	ctx       context.Context
	configs   []compiled
	namespace string // -n; empty where it was not given
	given     given  // from --inputs

	documents []map[string]any
	notes     []string
	errs      []error
	targets   map[target]string // which upstream a target belongs to
}

// target is an object that a downstream asks for.
type target struct {
	kind schema.GroupKind
	at   pipeline.Ref
}

// add renders an upstream by every config that watches its kind.
func (r *rendering) add(u upstream) {
	gvk := u.object.GroupVersionKind()
	watched := false
	for _, c := range r.configs {
		if c.pipeline.Upstream.GVK != gvk {
			continue
		}
		watched = true
		object, err := complete(u.object, c.pipeline.Upstream, r.namespace)
		if err != nil {
			r.fail(u, err)
			return
		}
		r.follow(c, upstream{object: object, where: u.where})
	}
	if !watched {
		r.fail(u, fmt.Errorf("no config watches %s of %s: %s", gvk.Kind, gvk.GroupVersion(), watchedKinds(r.configs)))
	}
}

// watchedKinds says which kinds configs watch.
func watchedKinds(configs []compiled) string {
	var list []string
	for _, c := range configs {
		w := c.pipeline.Config.Watch
		list = append(list, w.Kind+" of "+w.APIVersion)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) == 1 {
		return "watched is " + list[0]
	}
	return "watched are " + strings.Join(list, ", ")
}

// follow asks the pipeline what follows from an upstream in a cluster where nothing stands yet.
func (r *rendering) follow(c compiled, u upstream) {
	p := c.pipeline
	if why := unselected(p, u.object); why != "" {
		r.note(u, "nothing follows: %s", why)
		return
	}
	in := r.given.inputsFor(r.ctx, p, u.object)
	wish := p.Wish(r.ctx, u.object, in)
	decision := p.Decide(pipeline.Input{Upstream: u.object, Wish: wish, Selected: true, Facts: make([]pipeline.Facts, len(p.Downstreams))})
	for i, o := range decision.Outcomes {
		switch o.State {
		case pipeline.StateCreate:
			r.document(c, u, in, wish, i, o)
		case pipeline.StateRenderFailed:
			r.fail(u, located(c, i, wish.Downstreams[i].Err))
		case pipeline.StateInvalid:
			// Told once below, not for each downstream.
		case pipeline.StateWaiting:
			r.note(u, "downstream %s waits: %s: give it with --inputs", p.Downstreams[i].Name, o.Message)
		default:
			r.note(u, "downstream %s is not applied: %s: %s", p.Downstreams[i].Name, o.State, o.Message)
		}
	}
	if len(decision.Outcomes) > 0 && decision.Outcomes[0].State == pipeline.StateInvalid {
		for _, f := range wish.Invalid {
			r.fail(u, errors.New(f.String()))
		}
	}
}

// document takes one document in, unless another upstream has asked for the same object: of the two, run would report
// the second as a conflict.
func (r *rendering) document(c compiled, u upstream, in pipeline.Inputs, wish *pipeline.Wish, i int, o pipeline.Outcome) {
	d := c.pipeline.Downstreams[i]
	key := target{d.GVK().GroupKind(), o.Target}
	if first, taken := r.targets[key]; taken {
		r.fail(u, fmt.Errorf("downstream %s: %s %s follows from %s already: the two would be in conflict", d.Name, d.Config.Kind, o.Target, first))
		return
	}
	r.targets[key] = u.String()
	document, err := c.pipeline.Document(wish, i, u.object, in, nil)
	if err != nil {
		r.fail(u, err)
		return
	}
	r.documents = append(r.documents, document)
}

func (r *rendering) fail(u upstream, err error) {
	r.errs = append(r.errs, fmt.Errorf("%s: %w", u, err))
}

func (r *rendering) note(u upstream, format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%s: %s", u, fmt.Sprintf(format, args...)))
}

// located puts file and line of the template before an error that has a line in it.
func located(c compiled, i int, err error) error {
	var e *render.Error
	if !errors.As(err, &e) || e.Line == 0 {
		return err
	}
	file, first := c.file.TemplatePos(i)
	return fmt.Errorf("%s:%d: %w", file, first+e.Line-1, err)
}

// unselected says why the config's watch passes an upstream over; empty where it does not. The labels of its namespace
// are not known here.
func unselected(p *pipeline.Pipeline, u *unstructured.Unstructured) string {
	watch := p.Config.Watch
	if len(watch.Namespaces) > 0 && u.GetNamespace() != "" && !slices.Contains(watch.Namespaces, u.GetNamespace()) {
		return fmt.Sprintf("operator %s watches namespaces %s", p.Name, strings.Join(watch.Namespaces, ", "))
	}
	if watch.LabelSelector == nil {
		return ""
	}
	// The loader has checked the selector.
	selector, err := metav1.LabelSelectorAsSelector(watch.LabelSelector)
	if err != nil || selector.Matches(labels.Set(u.GetLabels())) {
		return ""
	}
	return fmt.Sprintf("operator %s selects the labels %s", p.Name, selector)
}
