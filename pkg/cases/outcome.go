package cases

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/redact"
)

// result is the result of a case: the tree that expect is compared with, and what is known about the config.
type result struct {
	tree map[string]any
	// downstreams are the names of the downstreams, in order; nil if the config has errors.
	downstreams []string
	// words are the words that may be shown of documents with values of a Secret, by downstream.
	words map[string]redact.Words
	// identifiers are the paths of the downstreams' identifiers in the status.
	identifiers []fieldpath.Path
}

func refusedWith(errs ...string) result {
	list := make([]any, len(errs))
	for i, e := range errs {
		list[i] = e
	}
	return result{tree: map[string]any{"errors": list}}
}

// outcome is the result of one reconciliation; it implements attempt.Observer.
type outcome struct {
	pipeline *compile.Pipeline
	// written are the paths of the objects that were written.
	written map[string]bool
	// decided has for each downstream the first outcome that was carried out, else the last one; documents has the applied
	// document.
	decided   []operator.Outcome
	documents map[int]map[string]any
	failures  map[int]*operator.Failure
	leftovers []operator.Outcome
	finalizer operator.FinalizerAction
	before    *operator.Outcome
	desired   *operator.Desired
	report    *report.Report
}

// outcomeOf reconciles the upstream once, as run does after an event of it, and returns the outcome.
func (w *caseRun) outcomeOf(ctx context.Context, selected bool) (*outcome, error) {
	if finalizers := w.upstream.GetFinalizers(); len(finalizers) > 0 {
		w.reconciler.Cascades.Note(w.upstream.GetUID(), finalizers)
	}
	if !selected {
		w.reconciler.Deselected.Upstream(w.upstreamRef(), w.upstream.GetUID())
		w.reconciler.Deselected.Namespace([]operator.Ref{{Name: w.upstream.GetNamespace()}}, true)
	}
	w.transport.written = map[string]bool{}
	o := &outcome{pipeline: w.Pipeline, written: w.transport.written,
		documents: map[int]map[string]any{}, failures: map[int]*operator.Failure{}}
	w.reconciler.Observer = o
	w.reconciler.Reconcile(ctx, w.upstreamRef())
	return o, ctx.Err()
}

// Decided implements attempt.Observer.
func (o *outcome) Decided(in operator.Input, d operator.Decision) {
	if in.Desired != nil {
		o.desired = in.Desired
	}
	if len(o.decided) != len(d.Outcomes) {
		o.decided = make([]operator.Outcome, len(d.Outcomes))
	}
	for i, out := range d.Outcomes {
		if before := o.decided[i]; !writes(before) ||
			!o.written[pathOf(&o.pipeline.Downstreams[before.Downstream].Kind, before.Target)] {
			o.decided[i] = out
		}
	}
	for _, out := range d.Leftovers {
		k := slices.IndexFunc(o.leftovers, func(old operator.Outcome) bool { return old.UID == out.UID })
		switch {
		case k < 0:
			o.leftovers = append(o.leftovers, out)
		case !writes(o.leftovers[k]):
			o.leftovers[k] = out
		}
	}
	if o.before == nil {
		o.before = d.Before
	}
	if o.finalizer == operator.FinalizerLeave {
		o.finalizer = d.Finalizer
	}
}

// writes reports whether an outcome writes.
func writes(o operator.Outcome) bool {
	return o.Action != operator.ActionNone && o.Action != operator.ActionCompare
}

// Rendered implements attempt.Observer.
func (o *outcome) Rendered(k int, document map[string]any) { o.documents[k] = document }

// Failed implements attempt.Observer.
func (o *outcome) Failed(k int, f operator.Failure) { o.failures[k] = &f }

// Reported implements attempt.Observer.
func (o *outcome) Reported(r report.Report) { o.report = &r }

// putReport adds what the status says, and what is written back to a row.
func (o *outcome) putReport(out map[string]any, upstream *unstructured.Unstructured) {
	put(out, "conditions", conditionsTree(o.report.Conditions, upstream.GetGeneration() != 0), o.pipeline.StatusEnabled())
	rest := statusTree(o.report.Status)
	put(out, "status", rest, len(rest) > 0)
	put(out, "writeBack", writeBackTree(o.report.Row), o.pipeline.HasRows() && o.pipeline.Config.Source.WriteBack != "")
}

// tree returns the whole outcome in the shape of expect.
func (o *outcome) tree(selected bool, upstream *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	if failed := o.failed(); len(failed) > 0 {
		out = refusedWith(failed...).tree
	}
	if selected {
		put(out, "conditions", []any{}, o.pipeline.StatusEnabled())
	}
	if selected && o.desired != nil && upstream.GetDeletionTimestamp() == nil {
		var invalid []any
		for _, f := range o.desired.Invalid {
			invalid = append(invalid, f)
		}
		put(out, "invalid", invalid, len(invalid) > 0)
	}
	if selected && o.report != nil {
		o.putReport(out, upstream)
	}
	if b := o.before; b != nil {
		out["before"] = outcomeTree(*b, o.documents[operator.BeforeIndex])
	}
	downstreams := map[string]any{}
	for i, decided := range o.decided {
		document := o.documents[i]
		if !writes(decided) {
			document = nil
		}
		d := o.pipeline.Downstreams[decided.Downstream]
		if !d.Several() || decided.Target.Name == "" {
			downstreams[d.Name] = outcomeTree(decided, document)
			continue
		}
		all, ok := downstreams[d.Name].(map[string]any)
		if !ok || all["objects"] == nil {
			all = map[string]any{"objects": map[string]any{}}
			downstreams[d.Name] = all
		}
		all["objects"].(map[string]any)[d.NameOf(decided.Target)] = outcomeTree(decided, document)
	}
	put(out, "downstreams", downstreams, upstream.GetDeletionTimestamp() == nil)
	out["leftovers"] = o.leftoversTree()
	out["finalizer"] = map[operator.FinalizerAction]string{operator.FinalizerLeave: "None", operator.FinalizerAdd: "Add",
		operator.FinalizerRemove: "Remove", operator.FinalizerSwap: "Swap"}[o.finalizer]
	return out
}

// failed returns the messages of failed requests.
func (o *outcome) failed() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(o.failures)) {
		if k != operator.BeforeIndex {
			out = append(out, fmt.Sprintf("applying %s: %s", o.pipeline.Downstreams[o.decided[k].Downstream].Name,
				o.failures[k].Message))
		}
	}
	if f := o.failures[operator.BeforeIndex]; f != nil {
		out = append(out, fmt.Sprintf("applying %s: %s", operator.BeforeName, f.Message))
	}
	return out
}

func outcomeTree(o operator.Outcome, document map[string]any) map[string]any {
	out := map[string]any{"state": string(o.State)}
	put(out, "message", o.Message, o.Message != "")
	put(out, "document", document, document != nil)
	return out
}

// writeBackTree has the parameters of source.writeBack that have a value.
func writeBackTree(state report.RowState) map[string]any {
	out := map[string]any{}
	for name, value := range state.Parameters() {
		put(out, name, value, value != "")
	}
	return out
}

func put(m map[string]any, key string, value any, there bool) {
	if there {
		m[key] = value
	}
}

func (o *outcome) leftoversTree() []any {
	list := []any{}
	for _, left := range o.leftovers {
		action := string(left.Action)
		if action == "" {
			action = "None"
		}
		kind := schema.FromAPIVersionAndKind(left.Live.APIVersion, left.Live.Kind).Kind
		list = append(list, map[string]any{"downstream": o.pipeline.Downstreams[left.Downstream].Name,
			"object": kind + " " + left.Target.String(), "state": string(left.State), "action": action, "message": left.Message})
	}
	return list
}

// conditionsTree includes observedGeneration only if the upstream of the case has a generation.
func conditionsTree(conditions []metav1.Condition, generation bool) []any {
	list := []any{}
	for _, c := range conditions {
		m := map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason}
		put(m, "message", c.Message, c.Message != "")
		put(m, "observedGeneration", c.ObservedGeneration, generation && c.ObservedGeneration != 0)
		list = append(list, m)
	}
	return list
}

// statusTree returns the status without the conditions, which have their own key.
func statusTree(status map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range status {
		if key != "conditions" && key != "observedGeneration" {
			out[key] = value
		}
	}
	return out
}
