package act

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/generated"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/events"
)

// update applies the desired state to an existing object.
func (x *action) update(ctx context.Context) error {
	before, err := x.readAhead(ctx) // after a takeover, all fields read as ours
	if err != nil {
		return err
	}
	if err := x.mayBeAdopted(ctx); err != nil {
		return err
	}
	taken, err := x.takeOverFields(ctx)
	if err != nil {
		return err
	}
	live, held, err := x.readGenerated(ctx, taken)
	if err != nil {
		return x.unlessGone(err)
	}
	x.Live = live
	doc, err := x.document(ctx, held)
	if err != nil {
		return err
	}
	version := ""
	if generated.SendsInitial(x.Live) || x.d.View.LacksGenerated(x.Live) || x.d.OwnsFields() {
		// The value is only correct until another manager takes or sets the field, and the object of others is only free for
		// our fields until another upstream marks it.
		version = x.Live.ResourceVersion
	}
	resp, err := x.applyAt(ctx, version, doc)
	resp, err = x.afterTakeOver(ctx, taken, doc, resp, err)
	switch {
	case errors.Is(err, apply.ErrGone):
		return x.unlessGone(err)
	case errors.Is(err, apply.ErrReplaced):
		x.Gone = append(x.Gone, x.UID)
		return x.resolveExisting(ctx, doc)
	case errors.Is(err, apply.ErrConflict) && version != "":
		obj, err := x.Client.Get(ctx, x.target)
		if err == nil {
			x.Answer = x.LiveOf(x.d, obj)
		}
		return err
	case err != nil:
		return x.refused(ctx, doc, err)
	}
	x.ValuesLost = true
	x.didApply(before, resp)
	return x.applied(ctx, resp, doc)
}

// applied is about what an apply returned. It removes keys that others added to exclusive fields.
func (x *action) applied(ctx context.Context, resp *unstructured.Unstructured, doc map[string]any) error {
	live := x.d.View.Live(resp)
	if extras := extras(x.Settings, x.Downstream, live, resp, doc, x.State == operator.StateCreate); len(extras) > 0 {
		var err error
		if x.Client.Dry() { // a request would start from the object before the apply
			for _, p := range extras {
				fieldpath.Remove(resp.Object, p)
			}
		} else if resp, err = x.Client.Null(ctx, x.target, live.UID, live.ResourceVersion, extras); err != nil {
			return err
		}
		live = x.d.View.Live(resp)
	}
	x.Stored, x.Answer, x.Written, x.Applied = resp, live, x.want.Hash, &Applied{document: doc}
	x.noteHidden(resp)
	if live.Hash != x.want.Hash {
		x.ChangedBy = new(fmt.Sprintf("admission changes %s, which holds the hash: exclude it from that webhook or policy",
			x.Settings.HashKey()))
	}
	if live.P != x.want.Sum {
		x.Applied.Baseline, x.Applied.Rewritten = new(live.P), drift.Paths(drift.Changed(doc, resp, &x.d.View))
	}
	x.needsVerification()
	return nil
}

// noteHidden notes that what was written cannot be seen by a watch, since the API server has returned it with other
// labels than were sent.
func (x *action) noteHidden(resp *unstructured.Unstructured) {
	if live := x.LiveOf(x.d, resp); live.Unselected && !live.Deleting {
		x.Answer.Unselected, x.Hidden = true, true
		x.ChangedBy = new("admission changes the labels that the watch selects by, so that it does not show the object: " +
			"exclude them from that webhook or policy, or change conventions.labels")
	}
}

// didApply says what an apply to an existing object was: a repair if others had changed the object, else an update;
// nothing if the apply changed nothing: then there was no drift. read is the object before; nil if it was not read.
func (x *action) didApply(read, resp *unstructured.Unstructured) {
	manager := x.Settings.Config.Conventions.FieldManager
	if read != nil {
		// The object before is compared with the result, not with the document: values that the API server normalizes do not
		// count as changes.
		projection, _ := drift.Project(resp, manager)
		x.Changed = drift.Changed(projection, read, &x.d.View)
	}
	switch by := x.known.Unusual.Get().ChangedBy; {
	case x.State == operator.StateUpdate:
		if x.Did = events.EventUpdated; read != nil {
			x.Stay = drift.LostFields(read, resp, manager)
		}
	case x.Live != nil && x.Live.ResourceVersion == resp.GetResourceVersion():
	case x.Live != nil && x.d.View.LacksGenerated(x.Live):
		x.Did, x.ChangedBy = events.EventRepaired, new("")
	case read != nil && drift.IsOwnChange(x.Changed, manager):
		x.Did, x.ChangedBy, x.Message = events.EventUpdated, &by,
			"the names in conventions have changed, or the version of the upstream"
	case read != nil:
		x.Did, x.ChangedBy = events.EventRepaired, new(drift.Explain(x.Changed, manager))
	default:
		x.Did, x.ChangedBy = events.EventRepaired, &by
	}
}

// readAhead reads the object before an apply if that is worth a request: to name who changed which fields, if events
// are wanted or a writer keeps reverting us, and to notice fields that stay because another manager owns them too.
func (x *action) readAhead(ctx context.Context) (*unstructured.Unstructured, error) {
	explain := x.State == operator.StateRepair && (x.Settings.Config.Events != config.EventsNone ||
		x.known.Contest.Get().Unsettled > 0)
	shared := x.State == operator.StateUpdate && x.Live.CoOwned
	if !explain && !shared {
		return nil, nil
	}
	live, err := x.Client.Get(ctx, x.target)
	if errors.Is(err, apply.ErrGone) {
		return nil, nil
	}
	return live, err
}

// applyAt is the apply of an update. Others may not hold our marks: if they own nothing else that the document has, it
// takes these.
func (x *action) applyAt(ctx context.Context, version string, doc map[string]any) (*unstructured.Unstructured, error) {
	resp, err := x.Client.ApplyAt(ctx, x.target, x.UID, version, doc)
	if version != "" && apply.OwnsOnly(err, marks.Fields(x.Settings)) {
		t := x.target
		t.Yields = false
		return x.Client.ApplyAt(ctx, t, x.UID, version, doc)
	}
	return resp, err
}
