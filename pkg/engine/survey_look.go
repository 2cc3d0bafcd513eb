package engine

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

// tour is a look that writes nothing. It takes the same steps as one that does, but for the upstream's finalizer, status
// and events; what the API server answers to a dry run stands for what it would have stored.
type tour struct {
	*look
	survey  *Survey
	answers *apply.DryRun
	finding *Finding
	// last is the decision that nothing could be done about any more.
	last pipeline.Decision
	// acts are the changes of downstreams that would be written, by index; left those of leftovers, by uid.
	acts map[int]*Change
	left map[types.UID]*Change
	// stands are the objects as they would be after the write, by downstream.
	stands map[int]*drift.Live
	// before are the objects as they were read, by uid.
	before map[types.UID]*unstructured.Unstructured
}

// Look looks at one upstream. It returns nil where there is nothing to tell.
func (v *Survey) Look(ctx context.Context, ref pipeline.Ref) (*Finding, error) {
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l, err := v.begin(looking, ref)
	if err != nil {
		return nil, fmt.Errorf("looking at %s %s: %w", v.pipeline.Upstream.GVK.Kind, ref, err)
	}
	if l == nil {
		return nil, nil
	}
	defer v.memory.forget(ref)
	t := &tour{look: l, survey: v, answers: apply.NewDryRun(), acts: map[int]*Change{}, left: map[types.UID]*Change{},
		stands: map[int]*drift.Live{}, before: map[types.UID]*unstructured.Unstructured{},
		finding: &Finding{Operator: v.name, Ref: ref, Upstream: l.upstream, Selected: l.selected}}
	l.client = v.dryClient(t.answers)
	if l.upstream.GetDeletionTimestamp() != nil {
		err = t.deletion(looking)
	} else {
		t.finding.Wish, t.finding.Inputs = l.record.wish, l.inputsRead()
		t.walk(looking)
		t.conclude()
		t.findForgotten(looking)
	}
	if ctx.Err() != nil { // what was cut short says nothing about the upstream
		return nil, ctx.Err()
	}
	return t.finding, err
}

// walk decides and makes dry runs until there is nothing left to ask.
func (t *tour) walk(ctx context.Context) {
	t.findUnseen(ctx)
	for round := range maxRounds {
		in := t.gather(ctx)
		t.overlay(&in)
		d := t.pipeline.Decide(in)
		if round == 0 {
			d = t.guarded(ctx, d)
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

// guarded counts what the config's guard does, with the questions that it asks. It returns the decision as it is then.
func (t *tour) guarded(ctx context.Context, d pipeline.Decision) pipeline.Decision {
	if t.pipeline.Config.Guard == nil {
		return d
	}
	d, c := t.count(ctx, d)
	t.finding.Guarded = GuardCount{Standing: c.standing, Changed: c.changed}
	return d
}

// overlay puts what the writes would have left in the place of what stands.
func (t *tour) overlay(in *pipeline.Input) {
	for i, live := range t.stands {
		if i >= len(in.Facts) {
			continue
		}
		p := live.P
		f := &in.Facts[i]
		f.Live, f.Known, f.Trusted, f.Baseline, f.Repairs = live, true, true, &p, 0
		in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own pipeline.Owned) bool { return own.Live.UID == live.UID })
	}
}

// rest takes the actions away from what was acted on already.
func (t *tour) rest(d *pipeline.Decision) {
	d.Outcomes, d.Leftovers = slices.Clone(d.Outcomes), slices.Clone(d.Leftovers)
	for i := range d.Outcomes {
		if t.stands[d.Outcomes[i].Downstream] != nil {
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
func (t *tour) read(ctx context.Context, d pipeline.Decision) {
	if !t.survey.surveyor.options.Documents {
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

// learn takes in what the API server answered. It tells whether deciding again may come to something new.
func (t *tour) learn(ctx context.Context, d pipeline.Decision, in pipeline.Input) bool {
	news := false
	for _, o := range d.Outcomes {
		at := t.target(o.Downstream, o.Target)
		switch {
		case o.Action == pipeline.ActionNone || t.acts[o.Downstream] != nil && t.acts[o.Downstream].Failure != nil:
		case t.failures[o.Downstream] != nil:
			news = t.refusedBy(at, o, in) || news
		case o.Action == pipeline.ActionSettle:
			t.settledAs(o, t.answers.Answer(at))
		case o.Action == pipeline.ActionDelete:
			t.recreated(ctx, at, o, in)
			news = true
		case o.Action != pipeline.ActionInspect && t.answers.Error(at) == nil && t.answers.Answer(at) != nil:
			t.answered(o, t.answers.Answer(at), in)
			news = true
		}
	}
	for _, o := range d.Leftovers {
		if o.Action != pipeline.ActionNone && t.left[o.UID] == nil {
			news = t.leftOver(o) || news
		}
	}
	return news
}

// change begins the description of an outcome.
func (t *tour) change(o pipeline.Outcome, action ChangeAction) *Change {
	d := t.pipeline.Downstreams[o.Downstream]
	c := &Change{Index: o.Downstream, Downstream: d.Name, Kind: d.Kind.GVK, Target: o.Target, Action: action, State: o.State, Reason: o.Message,
		Live: o.Live, Theirs: o.Theirs}
	if o.Live != nil {
		c.Before = t.before[o.Live.UID]
	}
	return c
}

// answered is about a write that the API server would take.
func (t *tour) answered(o pipeline.Outcome, answer *unstructured.Unstructured, in pipeline.Input) {
	i := o.Downstream
	c := t.change(o, actionOf(o))
	c.Document = t.document(o, in)
	live, err := t.pipeline.Downstreams[i].View.Live(answer)
	if err != nil {
		return // there is an answer, so there is an object
	}
	live.Former, live.Outdated = false, false
	c.After = answer
	t.stands[i], t.acts[i] = live, c
	if o.Live != nil && o.Action == pipeline.ActionApply && !o.Live.Former && live.P == o.Live.P && live.Hash == o.Live.Hash && !o.Live.Extra {
		c.Action, c.State, c.Reason = ChangeNone, pipeline.StateInSync, "the API server spells it in its own way; an apply would change nothing"
		return
	}
	t.explain(c, answer)
}

// explain lists which of our fields differ.
func (t *tour) explain(c *Change, answer *unstructured.Unstructured) {
	if c.Before == nil || !t.survey.surveyor.options.Documents {
		return
	}
	desired := c.Document
	if answer != nil {
		desired, _ = drift.Project(answer, t.pipeline.Config.Conventions.FieldManager)
	}
	c.Drift = drift.Changed(desired, c.Before, &t.pipeline.Downstreams[c.Index].View)
}

// settledAs notes what drift.policy: Report leaves alone.
func (t *tour) settledAs(o pipeline.Outcome, answer *unstructured.Unstructured) {
	if answer == nil {
		return
	}
	c := t.change(o, ChangeLeave)
	c.After = answer
	t.explain(c, answer)
	t.acts[o.Downstream] = c
}

// recreated is about an object that would be deleted and made again. What it would be is asked under another name, since
// its own is taken.
func (t *tour) recreated(ctx context.Context, at apply.Target, o pipeline.Outcome, in pipeline.Input) {
	c := t.change(o, ChangeRecreate)
	c.Document = t.document(o, in)
	if made, err := t.client.DryRunCreate(ctx, at, c.Document); err == nil {
		made.SetName(at.Name)
		made.SetGenerateName("")
		c.After = made
	} else {
		c.After = &unstructured.Unstructured{Object: c.Document}
		c.Note = "what the API server would make of it is not known: " + apply.Classify(err).Message
	}
	t.acts[o.Downstream], t.stands[o.Downstream] = c, t.assumed(o, c.Document, in)
}

// refusedBy is about a write that failed. Where that says nothing about the write itself, the decision stands, and its
// consequences are worked out without an answer.
func (t *tour) refusedBy(at apply.Target, o pipeline.Outcome, in pipeline.Input) bool {
	i := o.Downstream
	note := unasked(t.answers.Error(at), at)
	if note == "" {
		c := t.change(o, ChangeRefuse)
		c.Failure = t.failures[i]
		c.Document = t.document(o, in)
		t.acts[i] = c
		return false
	}
	delete(t.failures, i)
	c := t.change(o, actionOf(o))
	if o.Live != nil && o.Live.Former {
		note += "; what of the fields that are taken over would go is not shown"
	}
	c.Note, c.Document = note, t.document(o, in)
	t.acts[i], t.stands[i] = c, t.assumed(o, c.Document, in)
	if o.Live == nil {
		c.After = &unstructured.Unstructured{Object: c.Document}
		return true
	}
	if t.explain(c, nil); c.Before != nil {
		c.After = patched(c.Before, c.Drift, c.Document)
		if len(c.Drift) == 0 {
			c.Action, c.State, c.Reason = ChangeNone, pipeline.StateInSync, ""
		}
	}
	return true
}

// unasked says why a refused dry run tells nothing about the write; empty where it does.
func unasked(err error, at apply.Target) string {
	switch f := apply.Classify(err); {
	case err == nil:
		return ""
	case f.Reason == apply.ReasonForbidden:
		return "not asked of the API server, since you may not make dry runs: " + f.Message
	case f.Reason == apply.ReasonNamespaceNotFound:
		return fmt.Sprintf("not asked of the API server: namespace %s does not exist yet", at.Namespace)
	case apply.DryRunUnsupported(err):
		return "not asked of the API server: " + f.Message
	}
	return ""
}

// document is what would be sent.
func (t *tour) document(o pipeline.Outcome, in pipeline.Input) map[string]any {
	if o.Action == pipeline.ActionDelete {
		o.Live = nil // the new one begins anew
	}
	doc, err := t.look.document(in.Wish, o.Downstream, o.Live)
	if err != nil {
		return nil // it was rendered a moment ago
	}
	return doc
}

// assumed is the object as it would be if the API server changed nothing of the document.
func (t *tour) assumed(o pipeline.Outcome, doc map[string]any, in pipeline.Input) *drift.Live {
	u := (&unstructured.Unstructured{Object: doc}).DeepCopy()
	u.SetUID(o.UID)
	live, err := t.pipeline.Downstreams[o.Downstream].View.Live(u)
	if err != nil {
		live = &drift.Live{}
	}
	w := in.Wish.Downstreams[o.Downstream]
	live.Namespace, live.Name = w.Target.Namespace, w.Target.Name
	live.P, live.Hash, live.Managed, live.Extra = w.Sum, w.Hash, true, false
	return live
}

// leftOver is about an object that stands at no target and would go.
func (t *tour) leftOver(o pipeline.Outcome) bool {
	c := t.change(o, actionOf(o))
	c.Leftover = true
	t.left[o.UID] = c
	at := t.target(o.Downstream, o.Target)
	if err := t.answers.Error(at); err != nil && t.failures[o.Downstream] != nil {
		c.Note = unasked(err, at)
		if c.Note == "" {
			c.Action, c.Failure = ChangeRefuse, t.failures[o.Downstream]
			return false
		}
		delete(t.failures, o.Downstream)
		t.record.letGo(o.UID, t.now)
	}
	if answer := t.answers.Answer(at); o.Action == pipeline.ActionRelease && answer != nil {
		c.After = answer
	}
	return true
}

// conclude puts the finding together.
func (t *tour) conclude() {
	for _, o := range t.last.Outcomes {
		c := t.acts[o.Downstream]
		if c == nil || c.Action == ChangeLeave && o.State == pipeline.StateInSync {
			c = t.change(o, restOf(o))
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
func (t *tour) addLeftovers(list []pipeline.Outcome) {
	for _, o := range list {
		if t.left[o.UID] == nil {
			c := t.change(o, restOf(o))
			c.Leftover = true
			t.left[o.UID] = c
		}
	}
	all := make([]*Change, 0, len(t.left))
	for _, c := range t.left {
		all = append(all, c)
	}
	slices.SortFunc(all, compareChanges)
	for _, c := range all {
		t.finding.Changes = append(t.finding.Changes, *c)
	}
}

// deletion tells what would happen to the objects of an upstream that is being deleted.
func (t *tour) deletion(ctx context.Context) error {
	if !t.hasFinalizer() {
		return nil // owner references take along what there is
	}
	in, err := t.gatherDeletion(ctx)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s %s: %w", t.pipeline.Upstream.GVK.Kind, t.ref, err)
	}
	d := t.pipeline.DecideDeletion(in)
	t.finding.Decision, t.finding.Finalizer = d, d.Finalizer
	t.read(ctx, d)
	if d.HookFirst {
		t.finding.Changes = append(t.finding.Changes, t.hookChange(*d.Hook))
		t.waitForHook()
	}
	for _, o := range d.Leftovers {
		c := t.change(o, actionOf(o))
		c.Leftover = true
		switch {
		case o.Live.Deleting:
			c.Action = ChangeWait
		case o.Action == pipeline.ActionNone:
			c.Note = "by its owner reference"
		}
		t.left[o.UID] = c
	}
	t.addLeftovers(nil)
	return nil
}

// waitForHook tells of the downstreams whose turn comes after deletion.before.
func (t *tour) waitForHook() {
	for _, own := range t.pipeline.Leftovers(nil, t.shownByDownstream(), t.recorded()) {
		o := pipeline.Outcome{Downstream: own.Downstream, Live: own.Live, UID: own.Live.UID, State: pipeline.StateWaiting,
			Target: pipeline.Ref{Namespace: own.Live.Namespace, Name: own.Live.Name}, Message: "it stays until " + pipeline.HookName + " is done"}
		c := t.change(o, ChangeWait)
		c.Leftover = true
		t.left[o.UID] = c
	}
}

// hookChange describes what is made before an upstream's downstreams go.
func (t *tour) hookChange(o pipeline.Outcome) Change {
	c := Change{Index: pipeline.HookIndex, Downstream: pipeline.HookName, Kind: t.pipeline.Hook.Object.Kind.GVK, Target: o.Target, Action: ChangeWait, State: o.State,
		Reason: o.Message, Live: o.Live, Theirs: o.Theirs}
	switch o.Action {
	case pipeline.ActionCreate:
		c.Action = ChangeCreate
	case pipeline.ActionDelete:
		c.Action = ChangeDelete
	}
	return c
}

// findForgotten reads what the status names and no downstream of the config looks at.
func (t *tour) findForgotten(ctx context.Context) {
	for _, r := range t.pipeline.Forgotten(t.upstream) {
		if slices.ContainsFunc(t.finding.Changes, func(c Change) bool { return c.Live != nil && c.Live.UID == r.UID }) {
			continue
		}
		kind, err := t.engine.cluster.Kind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
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
