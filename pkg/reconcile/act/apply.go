package act

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// apply updates an existing object to its desired state.
func (a *Actor) apply(ctx context.Context, o operator.Outcome) error {
	i := o.Downstream
	before, err := a.readAhead(ctx, o) // after a takeover, all fields read as ours
	if err != nil {
		return err
	}
	o, taken, err := a.takeOverFields(ctx, o)
	if err != nil {
		return err
	}
	o, held, err := a.readGenerated(ctx, o, taken)
	if errors.Is(err, apply.ErrGone) {
		a.Memory.NoteGone(o.UID, a.Now)
		return nil
	}
	if err != nil {
		return err
	}
	doc, err := a.Document(o.Object, o.Live)
	if err != nil {
		return err
	}
	random, err := a.generatedTexts(ctx, o, held)
	if err != nil {
		return err
	}
	doc = generated.Fill(a.Settings.Downstreams[i], doc, o.Live, held, random)
	version := ""
	if d := a.Settings.Downstreams[i]; generated.SendsInitial(o.Live) || d.View.LacksGenerated(o.Live) || d.OwnsFields() {
		// The value is only correct until another manager takes or sets the field, and the object of others is only free for our fields
		// until another upstream marks it.
		version = o.Live.ResourceVersion
	}
	resp, err := a.applyAt(ctx, o, version, doc)
	resp, err = a.afterTakeOver(ctx, o, taken, doc, resp, err)
	switch {
	case errors.Is(err, apply.ErrGone):
		a.Memory.NoteGone(o.UID, a.Now)
		return nil
	case errors.Is(err, apply.ErrReplaced):
		a.Memory.NoteGone(o.UID, a.Now)
		return a.resolveExisting(ctx, &o, doc)
	case errors.Is(err, apply.ErrConflict) && version != "":
		live, err := a.Client.Get(ctx, a.target(i, o.Target))
		if err != nil {
			return err
		}
		a.rememberResponse(o.Object, live)
		return nil
	case err != nil:
		return a.refused(ctx, o, doc, err)
	}
	a.LostValues(o)
	a.reportApplied(o, before, resp)
	return a.rememberApplied(ctx, o, resp, doc)
}

// rememberApplied remembers what an apply returned: the live object, and the baseline if the API server normalizes values. It
// also removes keys that others added to exclusive fields.
func (a *Actor) rememberApplied(ctx context.Context, o operator.Outcome, resp *unstructured.Unstructured, doc map[string]any) error {
	i := o.Downstream
	d := a.Settings.Downstreams[i]
	live := d.View.Live(resp)
	if extras := extras(a.Settings, i, live, resp, doc, o.State == operator.StateCreate); len(extras) > 0 {
		var err error
		if resp, err = a.Client.Null(ctx, a.target(i, o.Target), live.UID, live.ResourceVersion, extras); err != nil {
			return err
		}
		live = d.View.Live(resp)
	}
	a.Memory.NoteRegained(live.UID)
	a.Memory.Remember(o.Object, live, a.Now)
	t, w := a.Memory.Object(o.Object), &a.In.Desired.Objects[o.Object]
	t.Applied(live.UID, o.Target)
	a.countWrite(o.Object, w.Hash)
	if o.State == operator.StateCreate {
		a.Removals.Forget(memory.At(i, o.Target))
	}
	if live.Hash != w.Hash {
		t.SetChangedBy(fmt.Sprintf("admission changes %s, which holds the hash: exclude it from that webhook or policy", a.Settings.HashKey()))
	}
	var spelled *canonical.Sum
	rewritten := ""
	if live.P != w.Sum {
		sum := live.P
		spelled, rewritten = &sum, drift.Paths(drift.Changed(doc, resp, &d.View))
	}
	isRewritten := t.SetRewritten(rewritten)
	rec := a.recorded(o.Object)
	a.Memory.SetBaseline(o.Object, live.UID, spelled, rec != nil && rec.Baseline != "")
	if needsVerification(a, o, live, resp, doc, isRewritten) {
		return a.verify(ctx, o, resp, doc)
	}
	return nil
}

// countWrite counts a write to object k of the desired state, for that hash; "" after a deletion.
func (a *Actor) countWrite(k int, hash string) {
	a.Memory.Object(k).Contest.Edit().Write(a.Memory.Cause(), hash, a.Spacing, a.Now)
	countItems(a, a.In.Desired.Objects[k].Downstream)
}

// reportApplied reports an apply to an existing object: a repair if others had changed the object, else an update. It reports nothing if
// the apply changed nothing: then there was no drift. read is the object before; nil if it was not read.
func (a *Actor) reportApplied(o operator.Outcome, read, resp *unstructured.Unstructured) {
	var changed []drift.Difference
	if read != nil {
		changed = a.changedFields(o, read, resp)
	}
	if o.State == operator.StateUpdate {
		a.Updated(o, changed)
		return
	}
	if o.Live != nil && o.Live.ResourceVersion == resp.GetResourceVersion() {
		return
	}
	t := a.Memory.Object(o.Object)
	changedBy := t.Unusual.Get().ChangedBy
	t.Applied(resp.GetUID(), o.Target)
	t.SetChangedBy(changedBy)
	manager := a.Settings.Config.Conventions.FieldManager
	if read != nil && drift.IsOwnChange(changed, manager) {
		o.Message = "the names in conventions have changed, or the version of the upstream"
		a.Updated(o, changed)
		return
	}
	if read != nil {
		t.SetChangedBy(drift.Explain(changed, manager))
	}
	counters.Drift(a.Name, a.Settings.Downstreams[o.Downstream].Name)
	a.Repaired(o, changed)
}

// readAhead reads the object before an apply if that is worth a request: to name who changed which fields, if events are wanted
// or a writer keeps reverting us, and to notice fields that stay because another manager owns them too.
func (a *Actor) readAhead(ctx context.Context, o operator.Outcome) (*unstructured.Unstructured, error) {
	again := a.Memory.Object(o.Object).Contest.Get().Unsettled > 0
	explain := o.State == operator.StateRepair && (a.Settings.Config.Events != config.EventsNone || again)
	shared := o.State == operator.StateUpdate && o.Live.CoOwned
	if !explain && !shared {
		return nil, nil
	}
	live, err := a.Client.Get(ctx, a.target(o.Downstream, o.Target))
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return live, err
}

// changedFields compares the object before an apply with the result, not with the document: values that the API server
// normalizes do not count as changes. It reports the fields that an update should have removed.
func (a *Actor) changedFields(o operator.Outcome, read, resp *unstructured.Unstructured) []drift.Difference {
	manager := a.Settings.Config.Conventions.FieldManager
	applied, _ := drift.Project(resp, manager)
	if o.State == operator.StateUpdate {
		a.LostFields(o, drift.LostFields(read, resp, manager))
	}
	return drift.Changed(applied, read, &a.Settings.Downstreams[o.Downstream].View)
}

// applyAt is the apply of an update. Others may not hold our marks: if they own nothing else that the document has, it takes these.
func (a *Actor) applyAt(ctx context.Context, o operator.Outcome, version string, doc map[string]any) (*unstructured.Unstructured, error) {
	t := a.target(o.Downstream, o.Target)
	resp, err := a.Client.ApplyAt(ctx, t, o.UID, version, doc)
	if version != "" && apply.OwnsOnly(err, marks.Fields(a.Settings)) {
		t.Yields = false
		return a.Client.ApplyAt(ctx, t, o.UID, version, doc)
	}
	return resp, err
}

// countItems counts that objects of a downstream are created or removed, once for each change of which they are.
func countItems(a *Actor, downstream int) {
	if a.Settings.Downstreams[downstream].Several() {
		a.Memory.Items(downstream).Write(a.Memory.Cause(), a.Spacing, a.Now)
	}
}
