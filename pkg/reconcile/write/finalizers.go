package write

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// WriteFinalizer adds the finalizer, or puts it in the place of the previous one. An error says what it did.
func (w *Writer) WriteFinalizer(ctx context.Context, what operator.FinalizerAction) (doing string, err error) {
	current, up := w.Pipeline.Config.Conventions.Finalizer, w.Upstream
	if what == operator.FinalizerSwap {
		doing = "renaming the finalizer"
		up, err = w.API.SwapFinalizer(ctx, w.target(), up, marks.PreviousFinalizer(w.Pipeline.Settings), current)
	} else {
		doing = "adding the finalizer"
		w.BeforeFinalizer()
		up, err = w.API.AddFinalizer(ctx, w.target(), up, current)
	}
	if err == nil {
		w.wroteFinalizer(up)
	}
	return doing, err
}

// RemoveFinalizer removes the finalizer, if it exists. Of an upstream that is gone, there is nothing to remove.
func (w *Writer) RemoveFinalizer(ctx context.Context) error {
	if w.IsGone {
		return nil
	}
	up, err := w.API.RemoveFinalizer(ctx, w.target(), w.Upstream, w.Pipeline.Config.Conventions.Finalizers()...)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case err == nil:
		w.wroteFinalizer(up)
	}
	return err
}

// FinalizerSpaced is how long the next change of the finalizer must wait.
func (w *Writer) FinalizerSpaced() time.Duration {
	finalizers := w.Memory.Contests.Get().Finalizers
	if finalizers.Unsettled == 0 {
		return 0
	}
	return finalizers.Wait(w.FinalizerCause(), w.finalizerChange(), w.spacing(), w.Began)
}

// finalizerChange is the change that the finalizer of the upstream can have next.
func (w *Writer) finalizerChange() string {
	if w.HasFinalizer() {
		return "remove"
	}
	return "add"
}

// wroteFinalizer counts that it was made, and takes over the upstream as returned.
func (w *Writer) wroteFinalizer(up *unstructured.Unstructured) {
	w.Log.V(1).Info("finalizer written", "upstream", w.Ref.String(), "finalizers", up.GetFinalizers())
	w.Memory.Contests.Edit().Finalizers.Write(w.FinalizerCause(), w.finalizerChange(), w.spacing(), w.Began)
	w.Upstream = WithoutManagedFields(up)
	w.Memory.WroteUpstream(up, false)
}
