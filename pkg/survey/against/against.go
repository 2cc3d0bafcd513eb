// Package against says what changing an operator's config would do: only what differs between the old and the new one,
// and what the new one would leave behind.
package against

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// transition is one operator's way from its old config to its new one; either may be nil.
type transition struct {
	old, new *survey.Survey
	visit    Visit
	add      func(findings.Item) error
}

// Visit previews upstreams of a survey, as its method Visit does.
type Visit func(ctx context.Context, v *survey.Survey, refs []operator.Ref, each func(*preview.Finding) error) error

// Compare adds an item for each object that the new config changes or leaves behind, and one with ChangeNone for each
// that it does not change. Of two configs of one name that watch different kinds, it adds what each does. Either survey
// may be nil.
func Compare(ctx context.Context, from, to *survey.Survey, visit Visit, add func(findings.Item) error) error {
	t := &transition{old: from, new: to, visit: visit, add: add}
	switch {
	case t.old == nil:
		return t.everything(ctx)
	case t.new == nil:
		return t.abandoned(ctx)
	case t.old.Pipeline().Upstream.GVK.GroupKind() != t.new.Pipeline().Upstream.GVK.GroupKind():
		if err := t.abandoned(ctx); err != nil {
			return err
		}
		return t.everything(ctx)
	}
	return t.walk(ctx)
}

// everything adds all that the new config does.
func (t *transition) everything(ctx context.Context) error {
	return t.visit(ctx, t.new, t.new.Refs(), t.finding)
}

// finding adds all that the new config does about one upstream.
func (t *transition) finding(f *preview.Finding) error {
	for _, item := range findings.Items(t.new.Pipeline(), f) {
		if err := t.add(item); err != nil {
			return err
		}
	}
	return nil
}

// abandoned is about an operator that is gone, or that watches another kind now.
func (t *transition) abandoned(ctx context.Context) error {
	for _, ref := range t.old.Refs() {
		before, err := t.old.Current(ctx, ref)
		if err != nil {
			return err
		}
		if before != nil {
			if err := t.leftovers(before, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk goes through the upstreams of both configs.
func (t *transition) walk(ctx context.Context) error {
	refs := append(t.old.Refs(), t.new.Refs()...)
	slices.SortFunc(refs, operator.Ref.Compare)
	refs = slices.Compact(refs)
	next := 0
	// Visit passes over what the new config does not mention: it is reported in between.
	until := func(ref *operator.Ref) error {
		for ; next < len(refs) && (ref == nil || refs[next] != *ref); next++ {
			if err := t.upstream(ctx, refs[next], nil); err != nil {
				return err
			}
		}
		next++
		return nil
	}
	err := t.visit(ctx, t.new, refs, func(f *preview.Finding) error {
		if err := until(&f.Ref); err != nil {
			return err
		}
		return t.upstream(ctx, f.Ref, f)
	})
	if err != nil {
		return err
	}
	return until(nil)
}

// upstream prints what the other config changes for one upstream; f is nil where the new one does not look at it.
func (t *transition) upstream(ctx context.Context, ref operator.Ref, f *preview.Finding) error {
	before, err := t.old.Current(ctx, ref)
	if err != nil {
		return err
	}
	had := &preview.Finding{}
	if f != nil && pending(f) {
		if had, err = t.old.Preview(ctx, ref); err != nil {
			return err
		}
	}
	switch {
	case f == nil:
	case before == nil || had == nil:
		return t.finding(f)
	default:
		after, err := t.new.Current(ctx, ref)
		if err != nil {
			return err
		}
		if err := t.changes(before, after, had, f); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return t.leftovers(before, had, f)
}

// pending reports whether a config has anything to do or to say about an upstream.
func pending(f *preview.Finding) bool {
	return f.Finalizer != operator.FinalizerLeave || len(f.Forgotten) > 0 ||
		slices.ContainsFunc(f.Changes, func(c preview.Change) bool {
			return c.Action != preview.None
		})
}

// changes prints what the new config would do now, less what the old one would do now, too. What the old one holds back
// is not its doing.
func (t *transition) changes(before, after *reconcile.Current, had, f *preview.Finding) error {
	carriesOut := t.carriesOut(had)
	if err := t.finalizer(carriesOut, had, f); err != nil {
		return err
	}
	for _, c := range f.Changes {
		if err := t.change(t.oldDocument(before, c), documentOf(after, c), carriesOut, had, f, c); err != nil {
			return err
		}
	}
	return nil
}

func (t *transition) finalizer(carriesOut bool, had, f *preview.Finding) error {
	names := [2]string{t.old.Pipeline().Config.Conventions.Finalizer, t.new.Pipeline().Config.Conventions.Finalizer}
	if !carriesOut || had.Finalizer != f.Finalizer || names[0] != names[1] {
		for _, item := range findings.Finalizer(t.new.Pipeline(), f) {
			if err := t.add(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// change prints what the new config would do about one object, for which the configs have the documents before and
// after.
func (t *transition) change(
	before, after map[string]any, carriesOut bool, had, f *preview.Finding, c preview.Change,
) error {
	item, other := findings.ItemOf(t.new.Pipeline(), f, c), counterpart(had, c)
	if carriesOut && other != nil && other.Action.Writes() && other.Action != preview.Refuse {
		item.Diffs = without(item, findings.ItemOf(t.old.Pipeline(), had, *other))
	}
	if c.Action == preview.None || other != nil && canonical.Digest(before) == canonical.Digest(after) &&
		t.same(carriesOut, other, &c) {
		return t.unchanged(c)
	}
	if !c.Leftover && !c.Action.Writes() && before != nil && after != nil {
		item.Diffs = docdiff.Documents(before, after, item.Words)
	}
	return t.add(item)
}

// carriesOut reports whether the old config would carry out what is found by it: it does not observe, neither guard nor
// a doubt about rows may hold it, and it has the rights of the new one.
func (t *transition) carriesOut(had *preview.Finding) bool {
	if !reflect.DeepEqual(t.old.Pipeline().Config.ServiceAccount, t.new.Pipeline().Config.ServiceAccount) {
		return false
	}
	g := t.old.Pipeline().Config.Guard
	held := g != nil && (had.GuardCount.Deleted > 0 || had.GuardCount.Changed > 0 && g.MaxChanged != "")
	return !held && !t.old.Observes() && t.old.Doubt() == ""
}

// counterpart is what the old config would do with the object of a change; nil if it has none there.
func counterpart(had *preview.Finding, c preview.Change) *preview.Change {
	k := slices.IndexFunc(had.Changes, func(h preview.Change) bool {
		return h.Downstream == c.Downstream && h.Kind.GroupKind() == c.Kind.GroupKind() &&
			h.Target == c.Target && h.Leftover == c.Leftover
	})
	if k < 0 {
		return nil
	}
	return &had.Changes[k]
}

// without are the fields of a change of an existing object that the old config would not write the same; where values
// are masked, all.
func without(item, old findings.Item) []docdiff.Field {
	if item.Before == nil || item.Words != nil {
		return item.Diffs
	}
	return slices.DeleteFunc(slices.Clone(item.Diffs), func(d docdiff.Field) bool {
		return slices.ContainsFunc(old.Diffs, func(o docdiff.Field) bool {
			return o.Path.Equal(d.Path) && canonical.Digest(o.After) == canonical.Digest(d.After)
		})
	})
}

// same reports whether the old config does the same with an object, for which both have the same document: with the
// same loss, by the same field manager and, since exclusive fields are in no document, with the same result.
func (t *transition) same(carriesOut bool, old, c *preview.Change) bool {
	switch {
	case old.Action != c.Action || old.Risk != c.Risk:
		return false
	case !c.Action.Writes():
		return old.Reason == c.Reason
	case old.Note != "" && old.State != operator.StateDelete: // no dry run says whether the API server would accept it
		return false
	case !carriesOut || t.old.Pipeline().Config.Conventions.FieldManager != t.new.Pipeline().
		Config.Conventions.FieldManager:
		return false
	}
	isNew := c.Before == nil || c.Action == preview.Recreate // with a random name and values in each dry run
	return isNew || c.After == nil || old.After == nil ||
		len(docdiff.Documents(old.After.Object, c.After.Object, nil)) == 0
}

// documentOf is what a config asks for of the object of a change; nil for the object of deletion.before, and while the
// upstream is being deleted.
func documentOf(after *reconcile.Current, c preview.Change) map[string]any {
	if c.Index < 0 || c.Object >= len(after.Documents) {
		return nil
	}
	return after.Documents[c.Object]
}

// oldDocument is what the old config asks for of the downstream of that name; nil if it asks for nothing.
func (t *transition) oldDocument(before *reconcile.Current, c preview.Change) map[string]any {
	if k := t.oldObject(before, c); k >= 0 {
		return before.Documents[k]
	}
	return nil
}

// oldObject is the index of what the old config asks for in the place of a change, or of the only object of the
// downstream of that name; -1 for nothing.
func (t *transition) oldObject(before *reconcile.Current, c preview.Change) int {
	found, n := -1, 0
	for k, o := range before.Desired.Objects {
		if t.old.Pipeline().Downstreams[o.Downstream].Name != c.Downstream {
			continue
		}
		if o.Target == c.Target {
			return k
		}
		found, n = k, n+1
	}
	if n != 1 {
		return -1
	}
	return found
}

// leftovers prints the objects that the old config looks after and the new one does not, and what else the status
// records that only the old one has a downstream for.
func (t *transition) leftovers(before *reconcile.Current, had, f *preview.Finding) error {
	pl := t.old.Pipeline()
	up := findings.Object{Kind: pl.Upstream.GVK, At: before.Ref, UID: string(before.Upstream.GetUID())}
	seen := map[types.UID]bool{} // downstreams of one kind see the same objects
	for i, list := range before.Owned {
		for _, live := range list {
			home, _ := decide.HomeOf(pl.Settings, i, live, pl.Recorded(before.Upstream))
			d := pl.Downstreams[home]
			if seen[live.UID] || !live.Managed || looksAt(f, d.Kind.GVK.GroupKind(), live) {
				continue
			}
			seen[live.UID] = true
			about := findings.About{Operator: pl.Name, Upstream: up, Downstream: d.Name,
				Object: findings.Object{Kind: d.Kind.GVK, At: operator.Ref{Namespace: live.Namespace,
					Name: live.Name}, UID: string(live.UID)},
				Reason: "the new config does not manage it; nothing changes or deletes it"}
			if len(live.Owners) > 0 {
				about.Reason += ", except through its owner reference"
			}
			if err := t.add(findings.Item{About: about, Action: findings.ActionLeftover}); err != nil {
				return err
			}
		}
	}
	if f == nil {
		return nil
	}
	for _, item := range findings.ForgottenItems(t.new.Pipeline(), f) {
		uid := types.UID(item.Object.UID)
		if seen[uid] || slices.ContainsFunc(had.Forgotten, func(r preview.Forgotten) bool { return r.UID == uid }) {
			continue
		}
		if err := t.add(item); err != nil {
			return err
		}
	}
	return nil
}

// looksAt reports whether a finding is about an object.
func looksAt(f *preview.Finding, kind schema.GroupKind, live *drift.Live) bool {
	return f != nil && slices.ContainsFunc(f.Changes, func(c preview.Change) bool {
		at := c.Kind.GroupKind() == kind && c.Target == operator.Ref{Namespace: live.Namespace, Name: live.Name}
		return at || c.Live != nil && c.Live.UID == live.UID
	})
}

// unchanged counts a change that the new config does not cause.
func (t *transition) unchanged(c preview.Change) error {
	if findings.IsAboutNothing(c) {
		return nil
	}
	return t.add(findings.Item{Action: string(preview.None)})
}
