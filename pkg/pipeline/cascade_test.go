package pipeline

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/pkg/config"
)

// Every combination of what the deletion asks for and what the config says.
func TestDecideCascade(t *testing.T) {
	for _, cascade := range []Cascade{CascadeConfig, CascadeForeground, CascadeOrphan} {
		for _, wait := range []bool{false, true} {
			for _, referenced := range []bool{false, true} {
				for _, policy := range []config.DeletionPolicy{config.DeletionDelete, config.DeletionOrphan} {
					p := onePipeline(func(op *config.Operator) {
						op.Deletion.Wait, op.Downstreams[0].DeletionPolicy = wait, policy
					})
					p.downstreamsPath = mustPath(t, ".status.downstreams")
					in := deleted()
					if in.Cascade = cascade; !referenced {
						in.Leftovers[0].Live.Owners = nil
						in.Leftovers[0].Live.OwnerMark = OwnerMark(in.Upstream)
					}
					d := p.DecideDeletion(in)
					waits := wait || cascade == CascadeForeground
					want, holds := ActionDelete, waits
					switch {
					case cascade == CascadeOrphan || policy == config.DeletionOrphan:
						want = ActionRelease
					case !waits && referenced:
						want = ActionNone
					}
					if got := d.Leftovers[0].Action; got != want || d.Waits != waits || (d.Finalizer == FinalizerLeave) != holds {
						t.Errorf("cascade %q, wait %v, referenced %v, %s: %q, want %q; waits %v, finalizer %v", cascade, wait, referenced, policy, got, want, d.Waits, d.Finalizer)
					}
					// The garbage collector takes off the finalizer that says foreground, which a later process must know.
					later, known := p.decidedAgain(in, d)
					if waits && want == ActionDelete && (later.Finalizer != FinalizerLeave || known != (cascade == CascadeForeground && !wait)) {
						t.Errorf("cascade %q, wait %v, referenced %v, %s: by the status, it is known: %t, finalizer %v", cascade, wait, referenced, policy, known, later.Finalizer)
					}
				}
			}
		}
	}
}

// decidedAgain is the decision of a process that knows only what the status records of a decision, and whether it records --cascade=foreground.
func (p *Pipeline) decidedAgain(in Input, d Decision) (later Decision, known bool) {
	content := map[string]any{}
	p.setRecorded(content, p.recordedGoing(in.Upstream, d, nil))
	in.Upstream = in.Upstream.DeepCopy()
	in.Upstream.Object["status"] = content
	in.Cascade = p.RecordedCascade(in.Upstream)
	return p.DecideDeletion(in), in.Cascade == CascadeForeground
}

func TestCascadeOf(t *testing.T) {
	for _, row := range []struct {
		finalizers []string
		want       Cascade
	}{
		{nil, CascadeConfig},
		{[]string{"tools.example.com/cleanup"}, CascadeConfig},
		{[]string{"tools.example.com/cleanup", metav1.FinalizerOrphanDependents}, CascadeOrphan},
		{[]string{metav1.FinalizerDeleteDependents}, CascadeForeground},
	} {
		if got := CascadeOf(row.finalizers); got != row.want {
			t.Errorf("%v: %q, want %q", row.finalizers, got, row.want)
		}
	}
}
