package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// dryRun is a reconciliation that writes nothing. It takes the same steps as one that does, but for the upstream's finalizer, status
// and events; what the API server answers to a dry run stands for what it would have stored.
type dryRun struct {
	*reconciliation
	options PreviewOptions
	answers *apply.DryRun
	finding *Finding
	// last is the decision that nothing could be done about any more.
	last pipeline.Decision
	// acts are the changes of downstreams that would be written, by index; left those of leftovers, by uid.
	acts map[int]*Change
	left map[types.UID]*Change
	// after are the objects as they would be after the write, by downstream.
	after map[int]*drift.Live
	// before are the objects as they were read, by uid.
	before map[types.UID]*unstructured.Unstructured
}

// PreviewOptions are how a reconciler looks at what it would do.
type PreviewOptions struct {
	// Client makes the client of one reconciliation, whose dry runs are answered into the argument.
	Client func(*apply.DryRun) *apply.Client
	// Documents has changes carry the objects whole, before and after: one read more for each object that would change.
	Documents bool
}

// Preview looks at one upstream as Reconcile does and tells what would be done. It writes nothing, remembers nothing, and
// returns nil where there is nothing to tell.
func (r *Reconciler) Preview(ctx context.Context, ref pipeline.Ref, o PreviewOptions) (*Finding, error) {
	l, err := r.begin(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("inspecting %s %s: %w", r.Pipeline.Upstream.GVK.Kind, ref, err)
	}
	if l == nil {
		return nil, nil
	}
	defer r.memory.forget(ref)
	t := &dryRun{reconciliation: l, options: o, answers: apply.NewDryRun(), acts: map[int]*Change{}, left: map[types.UID]*Change{},
		after: map[int]*drift.Live{}, before: map[types.UID]*unstructured.Unstructured{},
		finding: &Finding{Operator: r.Name, Ref: ref, Upstream: l.upstream, Selected: l.selected}}
	l.client = o.Client(t.answers)
	if l.upstream.GetDeletionTimestamp() != nil {
		return t.finding, t.deletion(ctx)
	}
	t.finding.Desired, t.finding.Inputs = l.record.desired, l.inputsRead()
	if !l.selected && l.isLeftOver() {
		t.unselected()
	} else {
		t.walk(ctx)
		t.conclude()
	}
	t.findForgotten(ctx)
	return t.finding, nil
}

// walk decides and makes dry runs until there is nothing left to ask.
func (t *dryRun) walk(ctx context.Context) {
	t.findUnseen(ctx)
	for round := range maxRounds {
		in := t.gather(ctx)
		t.overlay(&in)
		d := t.Pipeline.Decide(in)
		if round == 0 {
			d = t.countForGuard(ctx, d)
			t.finding.Decision = pipeline.Decision{Outcomes: slices.Clone(d.Outcomes), Leftovers: slices.Clone(d.Leftovers), Finalizer: d.Finalizer}
		}
		if d.Finalizer != pipeline.FinalizerLeave {
			t.finding.Finalizer, d.Finalizer = d.Finalizer, pipeline.FinalizerLeave
		}
		t.last = d
		if t.rest(&d); !d.Pending() {
			return
		}
		t.read(ctx, d)
		acted := t.act(ctx, &d, in)
		if !t.learn(ctx, d, in) && !acted {
			return
		}
	}
}

// countForGuard counts what the config's guard counts, with the same dry runs. It returns the decision after them.
func (t *dryRun) countForGuard(ctx context.Context, d pipeline.Decision) pipeline.Decision {
	if t.Pipeline.Config.Guard == nil {
		return d
	}
	d, c := t.count(ctx, d)
	t.finding.GuardCount, t.finding.GuardDigest = c.GuardCount, c.Digest
	return d
}

// overlay puts what the writes would have left in the place of what stands.
func (t *dryRun) overlay(in *pipeline.Input) {
	for i, live := range t.after {
		if i >= len(in.Facts) {
			continue
		}
		p := live.P
		f := &in.Facts[i]
		f.Live, f.Trusted, f.Baseline, f.Spaced = live, true, &p, 0
		in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own pipeline.Owned) bool { return own.Live.UID == live.UID })
	}
}

// rest takes the actions away from what was acted on already.
func (t *dryRun) rest(d *pipeline.Decision) {
	d.Outcomes, d.Leftovers = slices.Clone(d.Outcomes), slices.Clone(d.Leftovers)
	for i := range d.Outcomes {
		if t.after[d.Outcomes[i].Downstream] != nil {
			d.Outcomes[i].Action = pipeline.ActionNone
		}
	}
	for i := range d.Leftovers {
		if t.left[d.Leftovers[i].UID] != nil {
			d.Leftovers[i].Action = pipeline.ActionNone
		}
	}
}

// read gets the objects that are about to be acted on, where whole ones are wanted. One that cannot be read is told
// without what stands now.
func (t *dryRun) read(ctx context.Context, d pipeline.Decision) {
	if !t.options.Documents {
		return
	}
	for _, o := range append(slices.Clone(d.Outcomes), d.Leftovers...) {
		if o.Action == pipeline.ActionNone || o.Live == nil || t.before[o.Live.UID] != nil {
			continue
		}
		obj, err := t.client.Get(ctx, t.target(o.Downstream, pipeline.Ref{Namespace: o.Live.Namespace, Name: o.Live.Name}))
		if err == nil && obj.GetUID() == o.Live.UID {
			t.before[o.Live.UID] = obj
		}
	}
}

// change begins the description of an outcome.
func (t *dryRun) change(o pipeline.Outcome, action ChangeAction) *Change {
	d := t.Pipeline.Downstreams[o.Downstream]
	c := &Change{Index: o.Downstream, Downstream: d.Name, Kind: d.Kind.GVK, Target: o.Target, Action: action, State: o.State, Reason: o.Message,
		Live: o.Live, Theirs: o.Theirs}
	if o.Live != nil {
		c.Before = t.before[o.Live.UID]
	}
	return c
}

// conclude puts the finding together.
func (t *dryRun) conclude() {
	for _, o := range t.last.Outcomes {
		c := t.acts[o.Downstream]
		if c == nil || c.Action == ChangeLeave && o.State == pipeline.StateInSync {
			c = t.change(o, idleActionOf(o))
		}
		if f := t.failures[o.Downstream]; f != nil && c.Failure == nil && !c.Action.Writes() {
			c.Failure, c.Action = f, ChangeRefuse
		}
		c.State = stateOf(c, o)
		t.finding.Changes = append(t.finding.Changes, *c)
	}
	t.addLeftovers(t.last.Leftovers)
}

// stateOf keeps the word that a change was decided with, and takes the later one for what only had to be asked about.
func stateOf(c *Change, o pipeline.Outcome) pipeline.State {
	if c.Action == ChangeLeave {
		c.Reason = o.Message
		return o.State
	}
	return c.State
}

// addLeftovers lists what goes, and what would stay though nothing asks for it.
func (t *dryRun) addLeftovers(list []pipeline.Outcome) {
	for _, o := range list {
		if t.left[o.UID] == nil {
			c := t.change(o, idleActionOf(o))
			c.Leftover = true
			t.left[o.UID] = c
		}
	}
	all := make([]*Change, 0, len(t.left))
	for _, c := range t.left {
		all = append(all, c)
	}
	slices.SortFunc(all, CompareChanges)
	for _, c := range all {
		t.finding.Changes = append(t.finding.Changes, *c)
	}
}

// findForgotten reads what the status names and no downstream of the config looks at.
func (t *dryRun) findForgotten(ctx context.Context) {
	for _, r := range t.Pipeline.Forgotten(t.upstream) {
		if slices.ContainsFunc(t.finding.Changes, func(c Change) bool { return c.Live != nil && c.Live.UID == r.UID }) {
			continue
		}
		kind, err := t.Host.Kind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
		if err != nil {
			continue // a kind that is not served has no objects
		}
		obj, err := t.client.Get(ctx, apply.Target{GVR: kind.GVR, Namespace: r.Namespace, Name: r.ObjectName})
		switch {
		case errors.Is(err, apply.ErrGone), err == nil && r.UID != "" && obj.GetUID() != r.UID:
			continue
		case err != nil:
			t.finding.Forgotten = append(t.finding.Forgotten, Forgotten{Recorded: r, Unread: apply.Classify(err).Message})
		default:
			t.finding.Forgotten = append(t.finding.Forgotten, Forgotten{Recorded: r})
		}
	}
}
