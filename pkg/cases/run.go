package cases

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// rounds bounds how often a case decides again after what was decided has been carried out.
const rounds = 5

// run is one look at an upstream: the decisions of run, carried out in memory.
type run struct {
	pipeline.Compiled
	server   *server
	upstream *unstructured.Unstructured
	selected bool
	inputs   pipeline.Inputs
	wish     *pipeline.Desired
	now      time.Time
	recorded []status.Recorded
	standing []*standing
	// verdicts and baselines are by downstream, as run remembers them.
	verdicts  []pipeline.Verdict
	baselines []*drift.Sum
	failures  map[int]*pipeline.Failure

	// hookMade is the uid of the object of deletion.before.
	hookMade types.UID

	last pipeline.Decision
	// decided has the outcome of each downstream that the first look came to, documents what was applied for it.
	decided   []pipeline.Outcome
	documents map[int]map[string]any
	leftovers []pipeline.Outcome
	finalizer pipeline.FinalizerAction
	hook      *pipeline.Outcome
	// hookDocument is what was made before a deletion.
	hookDocument map[string]any
}

// standing is an object in the cluster of a case.
type standing struct {
	object *unstructured.Unstructured
	// known is true where we made it, or saw it with our mark while its uid was recorded.
	known bool
	// immutable is true where the API server refuses changes.
	immutable bool
}

// look decides and acts until there is nothing more to do, as run does it in one reconcile.
func (r *run) look() {
	n := len(r.Pipeline.Downstreams)
	r.verdicts, r.baselines, r.failures = make([]pipeline.Verdict, n), make([]*drift.Sum, n), map[int]*pipeline.Failure{}
	r.decided, r.documents = make([]pipeline.Outcome, n), map[int]map[string]any{}
	if r.deleted() {
		r.finalize()
		return
	}
	act := r.act
	if r.Pipeline.Observing() {
		act = r.observe
	}
	for range rounds {
		r.last = r.Pipeline.Decide(r.gather())
		r.note(r.last)
		if !r.last.Pending() || !act() {
			return
		}
	}
}

func (r *run) deleted() bool { return r.upstream.GetDeletionTimestamp() != nil }

func (r *run) hasFinalizer(name string) bool {
	return name != "" && slices.Contains(r.upstream.GetFinalizers(), name)
}

func (r *run) hasOurFinalizer() bool {
	return slices.ContainsFunc(r.Pipeline.Config.Conventions.Finalizers(), r.hasFinalizer)
}

// gather puts together what the decision depends on.
func (r *run) gather() pipeline.Input {
	in := pipeline.Input{Upstream: r.upstream, Desired: r.wish, Selected: r.selected, HasFinalizer: r.hasOurFinalizer(),
		HasPreviousFinalizer: r.hasFinalizer(r.Pipeline.PreviousFinalizer()), Now: r.now}
	if !r.selected {
		in.Leftovers = r.Pipeline.Leftovers(r.upstream.GetUID(), nil, r.owned(), r.recorded)
		return in
	}
	in.Facts = make([]pipeline.Facts, len(r.Pipeline.Downstreams))
	for i, d := range r.Pipeline.Downstreams {
		in.Facts[i] = r.facts(i, d)
	}
	in.Leftovers = slices.DeleteFunc(r.Pipeline.Leftovers(r.upstream.GetUID(), r.wish, r.owned(), r.recorded), func(own pipeline.Owned) bool {
		return slices.ContainsFunc(in.Facts, func(f pipeline.Facts) bool { return f.Live != nil && f.Live.UID == own.Live.UID })
	})
	return in
}

func (r *run) facts(i int, d *pipeline.Downstream) pipeline.Facts {
	var f pipeline.Facts
	rec := r.recordedAs(d.Name)
	at, ok := r.whereabouts(i, rec)
	if !ok {
		return f
	}
	if rec != nil {
		f.Finished, f.Failed = rec.Done(), rec.State == status.StateFailed
		f.RecordedAt = pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}
	}
	s := r.at(d, at)
	if s == nil {
		return f
	}
	f.Live = r.live(d, s)
	if rec != nil && rec.UID == f.Live.UID {
		f.RecordedHash = rec.Hash
	}
	f.Trusted = s.known || r.Pipeline.TrustsStatus() &&
		slices.ContainsFunc(r.recorded, func(rec status.Recorded) bool { return rec.UID == f.Live.UID })
	f.Baseline, f.Verdict = r.baselines[i], r.verdicts[i]
	return f
}

// whereabouts is where a downstream stands: where it is desired, or, while that cannot be told, where the
// status says it was.
func (r *run) whereabouts(i int, rec *status.Recorded) (pipeline.Ref, bool) {
	if w := r.wish; len(w.Invalid) == 0 && w.Downstreams[i].Err == nil {
		return w.Downstreams[i].Target, w.Downstreams[i].Wanted
	}
	if rec == nil {
		return pipeline.Ref{}, false
	}
	return pipeline.Ref{Namespace: rec.Namespace, Name: rec.ObjectName}, true
}

func (r *run) recordedAs(name string) *status.Recorded {
	for i := range r.recorded {
		if r.recorded[i].Name == name {
			return &r.recorded[i]
		}
	}
	return nil
}

func (r *run) at(d *pipeline.Downstream, at pipeline.Ref) *standing {
	for _, s := range r.standing {
		u := s.object
		if u.GroupVersionKind().GroupKind() == d.GVK().GroupKind() && u.GetNamespace() == at.Namespace && u.GetName() == at.Name {
			return s
		}
	}
	return nil
}

func (r *run) live(d *pipeline.Downstream, s *standing) *drift.Live {
	live, err := d.View.Live(s.object)
	if err != nil {
		panic(err) // there is an object
	}
	return live
}

// owned are the objects that bear the upstream's mark, by the downstream in whose watch they are seen.
func (r *run) owned() [][]*drift.Live {
	owned := make([][]*drift.Live, len(r.Pipeline.Downstreams))
	for i, d := range r.Pipeline.Downstreams {
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
func (r *run) note(d pipeline.Decision) {
	for i, o := range d.Outcomes {
		if !changes(r.decided[i]) || r.Pipeline.Observing() {
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
	if r.hook == nil {
		r.hook = d.Before
	}
	if r.finalizer == pipeline.FinalizerLeave {
		r.finalizer = d.Finalizer
	}
}

// changes tells an outcome that writes from one that asks or does nothing.
func changes(o pipeline.Outcome) bool {
	return o.Action != pipeline.ActionNone && o.Action != pipeline.ActionCompare
}

// report is what the status says after the look.
func (r *run) report(ctx context.Context) pipeline.Report {
	if r.deleted() {
		return r.Pipeline.ReportDeletion(r.upstream, r.last, r.failures, metav1.NewTime(r.now))
	}
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
	return r.Pipeline.Report(ctx, r.upstream, r.inputs, r.wish, results, metav1.NewTime(r.now))
}

func (r *run) refusals() []string {
	var out []string
	for i, d := range r.Pipeline.Downstreams {
		if f := r.failures[i]; f != nil {
			out = append(out, fmt.Sprintf("applying %s: %s", d.Name, f.Message))
		}
	}
	if f := r.failures[pipeline.BeforeIndex]; f != nil {
		out = append(out, fmt.Sprintf("applying %s: %s", pipeline.BeforeName, f.Message))
	}
	return out
}
