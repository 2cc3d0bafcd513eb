package cli

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// against plans what going from the old configs to the new ones would do. Operators are the same by their name.
func (p *planning) against(ctx context.Context, s *survey.Surveyor, files []*config.File) error {
	p.options.against.set = nil // overrides are of the new ones
	old, problems, err := p.options.against.load(p.options.streams)
	if err != nil {
		return err
	}
	if _, err := p.options.fit(old, problems); err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	byName := map[string][2]*config.File{}
	var names []string
	for side, list := range [][]*config.File{old, files} {
		for _, f := range list {
			pair, known := byName[f.Metadata.Name]
			if !known {
				names = append(names, f.Metadata.Name)
			}
			pair[side] = f
			byName[f.Metadata.Name] = pair
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := p.pair(ctx, s, byName[name]); err != nil {
			return err
		}
	}
	return nil
}

// transition is one operator's way from its old config to its new one; either may be nil.
type transition struct {
	*planning
	old, new *survey.Survey
}

func (p *planning) pair(ctx context.Context, s *survey.Surveyor, files [2]*config.File) error {
	t := &transition{planning: p}
	var err error
	for side, v := range []**survey.Survey{&t.old, &t.new} {
		if files[side] == nil {
			continue
		}
		if *v, err = s.Open(ctx, files[side]); err != nil {
			return err
		}
		defer (*v).Close()
	}
	if t.old != nil && t.new != nil {
		for _, why := range t.old.ReplacementProblems(t.new.Pipeline().Config) {
			t.line.note("operator %s: %s; run refuses to reload it until then", t.new.Pipeline().Name, why)
		}
	}
	switch {
	case t.old == nil:
		return p.operator(ctx, t.new)
	case t.new == nil || t.old.Pipeline().Upstream.GVK.GroupKind() != t.new.Pipeline().Upstream.GVK.GroupKind():
		if err := t.abandoned(ctx); err != nil || t.new == nil {
			return err
		}
		return p.operator(ctx, t.new)
	}
	return t.walk(ctx)
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
	slices.SortFunc(refs, pipeline.Ref.Compare)
	refs = slices.Compact(refs)
	next := 0
	// Visit passes over what the new config does not mention: it is reported in between.
	until := func(ref *pipeline.Ref) error {
		for ; next < len(refs) && (ref == nil || refs[next] != *ref); next++ {
			if err := t.upstream(ctx, refs[next], nil); err != nil {
				return err
			}
		}
		next++
		return nil
	}
	err := t.visit(ctx, t.new, refs, func(f *reconcile.Finding) error {
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
func (t *transition) upstream(ctx context.Context, ref pipeline.Ref, f *reconcile.Finding) error {
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
func (t *transition) changes(ctx context.Context, was, is *reconcile.Current, f *reconcile.Finding) error {
	up := upstreamOf(t.new.Pipeline(), f)
	if was == nil || is == nil {
		return t.finding(t.new.Pipeline(), f)
	}
	if is.Upstream.GetDeletionTimestamp() != nil {
		return t.deletion(ctx, f, up)
	}
	if t.old.Pipeline().Config.Conventions.Finalizer != t.new.Pipeline().Config.Conventions.Finalizer {
		if err := t.finalizer(t.new.Pipeline(), f, up); err != nil {
			return err
		}
	}
	for _, c := range f.Changes {
		before, after := t.oldDocument(was, c), documentOf(is, c)
		if !t.causes(was, is, c, before, after) {
			t.countUnchanged(c)
			continue
		}
		item := itemOf(t.new.Pipeline(), f, up, c)
		if !c.Leftover && before != nil && after != nil && c.Action != reconcile.ChangeCreate {
			item.diffs = diffDocuments(before, after, item.words)
		}
		if err := t.add(item); err != nil {
			return err
		}
	}
	return nil
}

// deletion prints what the two configs do differently while an upstream is being deleted.
func (t *transition) deletion(ctx context.Context, f *reconcile.Finding, up objectRef) error {
	old, err := t.old.Preview(ctx, f.Ref)
	if err != nil {
		return err
	}
	for _, c := range f.Changes {
		same := func(had reconcile.Change) bool {
			return had.Downstream == c.Downstream && had.Target == c.Target && had.Action == c.Action && had.Reason == c.Reason
		}
		if old != nil && slices.ContainsFunc(old.Changes, same) {
			t.countUnchanged(c)
			continue
		}
		if err := t.add(itemOf(t.new.Pipeline(), f, up, c)); err != nil {
			return err
		}
	}
	return nil
}

// causes reports whether it is the new config that has a change made.
func (t *transition) causes(was, is *reconcile.Current, c reconcile.Change, before, after map[string]any) bool {
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
func documentOf(is *reconcile.Current, c reconcile.Change) map[string]any {
	if c.Index < 0 || c.Object >= len(is.Documents) {
		return nil
	}
	return is.Documents[c.Object]
}

// oldDocument is what the old config asks for of the downstream of that name; nil if it asks for nothing.
func (t *transition) oldDocument(was *reconcile.Current, c reconcile.Change) map[string]any {
	if k := t.oldObject(was, c); k >= 0 {
		return was.Documents[k]
	}
	return nil
}

// oldObject is the index of what the old config asks for in the place of a change, or of the only object of the
// downstream of that name; -1 for nothing.
func (t *transition) oldObject(was *reconcile.Current, c reconcile.Change) int {
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
func (t *transition) takesOverFields(c reconcile.Change) bool {
	if c.Live == nil || c.Live.Managed && !c.Live.NeedsTakeover || c.Action != reconcile.ChangeUpdate && c.Action != reconcile.ChangeRepair {
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
		if doc != nil && live != nil && o.Target == (pipeline.Ref{Namespace: live.Namespace, Name: live.Name}) &&
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
func (t *transition) refusedNow(was, is *reconcile.Current, c reconcile.Change) bool {
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
func (t *transition) leftovers(was *reconcile.Current, f *reconcile.Finding) error {
	up := objectRef{gvk: t.old.Pipeline().Upstream.GVK, at: was.Ref, uid: string(was.Upstream.GetUID())}
	pl := t.old.Pipeline()
	seen := map[types.UID]bool{} // downstreams of one kind see the same objects
	for i, list := range was.Owned {
		for _, live := range list {
			home, _ := pl.HomeOf(i, live, pl.Recorded(was.Upstream))
			d := pl.Downstreams[home]
			if seen[live.UID] || !live.Managed || looksAt(f, d.Kind.GVK.GroupKind(), live) {
				continue
			}
			seen[live.UID] = true
			item := planItem{operator: t.old.Pipeline().Name, upstream: up, downstream: d.Name, action: actionLeftover,
				object: objectRef{d.Kind.GVK, pipeline.Ref{Namespace: live.Namespace, Name: live.Name}, string(live.UID)},
				reason: "the new config does not manage it; nothing changes or deletes it, except through its owner reference"}
			if len(live.Owners) == 0 {
				item.reason = "the new config does not manage it; nothing changes or deletes it"
			}
			if err := t.add(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// looksAt reports whether a finding is about an object.
func looksAt(f *reconcile.Finding, kind schema.GroupKind, live *drift.Live) bool {
	return f != nil && slices.ContainsFunc(f.Changes, func(c reconcile.Change) bool {
		at := c.Kind.GroupKind() == kind && c.Target == pipeline.Ref{Namespace: live.Namespace, Name: live.Name}
		return at || c.Live != nil && c.Live.UID == live.UID
	})
}

func (t *transition) countUnchanged(c reconcile.Change) {
	if !isAboutNothing(c) {
		t.counts[string(reconcile.ChangeNone)]++
	}
}
