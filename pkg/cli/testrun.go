package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// caseRounds bounds how often a case decides again after what was decided has been carried out.
const caseRounds = 5

// caseRun is one look at an upstream: the decisions of run, carried out in memory.
type caseRun struct {
	compiled
	server   *caseServer
	upstream *unstructured.Unstructured
	selected bool
	inputs   pipeline.Inputs
	wish     *pipeline.Wish
	now      time.Time
	recorded []status.Recorded
	standing []*standing
	// verdicts and baselines are by downstream, as run remembers them.
	verdicts  []pipeline.Verdict
	baselines []*drift.Sum
	failures  map[int]*pipeline.Failure

	last pipeline.Decision
	// decided has the outcome of each downstream that the first look came to, documents what was applied for it.
	decided   []pipeline.Outcome
	documents map[int]map[string]any
	leftovers []pipeline.Outcome
	finalizer pipeline.FinalizerWish
}

// standing is an object in the cluster of a case.
type standing struct {
	object *unstructured.Unstructured
	// known is true where we made it, or saw it with our mark while its uid was recorded.
	known bool
}

// look decides and acts until there is nothing more to do, as run does it in one reconcile.
func (r *caseRun) look(ctx context.Context) {
	n := len(r.pipeline.Downstreams)
	r.verdicts, r.baselines, r.failures = make([]pipeline.Verdict, n), make([]*drift.Sum, n), map[int]*pipeline.Failure{}
	r.decided, r.documents = make([]pipeline.Outcome, n), map[int]map[string]any{}
	if r.upstream.GetDeletionTimestamp() != nil {
		r.finish()
		return
	}
	for range caseRounds {
		in := r.gather()
		r.last = r.pipeline.Decide(in)
		r.note(r.last)
		if !r.last.Pending() || !r.act(in) {
			return
		}
	}
}

// finish decides about an upstream that is being deleted. Without our finalizer it is gone before anything can be done.
func (r *caseRun) finish() {
	r.decided = nil
	if !r.hasFinalizer() {
		return
	}
	in := pipeline.Input{Upstream: r.upstream, HasFinalizer: true, Now: r.now}
	in.Leftovers = r.pipeline.Leftovers(nil, r.owned(), r.recorded)
	r.last = r.pipeline.DecideDeletion(in)
	r.note(r.last)
	r.finalizer = pipeline.FinalizerRemove
}

func (r *caseRun) hasFinalizer() bool {
	f := r.pipeline.Config.Conventions.Finalizer
	return f != "" && slices.Contains(r.upstream.GetFinalizers(), f)
}

// gather puts together what the decision depends on.
func (r *caseRun) gather() pipeline.Input {
	in := pipeline.Input{Upstream: r.upstream, Wish: r.wish, Selected: r.selected, HasFinalizer: r.hasFinalizer(), Now: r.now}
	if !r.selected {
		in.Leftovers = r.pipeline.Leftovers(nil, r.owned(), r.recorded)
		return in
	}
	in.Facts = make([]pipeline.Facts, len(r.pipeline.Downstreams))
	for i, d := range r.pipeline.Downstreams {
		in.Facts[i] = r.facts(i, d)
	}
	in.Leftovers = slices.DeleteFunc(r.pipeline.Leftovers(r.wish, r.owned(), r.recorded), func(own pipeline.Owned) bool {
		return slices.ContainsFunc(in.Facts, func(f pipeline.Facts) bool { return f.Live != nil && f.Live.UID == own.Live.UID })
	})
	return in
}

func (r *caseRun) facts(i int, d *pipeline.Downstream) pipeline.Facts {
	var f pipeline.Facts
	rec := r.recordedAs(d.Name)
	at, ok := r.whereabouts(i, rec)
	if !ok {
		return f
	}
	if rec != nil {
		f.RecordedHash, f.Finished = rec.Hash, rec.State == status.StateFinished
	}
	s := r.at(d, at)
	if s == nil {
		return f
	}
	f.Live = r.live(d, s)
	f.Known = s.known
	f.Trusted = s.known || slices.ContainsFunc(r.recorded, func(rec status.Recorded) bool { return rec.UID == f.Live.UID })
	f.Baseline, f.Verdict = r.baselines[i], r.verdicts[i]
	return f
}

// whereabouts is where a downstream stands: where the wish wants it, or, while the wish cannot be told, where the
// status says it was.
func (r *caseRun) whereabouts(i int, rec *status.Recorded) (pipeline.Ref, bool) {
	if w := r.wish; len(w.Invalid) == 0 && w.Downstreams[i].Err == nil {
		return w.Downstreams[i].Target, w.Downstreams[i].Wanted
	}
	if rec == nil {
		return pipeline.Ref{}, false
	}
	return pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, true
}

func (r *caseRun) recordedAs(name string) *status.Recorded {
	for i := range r.recorded {
		if r.recorded[i].Name == name {
			return &r.recorded[i]
		}
	}
	return nil
}

func (r *caseRun) at(d *pipeline.Downstream, at pipeline.Ref) *standing {
	for _, s := range r.standing {
		u := s.object
		if u.GroupVersionKind().GroupKind() == d.GVK().GroupKind() && u.GetNamespace() == at.Namespace && u.GetName() == at.Name {
			return s
		}
	}
	return nil
}

func (r *caseRun) live(d *pipeline.Downstream, s *standing) *drift.Live {
	live, err := d.View.Live(s.object)
	if err != nil {
		panic(err) // there is an object
	}
	return live
}

// owned are the objects that bear the upstream's mark, by the downstream in whose watch they are seen.
func (r *caseRun) owned() [][]*drift.Live {
	owned := make([][]*drift.Live, len(r.pipeline.Downstreams))
	for i, d := range r.pipeline.Downstreams {
		for _, s := range r.standing {
			if s.object.GroupVersionKind().GroupKind() != d.GVK().GroupKind() || !d.Selector.AsSelector().Matches(labels.Set(s.object.GetLabels())) {
				continue
			}
			if live := r.live(d, s); pipeline.Marked(live, r.upstream.GetUID()) {
				owned[i] = append(owned[i], live)
			}
		}
	}
	return owned
}

// note keeps of each object the first outcome that changes something, else the last one.
func (r *caseRun) note(d pipeline.Decision) {
	for i, o := range d.Outcomes {
		if !changes(r.decided[i]) {
			r.decided[i] = o
		}
	}
	for _, o := range d.Leftovers {
		k := slices.IndexFunc(r.leftovers, func(old pipeline.Outcome) bool { return old.UID == o.UID })
		switch {
		case k < 0:
			r.leftovers = append(r.leftovers, o)
		case !changes(r.leftovers[k]):
			r.leftovers[k] = o
		}
	}
	if r.finalizer == pipeline.FinalizerLeave {
		r.finalizer = d.Finalizer
	}
}

// changes tells an outcome that writes from one that asks or does nothing.
func changes(o pipeline.Outcome) bool {
	return o.Action != pipeline.ActionNone && o.Action != pipeline.ActionInspect && o.Action != pipeline.ActionSettle
}

// act carries a decision out. It tells whether anything was done.
func (r *caseRun) act(in pipeline.Input) bool {
	acted := false
	finalizer := r.pipeline.Config.Conventions.Finalizer
	switch r.last.Finalizer {
	case pipeline.FinalizerAdd:
		r.upstream.SetFinalizers(append(r.upstream.GetFinalizers(), finalizer))
		acted = true
	case pipeline.FinalizerRemove:
		r.upstream.SetFinalizers(slices.DeleteFunc(r.upstream.GetFinalizers(), func(f string) bool { return f == finalizer }))
		acted = true
	}
	for _, o := range append(slices.Clone(r.last.Outcomes), r.last.Leftovers...) {
		if o.Action == pipeline.ActionNone || r.failures[o.Downstream] != nil {
			continue
		}
		if err := r.carryOut(o, in); err != nil {
			r.failures[o.Downstream] = &pipeline.Failure{Reason: apply.ReasonRejected, Message: err.Error()}
			continue
		}
		acted = true
	}
	return acted
}

func (r *caseRun) carryOut(o pipeline.Outcome, in pipeline.Input) error {
	d := r.pipeline.Downstreams[o.Downstream]
	switch o.Action {
	case pipeline.ActionCreate, pipeline.ActionApply:
		return r.apply(o, d)
	case pipeline.ActionDelete, pipeline.ActionRelease:
		r.remove(o)
	case pipeline.ActionInspect:
		want, err := r.fresh(o)
		if err != nil {
			return err
		}
		v := &r.verdicts[o.Downstream]
		v.Inspected, v.Beyond = true, r.pipeline.Beyond(r.at(d, o.Target).object, want)
		r.at(d, o.Target).known = len(v.Beyond) == 0
	case pipeline.ActionSettle:
		return r.settle(o, d)
	}
	return nil
}

func (r *caseRun) document(o pipeline.Outcome, live *drift.Live) (map[string]any, error) {
	return r.pipeline.Document(r.wish, o.Downstream, r.upstream, r.inputs, live)
}

// fresh is what the API server would make of the document where nothing stands.
func (r *caseRun) fresh(o pipeline.Outcome) (*unstructured.Unstructured, error) {
	document, err := r.document(o, nil)
	if err != nil {
		return nil, err
	}
	return r.server.apply(nil, document, r.pipeline.Config.Conventions.FieldManager)
}

// apply makes or changes what a downstream asks for.
func (r *caseRun) apply(o pipeline.Outcome, d *pipeline.Downstream) error {
	s, live := &standing{}, (*drift.Live)(nil)
	if o.Action == pipeline.ActionApply {
		s, live = r.at(d, o.Target), o.Live
	}
	document, err := r.document(o, live)
	if err != nil {
		return err
	}
	r.documents[o.Downstream] = document
	applied, err := r.server.apply(s.object, document, r.pipeline.Config.Conventions.FieldManager)
	if err != nil {
		return err
	}
	if extras := drift.Extras(applied, document, d.View.Exclusive); len(extras) > 0 {
		applied = &unstructured.Unstructured{Object: drift.Without(applied.Object, extras)}
	}
	if s.object == nil {
		r.standing = append(r.standing, s)
	}
	s.object, s.known = applied, true
	if now := r.live(d, s); now.P != r.wish.Downstreams[o.Downstream].Sum {
		r.baselines[o.Downstream] = &now.P
	}
	return nil
}

// remove takes an object away, or, where finalizers hold it, begins to.
func (r *caseRun) remove(o pipeline.Outcome) {
	i := slices.IndexFunc(r.standing, func(s *standing) bool { return s.object.GetUID() == o.UID })
	if i < 0 {
		return
	}
	if u := r.standing[i].object; o.Action == pipeline.ActionDelete && len(u.GetFinalizers()) > 0 {
		deleted := metav1.NewTime(r.now)
		u.SetDeletionTimestamp(&deleted)
		return
	}
	r.standing = slices.Delete(r.standing, i, i+1)
}

// settle asks whether an apply would change anything.
func (r *caseRun) settle(o pipeline.Outcome, d *pipeline.Downstream) error {
	document, err := r.document(o, o.Live)
	if err != nil {
		return err
	}
	answer, err := r.server.apply(r.at(d, o.Target).object, document, r.pipeline.Config.Conventions.FieldManager)
	if err != nil {
		return err
	}
	would := r.live(d, &standing{object: answer})
	same := would.P == o.Live.P && would.Hash == o.Live.Hash && !o.Live.Extra
	r.verdicts[o.Downstream].Settled = &same
	return nil
}

// report is what the status says after the look.
func (r *caseRun) report(ctx context.Context) pipeline.Report {
	results := make([]pipeline.Result, len(r.last.Outcomes))
	for i, o := range r.last.Outcomes {
		results[i] = pipeline.Result{Outcome: o, Live: o.Live, Failure: r.failures[i]}
		if o.Theirs || o.State == pipeline.StateConflict {
			results[i].Live = nil
		}
	}
	for _, o := range r.last.Leftovers {
		if res := &results[o.Downstream]; res.Live == nil && o.Action == pipeline.ActionNone && !o.Live.Deleting {
			res.Live = o.Live
		}
	}
	return r.pipeline.Report(ctx, r.upstream, r.inputs, r.wish, results, metav1.NewTime(r.now))
}

func (r *caseRun) refusals() []string {
	var out []string
	for i, d := range r.pipeline.Downstreams {
		if f := r.failures[i]; f != nil {
			out = append(out, fmt.Sprintf("applying %s: %s", d.Name, f.Message))
		}
	}
	return out
}
