package reconcile

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestCascadesAreTakenOver: how an upstream is deleted is known to the next session, and what that has seen itself
// counts first.
func TestCascadesAreTakenOver(t *testing.T) {
	var before, after Reconciler
	before.Cascades.Note("a", []string{"orphan"})
	before.Cascades.Note("b", []string{"orphan"})
	after.Cascades.Note("b", []string{"foregroundDeletion"})
	after.Cascades.Note("a", nil) // the garbage collector has removed its finalizer
	after.Cascades.Inherit(&before.Cascades)
	for uid, want := range map[types.UID]operator.Cascade{"a": operator.CascadeOrphan, "b": operator.CascadeForeground} {
		if got := after.Cascades.Of(uid); got != want {
			t.Errorf("%s: %q, want %q", uid, got, want)
		}
	}
}
