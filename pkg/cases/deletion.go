package cases

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

// finalize decides about an upstream that is being deleted, and acts, until something must be waited for or the finalizer
// goes. Without our finalizer the upstream is gone before anything can be done.
func (r *run) finalize() {
	r.decided = nil
	if !r.hasOurFinalizer() || r.Pipeline.Observing() {
		return
	}
	for range rounds {
		in := pipeline.Input{Upstream: r.upstream, HasFinalizer: true, Now: r.now, Cascade: pipeline.CascadeOf(r.upstream.GetFinalizers())}
		hooked := r.Pipeline.Before != nil && !r.Pipeline.SkipsBefore(r.upstream, in.Cascade)
		if hooked {
			in.Before = r.hookFacts()
		}
		if !hooked || r.Pipeline.BeforePassed(in.Before.Record) {
			in.Leftovers = r.Pipeline.Leftovers(r.upstream.GetUID(), nil, r.owned(), r.recorded)
			for i := range in.Leftovers {
				in.Leftovers[i].Asked = in.Leftovers[i].Live.Deleting
			}
		}
		r.last = r.Pipeline.DecideDeletion(in)
		r.note(r.last)
		if !r.actDeletion(in) {
			return
		}
	}
}

// actDeletion carries out what was decided about a deletion. It tells whether there may be more to decide.
func (r *run) actDeletion(in pipeline.Input) bool {
	d := r.last
	if d.Before != nil && (d.WaitsForBefore || d.Before.Action != pipeline.ActionNone) {
		if err := r.actHook(*d.Before, in); err != nil {
			r.failures[pipeline.BeforeIndex] = &pipeline.Failure{Reason: apply.ReasonRejected, Message: err.Error()}
			return false
		}
		if d.WaitsForBefore {
			return d.Before.Action != pipeline.ActionNone
		}
	}
	acted := false
	for _, o := range d.Leftovers {
		if o.Action != pipeline.ActionNone {
			r.remove(o)
			acted = true
		}
	}
	if d.Finalizer == pipeline.FinalizerRemove {
		r.actFinalizer(d.Finalizer)
		return false
	}
	return acted
}

// hookFacts are what is known of the object of deletion.before.
func (r *run) hookFacts() pipeline.BeforeFacts {
	p := r.Pipeline
	f := pipeline.BeforeFacts{Record: p.RecordedBefore(r.upstream), Made: r.hookMade, Inputs: r.inputs}
	places := []pipeline.Ref{}
	if f.Record != nil && f.Record.ObjectName != "" {
		places = append(places, pipeline.Ref{Namespace: f.Record.Namespace, Name: f.Record.ObjectName})
	}
	if !p.BeforePassed(f.Record) {
		f.Desired = p.DesiredBefore(r.upstream, r.inputs)
		places = append(places, f.Desired.Target)
	}
	for _, at := range places {
		if s := r.at(p.Before.Object, at); s != nil && f.Live == nil {
			f.Live = r.live(p.Before.Object, s)
		}
	}
	return f
}

// actHook carries out what was decided about the object of deletion.before.
func (r *run) actHook(o pipeline.Outcome, in pipeline.Input) error {
	p := r.Pipeline
	switch o.Action {
	case pipeline.ActionRecord:
		r.recordHook(p.BeforeRecord(o))
	case pipeline.ActionCreate:
		r.hookDocument = p.BeforeDocument(&in.Before.Desired)
		u, err := r.server.apply(nil, r.hookDocument, p.Config.Conventions.FieldManager)
		if err != nil {
			return err
		}
		r.standing, r.hookMade = append(r.standing, &standing{object: u, known: true}), u.GetUID()
	case pipeline.ActionFree:
		u := r.at(p.Before.Object, o.Target).object
		u.SetFinalizers(r.othersFinalizers(u))
	case pipeline.ActionDelete:
		r.remove(o)
	}
	return nil
}

// recordHook writes into the upstream's status what must stand there before a deletion goes on.
func (r *run) recordHook(record status.Recorded) {
	path, err := fieldpath.Parse(r.Pipeline.Config.Status.Downstreams)
	if err != nil {
		return // the loader lets no such config through
	}
	have, _ := fieldpath.Get(r.upstream.Object, path)
	list := slices.DeleteFunc(status.RecordedFrom(have), func(old status.Recorded) bool { return old.Name == record.Name })
	_ = fieldpath.Set(r.upstream.Object, path, status.RecordedList(append(list, record)))
}
