package engine

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
)

// A mistake of this program in one reconciliation ends that look and nothing else.
func TestPanicIsSurvived(t *testing.T) {
	s := &session{operator: &operator{name: t.Name(), log: logr.Discard()}, reconciler: &reconcile.Reconciler{}} // without a pipeline every reconciliation fails
	if after := s.reconcileRecovering(t.Context(), pipeline.Ref{Name: "a"}); after != afterPanic {
		t.Errorf("it is looked at again after %s, not %s", after, afterPanic)
	}
}
