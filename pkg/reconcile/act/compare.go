package act

import (
	"context"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
)

// compareByDryRun asks by a dry run whether an apply would change anything, and if so, who changed which fields.
func (a *Actor) compareByDryRun(ctx context.Context, o operator.Outcome) error {
	i := o.Downstream
	doc, err := a.dryRunDocument(ctx, o)
	if err != nil {
		return err
	}
	resp, err := a.Client.DryRunApply(ctx, a.target(i, o.Target), o.UID, doc)
	if err != nil {
		return err
	}
	would := a.Settings.Downstreams[i].View.Live(resp)
	same := would.P == o.Live.P && would.Hash == o.Live.Hash && !o.Live.Extra
	t := a.Memory.Object(o.Object)
	if t.SetDryRun(o.Live, a.In.Desired.Objects[o.Object].Hash, same); same {
		return nil
	}
	counters.Drift(a.Name, a.Settings.Downstreams[i].Name)
	if live, err := a.Client.Get(ctx, a.target(i, o.Target)); err == nil {
		applied, _ := drift.Project(resp, a.Settings.Config.Conventions.FieldManager)
		t.SetChangedBy(drift.Explain(drift.Changed(applied, live, &a.Settings.Downstreams[i].View), a.Settings.Config.Conventions.FieldManager))
	}
	a.Drifted(o, t.Unusual.Get().ChangedBy)
	return nil
}

// Compare finds out which fields an apply would change. Values that the API server would normalize count as changes too: only a
// dry run could tell, and mode Observe makes none.
func (a *Actor) Compare(ctx context.Context, o operator.Outcome) bool {
	i := o.Downstream
	t, view := a.Memory.Object(o.Object), &a.Settings.Downstreams[i].View
	hash := a.In.Desired.Objects[o.Object].Hash
	if _, known := t.Compared(o.Live, hash); known {
		return false
	}
	obj, err := a.Client.Get(ctx, a.target(i, o.Target))
	if err != nil || obj.GetUID() != o.UID {
		return false // an event will follow
	}
	taken := apply.WithFieldsTakenOver(obj, a.Settings.Config.Conventions.FieldManager, view.TakeoverManagers())
	doc, err := a.Document(o.Object, view.Live(taken))
	if err != nil {
		return false
	}
	t.SetCompared(o.Live, hash, marks.WouldChange(a.Settings, a.Upstream.GetUID(), i, doc, obj, taken))
	return true
}

// WouldStay asks by dry runs whether an apply, and the removal of keys that others added to exclusive fields, would leave our
// fields as they are: the API server may normalize values, or add keys of its own.
func (a *Actor) WouldStay(ctx context.Context, o operator.Outcome) (bool, error) {
	i, live := o.Downstream, o.Live
	at, view := a.target(i, o.Target), &a.Settings.Downstreams[i].View
	if view.LacksGenerated(live) {
		return false, nil
	}
	doc, err := a.dryRunDocument(ctx, o)
	if err != nil {
		return false, err
	}
	resp, err := a.Client.DryRunApply(ctx, at, live.UID, doc)
	if err != nil {
		return false, err
	}
	would := view.Live(resp)
	if would.P != live.P || would.Hash != live.Hash {
		return false, nil
	}
	extras := extras(a.Settings, i, would, resp, doc, false)
	if len(extras) == 0 {
		return true, nil
	}
	if resp, err = a.Client.DryRunNull(ctx, at, live.UID, resp.GetResourceVersion(), extras); err != nil {
		return false, err
	}
	return view.Live(resp).P == live.P, nil
}
