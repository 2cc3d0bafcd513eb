package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// This file separates changes by others from the effects of our own writes, where downstreams are made from objects of ours.

// noteItems records which objects the desired state has of each downstream with forEach.
func (r *reconciliation) noteItems() {
	for i, d := range r.Pipeline.Downstreams {
		if d.Several() {
			r.record.Items(i).Note(r.record.Desired(), i)
		}
	}
}

// waitForItems is how long the creation of one of several objects must wait.
func (r *reconciliation) waitForItems(downstream int) time.Duration {
	if !r.Pipeline.Downstreams[downstream].Several() {
		return 0
	}
	return r.record.Items(downstream).Wait(r.record.Cause(), r.spacing(), r.now)
}

// ownInputs are the inputs, by index, that are downstreams of this upstream, or were until just now.
func (r *reconciliation) ownInputs() []int {
	var own []int
	uids := r.ownUIDs()
	for i, found := range r.inputs {
		if !r.Pipeline.MayBeDownstream(i) {
			continue
		}
		at := r.record.Inputs().Refs[i].At
		gone := found.one == nil && at.Name != "" && r.record.HadAt(at)
		for _, o := range found.objects() {
			gone = gone || uids[o.GetUID()]
		}
		if gone {
			own = append(own, i)
		}
	}
	return own
}

// othersDigest is the digest of what can be read and this operator did not write: without its own part of the status and the
// downstreams that are inputs.
func (r *reconciliation) othersDigest() canonical.Sum {
	var status any
	if r.Pipeline.ReadsStatus {
		status = report.OthersStatus(r.Pipeline.Settings, r.upstream)
	}
	digest, own := r.digest(status), r.ownUIDs()
	refs := r.record.Inputs().Refs
	digests := make([]any, len(refs))
	for i, ref := range refs {
		digests[i] = r.inputs[i].digest(ref, func(o Input) bool { return !r.Pipeline.MayBeDownstream(i) || !own[o.GetUID()] })
	}
	return canonical.Digest([]any{string(digest[:]), digests})
}

// ownUIDs are the objects that are this upstream's downstreams, or were until just now.
func (r *reconciliation) ownUIDs() map[types.UID]bool {
	own := map[types.UID]bool{}
	for _, w := range r.witnesses(r.trusted()) {
		own[w.UID] = true
	}
	r.record.AddUIDs(own, r.now)
	return own
}
