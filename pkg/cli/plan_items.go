package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// What a plan has beside the actions of a survey.
const (
	// actionFinalizer: the finalizer would be put on the upstream, or taken off it.
	actionFinalizer = "finalizer"
	// actionLeftover: an object that nothing looks after.
	actionLeftover = "leftover"
)

// planItem is one object of a plan.
type planItem struct {
	operator   string
	upstream   objectRef
	downstream string
	object     objectRef
	action     string
	state      string
	reason     string
	risk       string
	note       string
	failure    *pipeline.Failure
	diffs      []fieldDiff
	before     map[string]any
	after      map[string]any
	// hash is where the hash rides, which changes with everything else.
	hash fieldpath.Path
	// words are all that is shown of the object where it can hold values of a Secret.
	words redact.Words
}

// objectRef says which object is meant.
type objectRef struct {
	gvk schema.GroupVersionKind
	at  pipeline.Ref
	uid string
}

func (o objectRef) String() string { return o.gvk.Kind + " " + o.at.String() }

// planning makes a plan and prints it as it goes.
type planning struct {
	options *planOptions
	line    *progressLine
	printer planPrinter
	counts  map[string]int
}

// planPrinter writes items in their order. stop ends an incomplete plan, after an error.
type planPrinter interface {
	item(planItem) error
	stop() error
	end(counts map[string]int) error
}

func newPlanning(o *planOptions, line *progressLine) *planning {
	p := &planning{options: o, line: line, counts: map[string]int{}}
	if o.output.value == "json" {
		p.printer = &planJSON{w: o.streams.Out}
	} else {
		p.printer = &planText{w: o.streams.Out, painter: o.color.painter(o.streams), noDiff: o.noDiff}
	}
	return p
}

// operator plans one operator.
func (p *planning) operator(ctx context.Context, v *survey.Survey) error {
	return p.visit(ctx, v, v.Refs(), func(f *reconcile.Finding) error { return p.finding(v.Pipeline(), f) })
}

// visit looks at upstreams, and says where the operator's guard would hold up what is found. It counts all upstreams, so
// nothing is reported of one namespace alone.
func (p *planning) visit(ctx context.Context, v *survey.Survey, refs []pipeline.Ref, plan func(*reconcile.Finding) error) error {
	var sum guard.Survey
	err := v.Visit(ctx, refs, func(f *reconcile.Finding) error {
		sum.Take(f.Ref, f.GuardCount, f.GuardDigest)
		return plan(f)
	})
	op := v.Pipeline().Config
	if err != nil || op.Guard == nil || p.options.namespace() != "" {
		return err
	}
	exceeded := guard.Exceeded(op, sum.Count)
	switch digest := sum.Digest(); {
	case exceeded == "":
	case p.isConfirmed(ctx, op.Guard, digest):
		p.line.note("operator %s: %s: that is confirmed, with the digest %s, so run does it", v.Pipeline().Name, exceeded, digest)
	default:
		p.line.note("operator %s: %s: run waits until that is confirmed, with the digest %s", v.Pipeline().Name, exceeded, digest)
	}
	return nil
}

// isConfirmed reports whether a change is confirmed already. A ConfigMap that cannot be read confirms nothing.
func (p *planning) isConfirmed(ctx context.Context, g *config.Guard, digest string) bool {
	if g.Confirmed == digest {
		return true
	}
	if g.Confirm == nil {
		return false
	}
	cfg, err := p.options.connection.rest()
	if err != nil {
		return false
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return false
	}
	cm, err := client.Resource(confirmationResource).Namespace(g.Confirm.Namespace).Get(ctx, g.Confirm.ConfigMap, metav1.GetOptions{})
	if err != nil {
		return false
	}
	value, _, _ := unstructured.NestedString(cm.Object, "data", g.Confirm.Key)
	return value == digest
}

// finding plans one upstream.
func (p *planning) finding(pl *pipeline.Pipeline, f *reconcile.Finding) error {
	up := upstreamOf(pl, f)
	if err := p.finalizer(pl, f, up); err != nil {
		return err
	}
	for _, c := range f.Changes {
		if isAboutNothing(c) {
			continue
		}
		item := itemOf(pl, f, up, c)
		if c.State == pipeline.StateInvalid {
			item.reason = invalidity(f)
		}
		if err := p.add(item); err != nil {
			return err
		}
	}
	for _, r := range f.Forgotten {
		item := planItem{operator: f.Operator, upstream: up, downstream: r.Name, action: actionLeftover, note: r.Note, object: forgottenRef(r),
			reason: fmt.Sprintf("the status records it for downstream %s, which the config no longer has, or has with another kind", r.Name) +
				toDelete(f, forgottenRef(r))}
		if err := p.add(item); err != nil {
			return err
		}
	}
	return nil
}

// reasonOf is why a change is what it is, and for what is left over, how to delete it.
func reasonOf(f *reconcile.Finding, c reconcile.Change) string {
	if c.Action == reconcile.ChangeLeftover {
		return c.Reason + toDelete(f, objectOf(c))
	}
	return c.Reason
}

// toDelete is the command that deletes what is left over, or what would be lost by that, in words that follow others.
func toDelete(f *reconcile.Finding, o objectRef) string {
	var inside []objectRef
	for _, c := range f.Changes {
		if !c.Theirs && c.State != pipeline.StateUnwanted {
			inside = append(inside, objectOf(c))
		}
	}
	for _, r := range f.Forgotten {
		inside = append(inside, forgottenRef(r))
	}
	for _, other := range inside {
		if pipeline.Contains(o.gvk, o.at.Name, other.gvk, other.at) {
			return fmt.Sprintf("; do not delete it: %s would be deleted with it", other)
		}
	}
	command := "kubectl delete " + strings.ToLower(o.gvk.Kind)
	if o.gvk.Group != "" {
		command += "." + o.gvk.Group
	}
	if command += " " + o.at.Name; o.at.Namespace != "" {
		command += " -n " + o.at.Namespace
	}
	return "; to delete it: " + command
}

func forgottenRef(r reconcile.Forgotten) objectRef {
	return objectRef{schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), pipeline.Ref{Namespace: r.Namespace, Name: r.ObjectName},
		string(r.UID)}
}

// invalidity says which rules refuse an upstream.
func invalidity(f *reconcile.Finding) string {
	var parts []string
	for _, failure := range f.Desired.Invalid {
		parts = append(parts, failure.String())
	}
	return strings.Join(parts, "; ") + ": existing objects are left alone"
}

func upstreamOf(pl *pipeline.Pipeline, f *reconcile.Finding) objectRef {
	if f.Ref == (pipeline.Ref{}) {
		return objectRef{gvk: pl.Upstream.GVK, at: pipeline.Ref{Name: "-"}}
	}
	up := objectRef{gvk: pl.Upstream.GVK, at: f.Ref}
	if f.Upstream != nil {
		up.uid = string(f.Upstream.GetUID())
	}
	return up
}

func (p *planning) finalizer(pl *pipeline.Pipeline, f *reconcile.Finding, up objectRef) error {
	text := finalizerText(pl, f)
	if text == "" {
		return nil
	}
	return p.add(planItem{operator: f.Operator, upstream: up, object: up, action: actionFinalizer, reason: text})
}

// finalizerText says what happens to the upstream's finalizer; empty if nothing does.
func finalizerText(pl *pipeline.Pipeline, f *reconcile.Finding) string {
	name := pl.Config.Conventions.Finalizer
	switch f.Finalizer {
	case pipeline.FinalizerAdd:
		return name + " to be added"
	case pipeline.FinalizerRemove:
		return name + " to be removed"
	case pipeline.FinalizerSwap:
		return name + " to replace " + pl.PreviousFinalizer()
	}
	return ""
}

// itemOf is a change as a plan has it.
func itemOf(pl *pipeline.Pipeline, f *reconcile.Finding, up objectRef, c reconcile.Change) planItem {
	item := planItem{operator: f.Operator, upstream: up, downstream: c.Downstream, object: objectOf(c), action: string(c.Action),
		state: string(c.State), reason: reasonOf(f, c), risk: c.Risk, note: c.Note, failure: c.Failure,
		before: contentOf(c.Before), after: contentOf(c.After),
		words: wordsOf(pl, c.Index)}
	if item.hash = fieldpath.New("metadata", "annotations", pl.Config.Conventions.Hash.Annotation); pl.Config.Conventions.Hash.Label != "" {
		item.hash = fieldpath.New("metadata", "labels", pl.Config.Conventions.Hash.Label)
	}
	switch c.Action {
	case reconcile.ChangeCreate:
		item.diffs = created(c.Document, item.words)
	case reconcile.ChangeDelete, reconcile.ChangeSupersede, reconcile.ChangeNone:
	case reconcile.ChangeRefuse:
		if c.Before != nil && c.Document != nil {
			item.diffs = fieldDiffs(c, item.words)
		}
	default:
		if c.After != nil {
			item.diffs = diffDocuments(item.before, item.after, item.words)
		}
		if c.Action == reconcile.ChangeRepair || c.Action == reconcile.ChangeLeave {
			item.diffs = withWriters(item.diffs, c.Drift)
		}
		if item.note == "" && c.Before != nil && c.After != nil && len(item.diffs) == 0 && c.Action.Writes() {
			item.note = "no value changes, only who owns the fields"
		}
	}
	return item
}

// withWriters adds who wrote a field last, where it is no longer as it was applied.
func withWriters(list []fieldDiff, found []drift.Difference) []fieldDiff {
	for i := range list {
		for _, d := range found {
			if d.Path.HasPrefix(list[i].path) && d.Have != nil {
				list[i].writer = d.Manager
			}
		}
	}
	return list
}

// fieldDiffs are our fields as they are and as they were wanted, where the API server made nothing of them.
func fieldDiffs(c reconcile.Change, words redact.Words) []fieldDiff {
	var list []fieldDiff
	for _, d := range diffDocuments(contentOf(c.Before), c.Document, words) {
		if d.after != nil { // what only the live object has is not ours to take away
			list = append(list, d)
		}
	}
	return list
}

// created are the fields of a new document, less what the line above them says already.
func created(doc map[string]any, words redact.Words) []fieldDiff {
	identity := [][]string{{"apiVersion"}, {"kind"}}
	list := slices.DeleteFunc(diffDocuments(nil, doc, words), func(d fieldDiff) bool {
		return slices.ContainsFunc(identity, func(path []string) bool { return d.path.Equal(fieldpath.New(path...)) })
	})
	for i := range list {
		if meta, ok := list[i].after.(map[string]any); ok && list[i].path.Equal(fieldpath.New("metadata")) {
			meta = maps.Clone(meta)
			delete(meta, "name")
			delete(meta, "namespace")
			list[i].after = meta
		}
	}
	return list
}

func contentOf(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	u.SetManagedFields(nil)
	return u.Object
}

// add counts an item, and prints it where it is worth it.
func (p *planning) add(item planItem) error {
	p.counts[item.action]++
	if item.action == string(reconcile.ChangeNone) {
		return nil
	}
	p.line.clear()
	return p.printer.item(item)
}

// end prints the counts. The error is the exit code that says that something would change.
func (p *planning) end() error {
	if err := p.printer.end(p.counts); err != nil {
		return err
	}
	changes := p.counts[actionFinalizer]
	for action, n := range p.counts {
		if reconcile.ChangeAction(action).Writes() && action != actionLeftover && action != actionFinalizer {
			changes += n
		}
	}
	if len(p.options.against.files) > 0 {
		changes += p.counts[actionLeftover]
	}
	if changes > 0 {
		return &exitError{code: exitChanges}
	}
	return nil
}
