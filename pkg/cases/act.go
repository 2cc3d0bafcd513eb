package cases

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// act carries a decision out. It tells whether anything was done.
func (r *run) act() bool {
	acted := r.actFinalizer(r.last.Finalizer)
	for _, o := range append(slices.Clone(r.last.Outcomes), r.last.Leftovers...) {
		if o.Action == pipeline.ActionNone || r.failures[o.Downstream] != nil {
			continue
		}
		if err := r.carryOut(o); err != nil {
			r.failures[o.Downstream] = &pipeline.Failure{Reason: apply.ReasonRejected, Message: err.Error()}
			continue
		}
		acted = true
	}
	return acted
}

// actFinalizer does to the upstream's finalizers what was decided.
func (r *run) actFinalizer(wish pipeline.FinalizerAction) bool {
	if wish == pipeline.FinalizerLeave {
		return false
	}
	list := r.othersFinalizers(r.upstream)
	if wish != pipeline.FinalizerRemove {
		list = append(list, r.Pipeline.Config.Conventions.Finalizer)
	}
	r.upstream.SetFinalizers(list)
	return true
}

// othersFinalizers are an object's finalizers without ours.
func (r *run) othersFinalizers(u *unstructured.Unstructured) []string {
	ours := r.Pipeline.Config.Conventions.Finalizers()
	return slices.DeleteFunc(u.GetFinalizers(), func(name string) bool { return slices.Contains(ours, name) })
}

func (r *run) carryOut(o pipeline.Outcome) error {
	d := r.Pipeline.Downstreams[o.Downstream]
	switch o.Action {
	case pipeline.ActionCreate, pipeline.ActionApply:
		return r.apply(o, d)
	case pipeline.ActionDelete, pipeline.ActionRelease:
		r.remove(o)
	case pipeline.ActionCompare:
		return r.settle(o, d)
	}
	return nil
}

func (r *run) document(o pipeline.Outcome, live *drift.Live) (map[string]any, error) {
	return r.Pipeline.Document(r.wish, o.Downstream, r.upstream, r.inputs, live)
}

// apply makes or changes what a downstream asks for.
func (r *run) apply(o pipeline.Outcome, d *pipeline.Downstream) error {
	s, live, manager := &standing{}, (*drift.Live)(nil), r.Pipeline.Config.Conventions.FieldManager
	if o.Action == pipeline.ActionApply {
		s = r.at(d, o.Target)
		s.object = apply.WithFieldsTakenOver(s.object, manager, d.View.TakeoverManagers())
		live = r.live(d, s)
	}
	document, err := r.document(o, live)
	if err != nil {
		return err
	}
	r.documents[o.Downstream] = document
	applied, err := r.server.apply(s.object, document, manager)
	if err != nil {
		return err
	}
	if s.immutable && !same(asked(s.object), asked(applied)) {
		return r.refuse(o, d)
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

// errImmutable is what an API server says in many ways.
var errImmutable = errors.New("the change is to an immutable field")

// refuse is what comes of a change that the API server never allows: the config may ask for another object then.
func (r *run) refuse(o pipeline.Outcome, d *pipeline.Downstream) error {
	if d.Config.UpdatePolicy != config.UpdateRecreate {
		return errImmutable
	}
	r.verdicts[o.Downstream].Immutable = true
	r.decided[o.Downstream] = pipeline.Outcome{}
	return nil
}

// remove takes an object away, or, where finalizers hold it, begins to.
func (r *run) remove(o pipeline.Outcome) {
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
func (r *run) settle(o pipeline.Outcome, d *pipeline.Downstream) error {
	document, err := r.document(o, o.Live)
	if err != nil {
		return err
	}
	manager, before := r.Pipeline.Config.Conventions.FieldManager, r.at(d, o.Target).object
	answer, err := r.server.apply(before, document, manager)
	if err != nil {
		return err
	}
	would := r.live(d, &standing{object: answer})
	same := would.P == o.Live.P && would.Hash == o.Live.Hash && !o.Live.Extra
	v := &r.verdicts[o.Downstream]
	if v.SameByDryRun = &same; !same {
		applied, _ := drift.Project(answer, manager)
		v.Contenders = drift.Explain(drift.Changed(applied, before, &d.View))
	}
	return nil
}

// observe does what mode Observe does in the place of acting: it finds out what would be changed. It tells whether that
// brought anything new to decide upon.
func (r *run) observe() bool {
	news := false
	for _, o := range r.last.Outcomes {
		v := &r.verdicts[o.Downstream]
		if o.Action != pipeline.ActionApply && o.Action != pipeline.ActionCreate || v.Differences != "" {
			continue
		}
		d, live := r.Pipeline.Downstreams[o.Downstream], (*drift.Live)(nil)
		var object, taken *unstructured.Unstructured
		if o.Action == pipeline.ActionApply {
			object = r.at(d, o.Target).object
			taken = apply.WithFieldsTakenOver(object, r.Pipeline.Config.Conventions.FieldManager, d.View.TakeoverManagers())
			live = r.live(d, &standing{object: taken})
		}
		document, err := r.document(o, live)
		if err != nil {
			continue // the decision tells of it
		}
		if r.documents[o.Downstream] = document; live == nil {
			continue
		}
		v.Differences, news = r.Pipeline.WouldChange(r.upstream.GetUID(), o.Downstream, document, object, taken), true
	}
	return news
}
