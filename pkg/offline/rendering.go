package offline

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Rendering gathers the documents of several upstreams, and everything that is wrong with any of them.
type Rendering struct {
	Configs   []compile.Compiled
	Namespace string // of upstreams that name none; empty: default
	Given     Given  // the inputs

	Documents []map[string]any
	Notes     []string
	Errs      []error
	targets   map[target]string // which upstream a target belongs to
}

// target is an object that a downstream asks for.
type target struct {
	kind schema.GroupKind
	at   operator.Ref
}

// Add renders an upstream by every config that watches its kind, as in an empty cluster.
func (r *Rendering) Add(ctx context.Context, u Upstream) {
	gvk := u.Object.GroupVersionKind()
	watched := false
	for _, c := range r.Configs {
		if c.Pipeline.Upstream.GVK != gvk {
			continue
		}
		watched = true
		object, err := Complete(u.Object, c.Pipeline.Renderer, r.Namespace)
		if err != nil {
			r.fail(u, err)
			return
		}
		r.addDownstreams(ctx, c, Upstream{Object: object, Where: u.Where})
	}
	if !watched {
		r.fail(u, fmt.Errorf("no config watches %s of %s: %s", gvk.Kind, gvk.GroupVersion(), WatchedKinds(r.Configs)))
	}
}

// addDownstreams renders the downstreams of an upstream.
func (r *Rendering) addDownstreams(ctx context.Context, c compile.Compiled, u Upstream) {
	p := c.Pipeline
	if why := Unselected(p.Renderer, u.Object); why != "" {
		r.note(u, "nothing follows: %s", why)
		return
	}
	in := r.Given.inputsFor(ctx, p.Renderer, u.Object)
	desired := p.Render(ctx, u.Object, in)
	decision := decide.Decide(p.Settings,
		operator.Input{Upstream: u.Object, Desired: desired, Selected: true,
			Facts: make([]operator.Facts, len(desired.Objects))},
	)
	for k, o := range decision.Outcomes {
		if o.State == operator.StateWaiting && p.Downstreams[o.Downstream].OwnsFields() && desired.Objects[k].Err == nil {
			o.State = operator.StateCreate // what is waited for is the object of others
		}
		switch o.State {
		case operator.StateCreate:
			r.document(c, u, in, desired, o)
		case operator.StateRenderFailed:
			r.fail(u, c.Located(o.Downstream, desired.Objects[k].Err))
		case operator.StateInvalid:
			// Told once below, not for each downstream.
		case operator.StateWaiting:
			r.note(u, "downstream %s waits: %s: give it with --inputs", p.Downstreams[o.Downstream].Name, o.Message)
		default:
			r.note(u, "downstream %s is not applied: %s: %s", p.Downstreams[o.Downstream].Name, o.State, o.Message)
		}
	}
	if len(decision.Outcomes) > 0 && decision.Outcomes[0].State == operator.StateInvalid {
		for _, f := range desired.Invalid {
			r.fail(u, errors.New(f))
		}
	}
}

// document takes one document in, unless another upstream has asked for the same object: of the two, run would report
// the second as a conflict.
func (r *Rendering) document(
	c compile.Compiled, u Upstream, in desired.Inputs, desired *operator.Desired, o operator.Outcome,
) {
	d := c.Pipeline.Downstreams[o.Downstream]
	key := target{d.GVK().GroupKind(), o.Target}
	if first, taken := r.targets[key]; taken {
		r.fail(u, fmt.Errorf("downstream %s: %s %s already follows from %s: the two would conflict", d.Name, d.Config.Kind,
			o.Target, first))
		return
	}
	if r.targets == nil {
		r.targets = map[target]string{}
	}
	r.targets[key] = u.String()
	document, err := c.Pipeline.Document(desired, o.Object, u.Object, in, nil)
	if err != nil {
		r.fail(u, err)
		return
	}
	r.Documents = append(r.Documents, document)
}

func (r *Rendering) fail(u Upstream, err error) {
	r.Errs = append(r.Errs, fmt.Errorf("%s: %w", u, err))
}

func (r *Rendering) note(u Upstream, format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", u, fmt.Sprintf(format, args...)))
}
