package decide_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/status"
)

// TestCascadeWhileBefore: what a deletion asks for while deletion.before runs is known to a process that comes later.
func TestCascadeWhileBefore(t *testing.T) {
	for _, cascade := range []operator.Cascade{operator.CascadeConfig, operator.CascadeForeground, operator.CascadeOrphan} {
		p := beforePipeline(t, nil)
		in := deleted()
		in.Leftovers[0].Live.Owners = nil
		in.Leftovers[0].Live.OwnerMark = marks.OwnerMark(in.Upstream)
		running := beforeRecord(operator.StateBeforeRunning, beforeUID)
		in.Upstream.Object["status"] = map[string]any{"downstreams": status.RecordedList([]status.Recorded{*running,
			p.RecordAt(p.Downstreams[0].Downstream, operator.RefOf(ourLive()), ourLive().UID, hash, string(operator.StateInSync))})}
		in.Cascade, in.Before.Live, in.Before.Record = cascade, beforeLive(""), running
		in.Before.Progress = p.BeforeProgress(in.Upstream, desired.Inputs{})
		d := decide.Deletion(p.Settings, in)
		if !d.WaitsForBefore {
			t.Fatal("deletion.before does not run")
		}
		in.Before.Live, in.Before.Record = nil, beforeRecord(operator.StateBeforeFinished, beforeUID)
		later, isForeground := decidedAgain(p, in, d)
		want := operator.ActionDelete
		if cascade == operator.CascadeOrphan {
			want = operator.ActionRelease
		}
		if got := later.Leftovers[0].Action; got != want || isForeground != (cascade == operator.CascadeForeground) {
			t.Errorf("cascade %q: %s, foreground %t", cascade, got, isForeground)
		}
	}
}

// decidedAgain is the decision of a process that knows only what the status records of a decision, and whether it
// records --cascade=foreground.
func decidedAgain(p *health.Checks, in operator.Input, d operator.Decision) (later operator.Decision, known bool) {
	content := map[string]any{}
	report.SetRecorded(p.Settings, content, report.RecordedGoing(p.Settings, in.Upstream, d, nil))
	in.Upstream = in.Upstream.DeepCopy()
	in.Upstream.Object["status"] = content
	in.Cascade = decide.RecordedCascade(p.Settings, in.Upstream)
	return decide.Deletion(p.Settings, in), in.Cascade == operator.CascadeForeground
}

func TestCascadeOf(t *testing.T) {
	for _, row := range []struct {
		finalizers []string
		want       operator.Cascade
	}{
		{nil, operator.CascadeConfig},
		{[]string{"tools.example.com/cleanup"}, operator.CascadeConfig},
		{[]string{"tools.example.com/cleanup", metav1.FinalizerOrphanDependents}, operator.CascadeOrphan},
		{[]string{metav1.FinalizerDeleteDependents}, operator.CascadeForeground},
	} {
		if got := operator.CascadeOf(row.finalizers); got != row.want {
			t.Errorf("%v: %q, want %q", row.finalizers, got, row.want)
		}
	}
}
