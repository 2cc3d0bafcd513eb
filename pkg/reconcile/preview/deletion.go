package preview

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/status"
)

// previewDeletion reports what would happen to the objects of an upstream that is being deleted.
func (t *dryRun) previewDeletion(ctx context.Context) error {
	if !t.HasFinalizer() {
		return nil // the garbage collector deletes its downstreams
	}
	in, err := t.GatherDeletion(ctx)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err != nil:
		return fmt.Errorf("inspecting %s %s: %w", t.Pipeline.Upstream.GVK.Kind, t.Ref, err)
	}
	d := decide.Deletion(t.Pipeline.Settings, in)
	if recorded := recordedBefore(t.Pipeline, d); recorded != nil { // run records that first, and then continues
		t.Upstream = report.WithBeforeRecord(t.Pipeline.Settings, t.Upstream, *recorded)
		if in, err = t.GatherDeletion(ctx); err != nil {
			return fmt.Errorf("inspecting %s %s: %w", t.Pipeline.Upstream.GVK.Kind, t.Ref, err)
		}
		d = decide.Deletion(t.Pipeline.Settings, in)
	}
	t.finding.Decision, t.finding.Finalizer = d, d.Finalizer
	t.readWhole(ctx, d)
	if d.WaitsForBefore {
		t.finding.Changes = append(t.finding.Changes, t.beforeChange(*d.Before))
		t.leaveAll(operator.StateWaiting, Wait, "it is kept until "+operator.BeforeName+" is done")
	}
	for _, f := range d.Kept {
		t.finding.Forgotten = append(t.finding.Forgotten, Forgotten{Recorded: f.Recorded, Note: f.Kept})
	}
	for _, o := range d.Leftovers {
		c := t.leftover(o, ActionOf(o))
		switch {
		case o.Live.Deleting:
			c.Action = Wait
		case o.Action == operator.ActionNone && o.State == operator.StateDelete:
			c.Note = "the garbage collector deletes it"
		}
	}
	t.addLeftovers(nil)
	return nil
}

// recordedBefore is the outcome of deletion.before that is to be recorded and lets the downstreams go; nil if there is
// none.
func recordedBefore(p *compile.Pipeline, d operator.Decision) *status.Recorded {
	if d.Before == nil || d.Before.Action != operator.ActionRecord {
		return nil
	}
	if r := decide.BeforeRecord(p.Settings, *d.Before); decide.BeforePassed(p.Settings, &r) {
		return &r
	}
	return nil
}

// leaveAll reports that nothing is done about the objects of the upstream, and why.
func (t *dryRun) leaveAll(state operator.State, action Action, why string) {
	for _, own := range t.FindLeftovers(nil, t.OwnedByDownstream()) {
		t.leftover(operator.Outcome{Downstream: own.Downstream, Live: own.Live, UID: own.Live.UID, State: state,
			Target:  operator.RefOf(own.Live),
			Message: why}, action)
	}
}

// beforeChange describes the change of the deletion.before object.
func (t *dryRun) beforeChange(o operator.Outcome) Change {
	c := Change{Index: operator.BeforeIndex, Downstream: operator.BeforeName, Target: o.Target,
		Action: Wait, State: o.State,
		Reason: o.Message, Live: o.Live, Theirs: o.Theirs}
	if o.Earlier != nil {
		c.Kind = schema.FromAPIVersionAndKind(o.Earlier.APIVersion, o.Earlier.Kind)
	} else {
		c.Kind = t.Pipeline.Before.Object.Kind.GVK
	}
	switch {
	case o.Action == operator.ActionCreate && o.State == operator.StateCreate:
		// else it has failed, and is only tried again
		c.Action = Create
	case o.Action == operator.ActionDelete:
		c.Action = Delete
	}
	return c
}
