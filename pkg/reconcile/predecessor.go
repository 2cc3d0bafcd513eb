package reconcile

import (
	"encoding/hex"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/memory"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Inherit takes over what the session before remembers of its writes: the watches may not have shown them yet, and an
// object whose values the API server normalizes need not be applied again. The session before has ended.
func (r *Reconciler) Inherit(before *Reconciler) {
	if before.Pipeline.Upstream.GVR != r.Pipeline.Upstream.GVR {
		return
	}
	r.InheritLeaving(before)
	r.findLeftBehind(before)
	r.memory.Inherit(&before.memory, matchDownstreams(before.Pipeline, r.Pipeline))
}

// InheritLeaving takes over which upstreams an ended reconciler of the same operator saw leaving, and how they are
// deleted.
func (r *Reconciler) InheritLeaving(last *Reconciler) {
	if r.Pipeline.SelectsLike(last.Pipeline.Renderer) {
		r.Deselected.Inherit(&last.Deselected, last.Cache.UpstreamUID)
	}
	r.Cascades.Inherit(&last.Cascades)
}

// UseBaselinesOf makes the baselines of another reconciler of the same operator, which works meanwhile, count here,
// too; nil: of none.
func (r *Reconciler) UseBaselinesOf(old *Reconciler) {
	if r.predecessor = (predecessor{}); old != nil && old.Pipeline.Upstream.GVR == r.Pipeline.Upstream.GVR {
		r.predecessor = predecessor{old, matchDownstreams(old.Pipeline, r.Pipeline)}
	}
}

// sawLeaving reports whether the session that works meanwhile saw an upstream leaving, as r will know from it, and its
// guard has it wait: else it is done before r acts.
func (p *predecessor) sawLeaving(r *Reconciler, ref operator.Ref, uid types.UID) bool {
	return p.Reconciler != nil && p.Host.CountedByGuard(ref) && r.Pipeline.SelectsLike(p.Pipeline.Renderer) &&
		p.Deselected.Has(ref, uid)
}

// predecessorBaseline is the baseline of the object of that uid in the session which works meanwhile; nil if it has
// none.
func (r *reconciliation) predecessorBaseline(i int, uid types.UID) *canonical.Sum {
	for old, h := range r.predecessor.counterparts {
		if h.Index != i || !h.Sees {
			continue
		}
		if rec := r.predecessor.memory.PeekAt(r.Ref, r.Memory.UID); rec != nil {
			sum, _ := rec.Baseline(old, uid)
			return sum
		}
	}
	return nil
}

// countFailing counts the upstream if the session that works meanwhile renders it, and this one does not. What its
// author has changed since its status was written is intended.
func (r *reconciliation) countFailing(d operator.Decision, c *guard.Counted) {
	i := slices.IndexFunc(d.Outcomes, func(o operator.Outcome) bool { return o.State == operator.StateRenderFailed })
	if i < 0 || !r.predecessorRenders() || r.Pipeline.EditedSince(r.Upstream) {
		return
	}
	o := d.Outcomes[i]
	c.Failing = 1
	c.First = fmt.Sprintf("%s: %s: %s", r.Pipeline.Downstreams[o.Downstream].Name, o.State, o.Message)
	c.Digest = canonical.Digest([]any{hex.EncodeToString(c.Digest[:]), string(o.State), o.Message})
}

// predecessorRenders reports whether the session that works meanwhile has rendered all downstreams of the upstream. A
// standby has rendered nothing: there the status says it.
func (r *reconciliation) predecessorRenders() bool {
	if r.predecessor.Reconciler == nil {
		return false
	}
	if rec := r.predecessor.memory.PeekAt(r.Ref, r.Memory.UID); rec != nil {
		if all, isKnown := rec.Renders(); isKnown {
			return all
		}
	}
	recorded := r.Recorded()
	return len(recorded) > 0 && !slices.ContainsFunc(recorded, func(rec status.Recorded) bool {
		return rec.State == string(operator.StateRenderFailed)
	})
}

// matchDownstreams has, for each downstream of the pipeline before, what it has become in another one.
func matchDownstreams(before, p *compile.Pipeline) []memory.Successor {
	list := make([]memory.Successor, len(before.Downstreams))
	for i, old := range before.Downstreams {
		list[i].Index = -1
		for j, d := range p.Downstreams {
			if d.Name == old.Name && d.Kind.GVR == old.Kind.GVR {
				list[i] = memory.Successor{Index: j, Sees: d.View.ID() == old.View.ID()}
			}
		}
	}
	return list
}
