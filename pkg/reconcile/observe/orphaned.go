package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// ReferencesLost reports whether the deletion of the upstream began with --cascade=orphan while no process watched, by
// what the garbage collector leaves: none of our objects has its owner reference any more. If all have one by the
// config, the deletion is noted as what it was; else the others are handled as the config says.
func ReferencesLost(st *State) (lost bool) {
	isReported := st.Pipeline.RecordedBefore(st.Upstream) != nil || report.SaysDeleting(st.Pipeline.Settings, st.Upstream)
	if !st.Cascades.BeganUnseen(st.Upstream.GetUID()) || isReported {
		return false
	}
	all := true
	for _, w := range st.Witnesses(st.Trusted()) {
		d, live := st.Pipeline.Downstreams[w.Downstream], st.Cache.Live(w.Downstream, w.At)
		switch {
		case live == nil || live.UID != w.UID:
		case !marks.ReferenceLegal(st.Pipeline.Settings, d.Downstream, st.Upstream.GetNamespace(), w.At):
			all = false
		case !marks.HasLostOwner(live):
			return false
		default:
			lost = true
		}
	}
	if lost && all {
		st.Cascades.Note(st.Upstream.GetUID(), []string{metav1.FinalizerOrphanDependents})
	}
	return lost
}
