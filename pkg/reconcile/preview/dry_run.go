package preview

import (
	"cmp"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/attempt"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// dryRun is a reconciliation that writes nothing. It takes the same steps as any other, except for the upstream's
// finalizer, status and events; the API server's response to a dry run counts as what it would have stored.
type dryRun struct {
	*attempt.Attempt
	options Options
	// results are what came of the last action at each place.
	results map[memory.Place]act.Result
	finding *Finding
	// last is the final decision.
	last operator.Decision
	// changes are the changes of desired objects that would be written, by index; leftovers those of objects that are left
	// over, by uid.
	changes   map[int]*Change
	leftovers map[types.UID]*Change
	// after are the objects as they would be after the write, by the index of the desired object.
	after map[int]*drift.Live
	// before are the objects as they were read, by uid.
	before map[types.UID]*unstructured.Unstructured
	// later says which values of a paused upstream are lost once it is resumed, by the index of the desired object.
	later map[int]string
}

// Options are the options of a preview.
type Options struct {
	// Client makes dry runs.
	Client *apply.Client
	// Documents makes changes contain the whole objects, before and after: one more read for each object that would
	// change.
	Documents bool
}

// Of is what an attempt would do. isLeftOver reports whether the upstream, which is not selected, keeps its
// downstreams. It writes nothing.
func Of(ctx context.Context, a *attempt.Attempt, o Options, isLeftOver func() bool) (*Finding, error) {
	t := &dryRun{Attempt: a, options: o, results: map[memory.Place]act.Result{}, changes: map[int]*Change{},
		leftovers: map[types.UID]*Change{},
		after:     map[int]*drift.Live{}, before: map[types.UID]*unstructured.Unstructured{},
		later: map[int]string{},
		finding: &Finding{Operator: a.Name, Ref: a.Ref, Upstream: a.Upstream, Selected: a.Selected,
			Match: a.Pipeline.Match(a.Upstream)}}
	a.API = o.Client
	a.OnResult = func(res act.Result) { t.results[memory.At(res.Downstream, res.Target)] = res }
	if a.Upstream.GetDeletionTimestamp() != nil {
		return t.finding, t.previewDeletion(ctx)
	}
	t.finding.Desired, t.finding.Inputs = a.Memory.Desired(), a.InputsRead()
	if !a.Selected && isLeftOver() {
		t.leaveAll(operator.StateLeftover, Leftover, "the config does not select its upstream")
		t.addLeftovers(nil)
	} else {
		t.decide(ctx)
		t.addChanges()
	}
	t.findForgotten(ctx)
	return t.finding, nil
}

// decide decides and makes dry runs until nothing is left to do.
func (t *dryRun) decide(ctx context.Context) {
	t.FindNamedOwners(ctx)
	t.FindUnseen(ctx)
	t.findLater(ctx)
	for round := range attempt.MaxRounds {
		in := t.GatherCached(ctx)
		t.assumeWritten(&in)
		d := decide.Decide(t.Pipeline.Settings, in)
		if round == 0 {
			d = t.countForGuard(ctx, d)
			t.finding.Decision = operator.Decision{Outcomes: slices.Clone(d.Outcomes),
				Leftovers: slices.Clone(d.Leftovers), Finalizer: d.Finalizer}
		}
		if d.Finalizer != operator.FinalizerLeave {
			t.finding.Finalizer, d.Finalizer = d.Finalizer, operator.FinalizerLeave
		}
		t.last = d
		if t.dropDone(&d); !d.Pending() {
			return
		}
		t.readWhole(ctx, d)
		acted := t.CarryOut(ctx, &d, in)
		if !t.readAnswers(ctx, d, in) && !acted {
			return
		}
	}
}

// findLater finds which values of a paused upstream are lost once it is resumed.
func (t *dryRun) findLater(ctx context.Context) {
	up, paused := Resumed(t.Pipeline.Settings, t.Upstream)
	if !paused {
		return
	}
	was := t.Upstream
	t.Upstream = up
	for _, o := range decide.Decide(t.Pipeline.Settings, t.GatherCached(ctx)).Outcomes {
		if o.LostValues != "" {
			t.later[o.Object] = "once the upstream is resumed: " + o.LostValues
		}
	}
	t.Upstream = was
}

// countForGuard counts what the config's guard counts, by the same dry runs. It returns the decision after them.
func (t *dryRun) countForGuard(ctx context.Context, d operator.Decision) operator.Decision {
	if t.Pipeline.Config.Guard == nil {
		return d
	}
	d, c := Count(ctx, t.Attempt, d)
	t.finding.GuardCount, t.finding.GuardDigest = c.Count, c.Digest
	return d
}

// assumeWritten replaces the live objects by what the writes would have left.
func (t *dryRun) assumeWritten(in *operator.Input) {
	for i, live := range t.after {
		if i >= len(in.Facts) {
			continue
		}
		p := live.P
		f := &in.Facts[i]
		f.Live, f.Trusted, f.Baseline, f.Spaced = live, true, &p, 0
		in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own operator.Owned) bool { return own.Live.UID == live.UID })
	}
}

// dropDone removes the actions for objects that are done.
func (t *dryRun) dropDone(d *operator.Decision) {
	d.Outcomes, d.Leftovers = slices.Clone(d.Outcomes), slices.Clone(d.Leftovers)
	for i := range d.Outcomes {
		if t.after[d.Outcomes[i].Object] != nil {
			d.Outcomes[i].Action = operator.ActionNone
		}
	}
	for i := range d.Leftovers {
		if t.leftovers[d.Leftovers[i].UID] != nil {
			d.Leftovers[i].Action = operator.ActionNone
		}
	}
}

// readWhole reads the objects that are about to be acted on, if whole ones are wanted. A change of one that cannot be
// read has no Before.
func (t *dryRun) readWhole(ctx context.Context, d operator.Decision) {
	if !t.options.Documents {
		return
	}
	for _, o := range append(slices.Clone(d.Outcomes), d.Leftovers...) {
		if o.Action == operator.ActionNone || o.Live == nil || t.before[o.Live.UID] != nil {
			continue
		}
		obj, err := t.API.Get(ctx, act.Target(t.Pipeline.Settings, o.Downstream,
			operator.Ref{Namespace: o.Live.Namespace, Name: o.Live.Name}))
		if err == nil && obj.GetUID() == o.Live.UID {
			t.before[o.Live.UID] = obj
		}
	}
}

// change starts the description of an outcome.
func (t *dryRun) change(o operator.Outcome, action Action) *Change {
	d := t.Pipeline.Downstreams[o.Downstream]
	c := &Change{Index: o.Downstream, Downstream: d.Name, Object: o.Object, Kind: d.Kind.GVK, Target: o.Target,
		Action: action, State: o.State, Reason: o.Message,
		Live: o.Live, Theirs: o.Theirs, Risk: cmp.Or(o.LostValues, t.later[o.Object])}
	if o.Live != nil {
		c.Before = t.before[o.Live.UID]
	}
	if c.Risk == "" && decide.IsHolder(d.Kind.GVK.ToAPIVersionAndKind()) {
		c.Risk = riskOfHolder(o, action, d.Config.DeletionPolicy)
	}
	return c
}

// leftover is change for an object that is at no target.
func (t *dryRun) leftover(o operator.Outcome, action Action) *Change {
	c := t.change(o, action)
	c.Leftover, t.leftovers[o.UID] = true, c
	return c
}

// riskOfHolder says what is lost with what contains other objects, if it goes, now or later; empty if it does not.
func riskOfHolder(o operator.Outcome, action Action, policy config.DeletionPolicy) string {
	switch {
	case o.Live == nil || o.Live.Deleting:
		return ""
	case action == Delete, action == Supersede, action == Recreate:
		return "it is deleted with everything in it, whoever made that"
	case action == Leave && policy != config.DeletionOrphan && (o.GoesLater || o.State == operator.StateSuperseded):
		return "once nothing holds it, it is deleted with everything in it, whoever made that"
	}
	return ""
}

// addChanges adds the changes to the finding.
func (t *dryRun) addChanges() {
	for _, o := range t.last.Outcomes {
		c := t.changes[o.Object]
		isStale := o.State == operator.StateStale
		switch {
		case c == nil || c.Action == Leave && o.State == operator.StateInSync || c.Action == None && isStale:
			c = t.change(o, IdleActionOf(o))
		case isStale && c.Note == "":
			c.Note = o.Message
		}
		if f := t.Failures[o.Object]; f != nil && c.Failure == nil && !c.Action.Writes() {
			c.Failure, c.Action = f, Refuse
		}
		c.State = stateOf(c, o)
		aside := marks.KeepAside(t.Pipeline.Settings, c.Before, c.After)
		c.Drift = slices.DeleteFunc(c.Drift, func(d drift.Difference) bool {
			return d.Want == nil && slices.ContainsFunc(aside, func(p fieldpath.Path) bool {
				return p.String() == d.Path.String()
			})
		})
		t.finding.Changes = append(t.finding.Changes, *c)
	}
	t.addLeftovers(t.last.Leftovers)
}

// stateOf is the state in which a change was first decided, or the last one if it only needed a dry run.
func stateOf(c *Change, o operator.Outcome) operator.State {
	if c.Action == Leave {
		c.Reason = o.Message
		return o.State
	}
	return c.State
}

// addLeftovers adds what would be deleted or released, and what would be kept though it is not desired.
func (t *dryRun) addLeftovers(list []operator.Outcome) {
	for _, o := range list {
		if t.leftovers[o.UID] == nil {
			t.leftover(o, IdleActionOf(o))
		}
	}
	all := make([]*Change, 0, len(t.leftovers))
	for _, c := range t.leftovers {
		all = append(all, c)
	}
	slices.SortFunc(all, CompareChanges)
	for _, c := range all {
		t.finding.Changes = append(t.finding.Changes, *c)
	}
}

// findForgotten reads objects that the status records and that belong to no downstream of the config, whatever marks
// they have.
func (t *dryRun) findForgotten(ctx context.Context) {
	for _, r := range append(t.Pipeline.Forgotten(t.Upstream), t.Unrecorded()...) {
		if slices.ContainsFunc(t.finding.Changes, func(c Change) bool { return c.Live != nil && c.Live.UID == r.UID }) {
			continue
		}
		kind, err := t.Lookup.Kind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
		if err != nil {
			continue // a kind that is not served has no objects
		}
		obj, err := t.API.Get(ctx, apply.Target{GVR: kind.GVR, Namespace: r.Namespace, Name: r.ObjectName})
		switch {
		case errors.Is(err, apply.ErrGone), err == nil && r.UID != "" && obj.GetUID() != r.UID:
			continue
		case err != nil:
			t.finding.Forgotten = append(t.finding.Forgotten, Forgotten{Recorded: r, Note: apply.Classify(err).Message})
		default:
			t.finding.Forgotten = append(t.finding.Forgotten,
				Forgotten{Recorded: r, AppliedBy: applierBeside(obj, t.Pipeline.Config.Conventions.FieldManagers())})
		}
	}
}

// applierBeside is a manager beside ours that applies an object: another operator may have adopted it. Empty for none.
func applierBeside(obj *unstructured.Unstructured, ours []string) string {
	for _, m := range obj.GetManagedFields() {
		if m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && !slices.Contains(ours, m.Manager) {
			return m.Manager
		}
	}
	return ""
}
