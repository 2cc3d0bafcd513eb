package pipeline

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/status"
)

// Cascade is what whoever deletes an upstream wants done about its downstreams. It goes before what the config says.
type Cascade string

// What a deletion may ask for, as `kubectl delete --cascade` does.
const (
	// CascadeConfig leaves it to the config: --cascade=background asks for nothing that the API server would keep.
	CascadeConfig Cascade = ""
	// CascadeForeground: the upstream goes after its downstreams.
	CascadeForeground Cascade = "foreground"
	// CascadeOrphan: the downstreams stay.
	CascadeOrphan Cascade = "orphan"
)

// CascadeOf reads what a deletion asks for from the upstream's finalizers, where the API server puts it for the garbage
// collector. That takes them off when it has no more to do, which may be before we have seen them.
func CascadeOf(finalizers []string) Cascade {
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return CascadeOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return CascadeForeground
	}
	return CascadeConfig
}

// state is what the status records of a downstream before its turn comes, since the garbage collector removes the finalizer that says so.
func (c Cascade) state() State {
	switch c {
	case CascadeOrphan:
		return StateRelease
	case CascadeForeground:
		return StateDeleteFirst
	}
	return ""
}

// RecordedCascade is what the deletion of an upstream asked for when its status was last written.
func (p *Pipeline) RecordedCascade(upstream *unstructured.Unstructured) Cascade {
	first := func(r status.Recorded) bool { return r.State == string(StateDeleteFirst) }
	if upstream.GetDeletionTimestamp() != nil && slices.ContainsFunc(p.Recorded(upstream), first) {
		return CascadeForeground
	}
	return CascadeConfig
}

// waits reports whether the upstream stays until what is deleted is gone.
func (p *Pipeline) waits(in Input) bool {
	return p.Config.Deletion.Wait || in.Cascade == CascadeForeground
}

// orphans reports whether the deletion asks to keep an object, or asked so when the status was last written: nothing but
// that would have recorded a release.
func (p *Pipeline) orphans(own Owned, in Input) bool {
	return in.Cascade == CascadeOrphan || !p.keeps(own) && slices.ContainsFunc(p.Recorded(in.Upstream), func(r status.Recorded) bool {
		return r.UID == own.Live.UID && r.State == string(StateRelease)
	})
}

// SkipsBefore reports whether deletion.before is not begun for an upstream that is being deleted: where nothing is deleted,
// nothing has to be done before. One that has begun goes on.
func (p *Pipeline) SkipsBefore(upstream *unstructured.Unstructured, c Cascade) bool {
	return p.Before != nil && c == CascadeOrphan && p.RecordedBefore(upstream) == nil
}
