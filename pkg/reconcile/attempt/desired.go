package attempt

import (
	"context"
	"time"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/counters"
)

// UpdateDesired renders the desired state, unless nothing that rules and templates can read has changed.
func (r *Attempt) UpdateDesired(ctx context.Context) {
	rec := r.Memory
	if r.IsGoneRow() {
		r.setDesired(r.Pipeline.Failed(nil), canonical.Sum{})
		rec.RenderAgain()
		return
	}
	r.FindInputs(ctx)
	if rec.Steps.IsExpensive && r.acquire(rec) != nil {
		return
	}
	changed := rec.Desired() == nil || r.Pipeline.SiblingsChanged(rec.Desired(), r.Sibling)
	if !changed && rec.IsRendered(r.Upstream.GetResourceVersion(), r.InputsDigest) {
		return
	}
	digest := r.ReadableDigest(r.Pipeline.ReadsStatus)
	cause := digest
	if r.Pipeline.ReadsOwn() {
		cause = r.OthersDigest()
	}
	if changed || !rec.IsRenderedFrom(digest) {
		rec.Steps.IsExpensive = false
		r.setDesired(r.Pipeline.Render(ctx, r.Upstream, r.InputsRead()), digest)
		for i, d := range r.Pipeline.Downstreams { // changes by others are distinguished from the effects of our own writes
			if d.Several() {
				rec.Items(i).Note(rec.Desired(), i)
			}
		}
		counters.Render(r.Name)
	}
	rec.SetCause(cause)
	if rec.Desired().TookTooLong() && rec.Notes.Get().RenderAgainAt.IsZero() {
		rec.Notes.Edit().RenderAgainAt = r.Began.Add(r.NoteSlow("what the upstream asks for"))
	}
	if ctx.Err() != nil || r.NoSlot { // an evaluation that was cut short says nothing about the upstream
		rec.RenderAgain()
		return
	}
	rec.SetRendered(r.Upstream.GetResourceVersion(), r.InputsDigest)
}

// setDesired remembers a desired state. What has failed is ordered like its objects.
func (r *Attempt) setDesired(w *operator.Desired, digest canonical.Sum) {
	from := r.Memory.SetDesired(w, digest)
	if from == nil || len(r.Failures) == 0 {
		return
	}
	failures, backingOff := r.Failures, r.backingOff
	r.Failures, r.backingOff = map[int]*operator.Failure{}, map[int]bool{}
	for k, old := range from {
		if failures[old] != nil {
			r.Failures[k], r.backingOff[k] = failures[old], backingOff[old]
		}
	}
}

// NoteSlow notes that expressions or templates got no time to end, and returns after how long to try again. The
// upstream then needs a slot: its author must not occupy all workers.
func (r *Attempt) NoteSlow(what string) time.Duration {
	slow := &r.Memory.Notes.Edit().Slow
	if r.Memory.Steps.IsExpensive = true; !slow.HasFailed() {
		logging.Warn(r.Log, "expressions or templates took too long, will retry", "upstream",
			r.Ref.String(), "incomplete", what)
	}
	return r.Delay(slow)
}
