package act

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// compareByDryRun asks by a dry run whether an apply would change anything, and if so, who changed which fields.
func (x *action) compareByDryRun(ctx context.Context) error {
	doc, err := x.dryRunDocument(ctx)
	if err != nil {
		return err
	}
	resp, err := x.Client.DryRunApply(ctx, x.target, x.UID, doc)
	if err != nil {
		return err
	}
	x.Stored = resp
	would := x.d.View.Live(resp)
	if x.Same = new(would.P == x.Live.P && would.Hash == x.Live.Hash && !x.Live.Extra); *x.Same {
		return nil
	}
	x.Did = string(operator.StateDrifted)
	if live, err := x.Client.Get(ctx, x.target); err == nil {
		manager := x.Settings.Config.Conventions.FieldManager
		projection, _ := drift.Project(resp, manager)
		x.ChangedBy = new(drift.Explain(drift.Changed(projection, live, &x.d.View), manager))
	}
	return nil
}

// Compare finds out which fields an apply would change. Values that the API server would normalize count as changes
// too: only a dry run could tell, and mode Observe makes none. If that cannot be found out, an event will follow.
func (a *Actor) Compare(ctx context.Context, o operator.Outcome) (text string, ok bool) {
	x := a.begin(o)
	obj, err := x.read(ctx, x.target, x.UID)
	if err != nil {
		return "", false
	}
	taken := apply.WithFieldsTakenOver(obj, a.Settings.Config.Conventions.FieldManager, x.d.View.TakeoverManagers())
	doc, err := a.Document(o.Object, x.d.View.Live(taken))
	if err != nil {
		return "", false
	}
	return marks.WouldChange(a.Settings, a.Upstream.GetUID(), o.Downstream, doc, obj, taken), true
}

// WouldStay asks by dry runs whether an apply, and the removal of keys that others added to exclusive fields, would
// leave our fields as they are: the API server may normalize values, or add keys of its own.
func (a *Actor) WouldStay(ctx context.Context, o operator.Outcome) (bool, error) {
	x := a.begin(o)
	live, view := o.Live, &x.d.View
	if view.LacksGenerated(live) {
		return false, nil
	}
	doc, err := x.dryRunDocument(ctx)
	if err != nil {
		return false, err
	}
	resp, err := a.Client.DryRunApply(ctx, x.target, live.UID, doc)
	if err != nil {
		return false, err
	}
	would := view.Live(resp)
	if would.P != live.P || would.Hash != live.Hash {
		return false, nil
	}
	extras := extras(a.Settings, o.Downstream, would, resp, doc, false)
	if len(extras) == 0 {
		return true, nil
	}
	if resp, err = a.Client.DryRunNull(ctx, x.target, live.UID, resp.GetResourceVersion(), extras); err != nil {
		return false, err
	}
	return view.Live(resp).P == live.P, nil
}
