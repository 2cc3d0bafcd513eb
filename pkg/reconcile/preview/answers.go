package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/act"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
)

// readAnswers handles the API server's responses. It reports whether deciding again may bring something new.
func (t *dryRun) readAnswers(ctx context.Context, d operator.Decision, in operator.Input) bool {
	news := false
	for _, o := range d.Outcomes {
		switch {
		case o.Action == operator.ActionNone || t.changes[o.Object] != nil && t.changes[o.Object].Failure != nil:
		case t.Failures[o.Object] != nil:
			news = t.previewRefused(o, in) || news
		case o.Action == operator.ActionCompare:
			t.noteReportedDrift(o, t.resultOf(o).Stored)
		case o.Action == operator.ActionDelete:
			t.previewRecreate(ctx, o, in)
			news = true
		case t.resultOf(o).Err == nil && t.resultOf(o).Stored != nil:
			t.accepted(o, t.resultOf(o).Stored, in)
			news = true
		}
	}
	for _, o := range d.Leftovers {
		if o.Action != operator.ActionNone && t.leftovers[o.UID] == nil {
			news = t.previewLeftover(o) || news
		}
	}
	return news
}

// accepted is about a write that the API server accepts.
func (t *dryRun) accepted(o operator.Outcome, answer *unstructured.Unstructured, in operator.Input) {
	c := t.change(o, ActionOf(o))
	c.Document = t.documentFor(o, in)
	view := &t.Pipeline.Downstreams[o.Downstream].View
	live := view.Live(answer)
	live.NeedsTakeover, live.HasPreviousNames = false, false
	c.After = answer
	t.after[o.Object], t.changes[o.Object] = live, c
	if o.Live != nil && o.Action == operator.ActionApply && !o.Live.NeedsTakeover && live.P == o.Live.P &&
		live.Hash == o.Live.Hash && !o.Live.Extra && !view.LacksGenerated(o.Live) {
		c.Action, c.State, c.Reason = None, operator.StateInSync,
			"the API server normalizes it; an apply would change nothing"
		return
	}
	t.explain(c, answer)
}

// explain lists which of our fields differ.
func (t *dryRun) explain(c *Change, answer *unstructured.Unstructured) {
	if c.Before == nil || !t.options.Documents {
		return
	}
	desired := c.Document
	if answer != nil {
		desired, _ = drift.Project(answer, t.Pipeline.Config.Conventions.FieldManager)
	}
	c.Drift = drift.Changed(desired, c.Before, &t.Pipeline.Downstreams[c.Index].View)
}

// noteReportedDrift is about drift that drift.policy Report leaves alone.
func (t *dryRun) noteReportedDrift(o operator.Outcome, answer *unstructured.Unstructured) {
	if answer == nil {
		return
	}
	c := t.change(o, Leave)
	c.After = answer
	t.explain(c, answer)
	t.changes[o.Object] = c
}

// previewRecreate is about an object that would be deleted and recreated. The API server is asked under another name,
// since its own is taken.
func (t *dryRun) previewRecreate(ctx context.Context, o operator.Outcome, in operator.Input) {
	at := act.Target(t.Pipeline.Settings, o.Downstream, o.Target)
	c := t.change(o, Recreate)
	c.Document = t.documentFor(o, in)
	if made, err := t.API.DryRunCreate(ctx, at, c.Document); err == nil {
		made.SetName(at.Name)
		made.SetGenerateName("")
		c.After = made
	} else {
		c.After = &unstructured.Unstructured{Object: c.Document}
		c.Note = "the API server's result is not known: " + act.Classify(err, t.Pipeline.Downstreams[c.Index].Words).Message
	}
	t.changes[o.Object], t.after[o.Object] = c, t.assumedLive(o, c.Document, in)
}

// previewRefused is about a write that failed. If the failure says nothing about the write itself, the decision is
// kept, and its consequences are worked out without a response.
func (t *dryRun) previewRefused(o operator.Outcome, in operator.Input) bool {
	i := o.Object
	note := inconclusive(t.refusal(o), o.Target)
	if note == "" {
		c := t.change(o, Refuse)
		c.Failure = t.Failures[i]
		c.Document = t.documentFor(o, in)
		t.changes[i] = c
		return false
	}
	delete(t.Failures, i)
	c := t.change(o, ActionOf(o))
	if o.Live != nil && o.Live.NeedsTakeover {
		note += "; which of the fields taken over would be removed is not shown"
	}
	c.Note, c.Document = note, t.documentFor(o, in)
	t.changes[i] = c
	if o.Live == nil {
		c.After = &unstructured.Unstructured{Object: c.Document}
		if apply.Classify(t.refusal(o)).Reason == apply.ReasonNamespaceNotFound && !t.makesNamespace(o.Target.Namespace) {
			return false // it replaces nothing before someone else makes the namespace
		}
	}
	if t.after[i] = t.assumedLive(o, c.Document, in); o.Live == nil {
		return true
	}
	if t.explain(c, nil); c.Before != nil {
		c.After = act.Patched(c.Before, c.Drift, c.Document)
		if len(c.Drift) == 0 {
			c.Action, c.State, c.Reason = None, operator.StateInSync, ""
		}
	}
	return true
}

// makesNamespace reports whether the upstream wants a Namespace of that name.
func (t *dryRun) makesNamespace(name string) bool {
	return slices.ContainsFunc(t.Memory.Desired().Objects, func(o operator.DesiredObject) bool {
		kind := t.Pipeline.Downstreams[o.Downstream].GVK().GroupKind()
		return o.Wanted && o.Target.Name == name && kind == schema.GroupKind{Kind: "Namespace"}
	})
}

// resultOf is what came of the last action at the place of an object.
func (t *dryRun) resultOf(o operator.Outcome) act.Result {
	return t.results[memory.At(o.Downstream, o.Target)]
}

// refusal is why the last write at the place of an object was refused; nil if it was not.
func (t *dryRun) refusal(o operator.Outcome) error {
	var err *apply.Error
	if errors.As(t.resultOf(o).Err, &err) && (err.Verb == "apply" || err.Verb == "patch" || err.Verb == "delete") {
		return err
	}
	return nil
}

// inconclusive says why a refused dry run says nothing about the write; empty if it does.
func inconclusive(err error, at operator.Ref) string {
	switch f := apply.Classify(err); {
	case err == nil:
		return ""
	case f.Reason == apply.ReasonForbidden:
		return "not checked by a dry run, which you are not allowed to make: " + f.Message
	case f.Reason == apply.ReasonNamespaceNotFound:
		return fmt.Sprintf("not checked by a dry run: namespace %s does not exist yet", at.Namespace)
	case apply.DryRunUnsupported(err):
		return "not checked by a dry run: " + f.Message
	}
	return ""
}

// documentFor is what would be sent.
func (t *dryRun) documentFor(o operator.Outcome, in operator.Input) map[string]any {
	if o.Action == operator.ActionDelete {
		o.Live = nil // the new one begins again
	}
	doc, err := t.DocumentOf(in.Desired, o.Object, o.Live)
	if err != nil {
		return nil // it was rendered a moment ago
	}
	return doc
}

// assumedLive is the object as it would be if the API server changed nothing of the document.
func (t *dryRun) assumedLive(o operator.Outcome, doc map[string]any, in operator.Input) *drift.Live {
	u := (&unstructured.Unstructured{Object: doc}).DeepCopy()
	u.SetUID(o.UID)
	live := t.Pipeline.Downstreams[o.Downstream].View.Live(u)
	w := in.Desired.Objects[o.Object]
	live.Namespace, live.Name = w.Target.Namespace, w.Target.Name
	live.P, live.Hash, live.Managed, live.Extra = w.Sum, w.Hash, true, false
	if live.Secret != nil { // the document has placeholders
		live.Secret.Values = nil
		for _, from := range append([]*drift.Live{o.Live}, o.ValuesFrom...) {
			if from != nil && from.Secret != nil {
				live.Secret.Values = append(live.Secret.Values, from.Secret.Values...)
			}
		}
	}
	return live
}

// previewLeftover is about an object that is at no target and would be deleted or released. It reports whether deciding
// again may bring something new.
func (t *dryRun) previewLeftover(o operator.Outcome) bool {
	c := t.leftover(o, ActionOf(o))
	if err := t.refusal(o); err != nil && t.Failures[o.Object] != nil {
		c.Note = inconclusive(err, o.Target)
		if c.Note == "" {
			c.Action, c.Failure, c.Risk = Refuse, t.Failures[o.Object], ""
			return false
		}
		delete(t.Failures, o.Object)
		t.Memory.NoteGone(o.UID, t.Began)
	}
	if o.Action == operator.ActionRelease {
		c.After = t.resultOf(o).Stored
	}
	return true
}
