// Package against says what changing an operator's config would do: only what differs between the old and the new one, and what the new
// one would leave behind.
package against

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/pipeline"
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

// Compare adds an item for each object that the new config changes or leaves behind, and one with ChangeNone for each that it does not
// change. Of two configs of one name that watch different kinds, it adds what each does. Either survey may be nil.
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
		was, err := t.old.Current(ctx, ref)
		if err != nil {
			return err
		}
		if was != nil {
			if err := t.leftovers(was, nil); err != nil {
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
	was, err := t.old.Current(ctx, ref)
	if err != nil {
		return err
	}
	if f != nil {
		is, err := t.new.Current(ctx, ref)
		if err != nil {
			return err
		}
		if err := t.changes(ctx, was, is, f); err != nil {
			return err
		}
	}
	if was == nil {
		return nil
	}
	return t.leftovers(was, f)
}

// changes prints the downstreams that the two configs want differently.
func (t *transition) changes(ctx context.Context, was, is *reconcile.Current, f *preview.Finding) error {
	if was == nil || is == nil {
		return t.finding(f)
	}
	if is.Upstream.GetDeletionTimestamp() != nil {
		return t.deletion(ctx, f)
	}
	if t.old.Pipeline().Config.Conventions.Finalizer != t.new.Pipeline().Config.Conventions.Finalizer {
		for _, item := range findings.Finalizer(t.new.Pipeline(), f) {
			if err := t.add(item); err != nil {
				return err
			}
		}
	}
	for _, c := range f.Changes {
		before, after := t.oldDocument(was, c), documentOf(is, c)
		if !t.causes(was, is, c, before, after) {
			if err := t.unchanged(c); err != nil {
				return err
			}
			continue
		}
		item := findings.ItemOf(t.new.Pipeline(), f, c)
		if !c.Leftover && before != nil && after != nil && c.Action != preview.Create {
			item.Diffs = docdiff.Documents(before, after, item.Words)
		}
		if err := t.add(item); err != nil {
			return err
		}
	}
	return nil
}

// deletion prints what the two configs do differently while an upstream is being deleted.
func (t *transition) deletion(ctx context.Context, f *preview.Finding) error {
	old, err := t.old.Preview(ctx, f.Ref)
	if err != nil {
		return err
	}
	for _, c := range f.Changes {
		same := func(had preview.Change) bool {
			return had.Downstream == c.Downstream && had.Target == c.Target && had.Action == c.Action && had.Reason == c.Reason
		}
		if old != nil && slices.ContainsFunc(old.Changes, same) {
			if err := t.unchanged(c); err != nil {
				return err
			}
			continue
		}
		if err := t.add(findings.ItemOf(t.new.Pipeline(), f, c)); err != nil {
			return err
		}
	}
	return nil
}

// causes reports whether it is the new config that has a change made.
func (t *transition) causes(was, is *reconcile.Current, c preview.Change, before, after map[string]any) bool {
	switch {
	case c.Leftover:
		return t.wasTarget(was, c.Live) || !isOwned(was, c.Live)
	case before == nil && after == nil: // neither asks for anything: then why is the matter
		return t.refusedNow(was, is, c)
	}
	return drift.Digest(before) != drift.Digest(after) || t.takesOverFields(c)
}

// documentOf is what a config asks for of the object of a change; nil for the object of deletion.before, and while the upstream is being
// deleted.
func documentOf(is *reconcile.Current, c preview.Change) map[string]any {
	if c.Index < 0 || c.Object >= len(is.Documents) {
		return nil
	}
	return is.Documents[c.Object]
}

// oldDocument is what the old config asks for of the downstream of that name; nil if it asks for nothing.
func (t *transition) oldDocument(was *reconcile.Current, c preview.Change) map[string]any {
	if k := t.oldObject(was, c); k >= 0 {
		return was.Documents[k]
	}
	return nil
}

// oldObject is the index of what the old config asks for in the place of a change, or of the only object of the
// downstream of that name; -1 for nothing.
func (t *transition) oldObject(was *reconcile.Current, c preview.Change) int {
	found, n := -1, 0
	for k, o := range was.Desired.Objects {
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

// takesOverFields reports whether an object is written because the new config has another field manager, or takes over or adopts what the
// old one did not: what is asked for is the same, but it is not under that manager yet.
func (t *transition) takesOverFields(c preview.Change) bool {
	if c.Live == nil || c.Live.Managed && !c.Live.NeedsTakeover || c.Action != preview.Update && c.Action != preview.Repair {
		return false
	}
	d := t.new.Pipeline().Downstreams[c.Index]
	return slices.ContainsFunc(t.old.Pipeline().Downstreams, func(was *pipeline.Downstream) bool {
		return was.Name == d.Name && (was.View.Manager != d.View.Manager ||
			!slices.Equal(was.View.TakeoverManagers(), d.View.TakeoverManagers()) ||
			was.Config.AdoptionPolicy != d.Config.AdoptionPolicy)
	})
}

// wasTarget reports whether the old config wants an object where it is.
func (t *transition) wasTarget(was *reconcile.Current, live *drift.Live) bool {
	for k, doc := range was.Documents {
		o := was.Desired.Objects[k]
		d := t.old.Pipeline().Downstreams[o.Downstream]
		if doc != nil && live != nil && o.Target == (operator.Ref{Namespace: live.Namespace, Name: live.Name}) &&
			d.GVK().GroupKind() == schema.FromAPIVersionAndKind(live.APIVersion, live.Kind).GroupKind() {
			return true
		}
	}
	return false
}

// isOwned reports whether a config looks after an object. One that a removed downstream has left is nobody's until one has its
// name again.
func isOwned(by *reconcile.Current, live *drift.Live) bool {
	return live != nil && slices.ContainsFunc(by.Owned, func(list []*drift.Live) bool {
		return slices.ContainsFunc(list, func(own *drift.Live) bool { return own.UID == live.UID })
	})
}

// refusedNow reports whether the new config refuses an upstream, or cannot render it, and the old one did not.
func (t *transition) refusedNow(was, is *reconcile.Current, c preview.Change) bool {
	if was.Desired == nil || is.Desired == nil || len(was.Desired.Invalid) > 0 {
		return false
	}
	if len(is.Desired.Invalid) > 0 {
		return true
	}
	if c.Object >= len(is.Desired.Objects) || is.Desired.Objects[c.Object].Err == nil {
		return false
	}
	k := t.oldObject(was, c)
	return k < 0 || was.Desired.Objects[k].Err == nil
}

// leftovers prints the objects that the old config looks after and the new one does not.
func (t *transition) leftovers(was *reconcile.Current, f *preview.Finding) error {
	pl := t.old.Pipeline()
	up := findings.Object{Kind: pl.Upstream.GVK, At: was.Ref, UID: string(was.Upstream.GetUID())}
	seen := map[types.UID]bool{} // downstreams of one kind see the same objects
	for i, list := range was.Owned {
		for _, live := range list {
			home, _ := decide.HomeOf(pl.Settings, i, live, pl.Recorded(was.Upstream))
			d := pl.Downstreams[home]
			if seen[live.UID] || !live.Managed || looksAt(f, d.Kind.GVK.GroupKind(), live) {
				continue
			}
			seen[live.UID] = true
			about := findings.About{Operator: pl.Name, Upstream: up, Downstream: d.Name,
				Object: findings.Object{Kind: d.Kind.GVK, At: operator.Ref{Namespace: live.Namespace, Name: live.Name}, UID: string(live.UID)},
				Reason: "the new config does not manage it; nothing changes or deletes it"}
			if len(live.Owners) > 0 {
				about.Reason += ", except through its owner reference"
			}
			if err := t.add(findings.Item{About: about, Action: findings.ActionLeftover}); err != nil {
				return err
			}
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
