package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// This file separates changes by others from the effects of our own writes, where downstreams are made from objects of ours.

// itemsMemory is what is remembered of the objects of a downstream with forEach together. Each may be new, with a memory of its own.
type itemsMemory struct {
	// targets is the digest of where they are; empty while they are not known.
	targets string
	// contest is about changes of targets.
	contest contest
}

// siblingSeen is what another downstream could read of a live object the last time.
type siblingSeen struct {
	shown   canonical.Sum
	written time.Time     // our last write to it
	cause   canonical.Sum // the last of shown that is not our own doing
}

// noteItems records which objects the desired state has of each downstream with forEach.
func (r *reconciliation) noteItems() {
	for i, d := range r.Pipeline.Downstreams {
		if !d.Several() {
			continue
		}
		var targets []any
		for _, o := range r.record.desired.Objects[r.record.desired.First(i):r.record.desired.First(i+1)] {
			targets = append(targets, o.Target.Namespace, o.Target.Name)
		}
		m := r.record.itemsOf(i)
		if m.targets = ""; !r.record.desired.Unknown(i) {
			sum := canonical.Digest(targets)
			m.targets = string(sum[:])
		}
	}
}

// itemsOf is what is remembered of a downstream with forEach.
func (r *record) itemsOf(downstream int) *itemsMemory {
	if r.items == nil {
		r.items = map[int]*itemsMemory{}
	}
	if r.items[downstream] == nil {
		r.items[downstream] = &itemsMemory{}
	}
	return r.items[downstream]
}

// countItems counts that objects of a downstream are created or removed, once for each change of which they are.
func (r *reconciliation) countItems(downstream int) {
	if !r.Pipeline.Downstreams[downstream].Several() {
		return
	}
	if m := r.record.itemsOf(downstream); m.targets != "" && m.targets != m.contest.written {
		m.contest.write(r.record.externalDigest, m.targets, r.spacing(), r.now)
	}
}

// waitForItems is how long the creation of one of several objects must wait.
func (r *reconciliation) waitForItems(downstream int) time.Duration {
	if !r.Pipeline.Downstreams[downstream].Several() {
		return 0
	}
	m := r.record.itemsOf(downstream)
	if m.targets == m.contest.written {
		return 0
	}
	return m.contest.wait(r.record.externalDigest, m.targets, r.spacing(), r.now)
}

// causeWithSiblings is cause, the digest of what others write, with what others have written into objects of ours that downstreams read.
func (r *reconciliation) causeWithSiblings(cause canonical.Sum) canonical.Sum {
	reads := r.record.desired.Siblings
	if len(reads) == 0 {
		r.record.unusual.set(false, func(u *unusual) { u.siblings = nil })
		return cause
	}
	u := r.record.unusual.edit()
	seen, causes := make(map[place]siblingSeen, len(reads)), []any{string(cause[:])}
	for _, read := range reads {
		at := place{read.Downstream, read.At}
		now := siblingSeen{shown: read.Sum, written: r.lastWrite(at), cause: read.Sum}
		if before, ok := u.siblings[at]; ok && (before.shown == now.shown || before.written != now.written) {
			now.cause = before.cause
		}
		seen[at], causes = now, append(causes, string(now.cause[:]))
	}
	u.siblings = seen
	return canonical.Digest(causes)
}

// lastWrite is when we wrote the object at a place last.
func (r *reconciliation) lastWrite(at place) (last time.Time) {
	r.record.anyTarget(func(t target) bool {
		if wrote := t.contest.get().last; t.at == at.at && wrote.After(last) {
			last = wrote
		}
		return false
	})
	return last
}

// ownUIDs are the objects that are this upstream's downstreams, or were until just now.
func (r *reconciliation) ownUIDs() map[types.UID]bool {
	own := map[types.UID]bool{}
	for _, w := range r.witnesses() {
		own[w.uid] = true
	}
	r.record.anyTarget(func(t target) bool {
		own[t.uid] = t.uid != ""
		return false
	})
	for uid, known := range r.record.unusual.get().fates {
		own[uid] = r.now.Before(known.until)
	}
	return own
}

// ownInputs are the inputs, by index, that are downstreams of this upstream, or were until just now.
func (r *reconciliation) ownInputs() []int {
	var own []int
	uids := r.ownUIDs()
	for i, found := range r.inputs {
		if !r.Pipeline.MayBeDownstream(i) {
			continue
		}
		at := r.record.inputs.get().refs[i].At
		gone := found.one == nil && at.Name != "" && r.record.anyTarget(func(t target) bool { return t.at == at })
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
	refs := r.record.inputs.get().refs
	digests := make([]any, len(refs))
	for i, ref := range refs {
		digests[i] = r.inputs[i].digest(ref, func(o Input) bool { return !r.Pipeline.MayBeDownstream(i) || !own[o.GetUID()] })
	}
	return canonical.Digest([]any{string(digest[:]), digests})
}
