package offline

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/offline"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// rendering gathers the documents of several upstreams, and everything that is wrong with any of them.
type rendering struct {
	ctx       context.Context
	configs   []compile.Compiled
	namespace string        // -n; empty where it was not given
	given     offline.Given // from --inputs

	documents []map[string]any
	notes     []string
	errs      []error
	targets   map[target]string // which upstream a target belongs to
}

// target is an object that a downstream asks for.
type target struct {
	kind schema.GroupKind
	at   operator.Ref
}

// add renders an upstream by every config that watches its kind.
func (r *rendering) add(u command.Upstream) {
	gvk := u.Object.GroupVersionKind()
	watched := false
	for _, c := range r.configs {
		if c.Pipeline.Upstream.GVK != gvk {
			continue
		}
		watched = true
		object, err := offline.Complete(u.Object, c.Pipeline.Renderer, r.namespace)
		if err != nil {
			r.fail(u, err)
			return
		}
		r.addDownstreams(c, command.Upstream{Object: object, Where: u.Where})
	}
	if !watched {
		r.fail(u, fmt.Errorf("no config watches %s of %s: %s", gvk.Kind, gvk.GroupVersion(), offline.WatchedKinds(r.configs)))
	}
}

// addDownstreams renders the downstreams of an upstream, as in an empty cluster.
func (r *rendering) addDownstreams(c compile.Compiled, u command.Upstream) {
	p := c.Pipeline
	if why := offline.Unselected(p.Renderer, u.Object); why != "" {
		r.note(u, "nothing follows: %s", why)
		return
	}
	in := r.given.InputsFor(r.ctx, p.Renderer, u.Object)
	desired := p.Render(r.ctx, u.Object, in)
	decision := decide.Decide(p.Settings,
		operator.Input{Upstream: u.Object, Desired: desired, Selected: true, Facts: make([]operator.Facts, len(desired.Objects))},
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
func (r *rendering) document(c compile.Compiled, u command.Upstream, in desired.Inputs, desired *operator.Desired, o operator.Outcome) {
	d := c.Pipeline.Downstreams[o.Downstream]
	key := target{d.GVK().GroupKind(), o.Target}
	if first, taken := r.targets[key]; taken {
		r.fail(u, fmt.Errorf("downstream %s: %s %s already follows from %s: the two would conflict", d.Name, d.Config.Kind,
			o.Target, first))
		return
	}
	r.targets[key] = u.String()
	document, err := c.Pipeline.Document(desired, o.Object, u.Object, in, nil)
	if err != nil {
		r.fail(u, err)
		return
	}
	r.documents = append(r.documents, document)
}

func (r *rendering) fail(u command.Upstream, err error) {
	r.errs = append(r.errs, fmt.Errorf("%s: %w", u, err))
}

func (r *rendering) note(u command.Upstream, format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%s: %s", u, fmt.Sprintf(format, args...)))
}
