package migrate

import (
	"context"
	"errors"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/apply"
)

// maxPause is the longest time before objects are tried again; the first is a second, and each is twice the one before.
const maxPause = 4 * time.Second

// mayPass reports whether the reason is the API server or a webhook, not the object.
func (r *Refusal) mayPass() bool {
	switch apply.Classify(r.Err).Reason {
	case apply.ReasonInternalError, apply.ReasonUnavailable, apply.ReasonThrottled:
		return true
	}
	return false
}

// again tries the refused objects that r names again, if the reason may have passed, such as a webhook's replica that
// was being replaced: a migration that leaves one out is begun from the start.
func (m *Migration) again(
	ctx context.Context, p *Plan, r *Result, visit func(_ *unstructured.Unstructured, left int64) error,
) error {
	for delay := time.Second; delay <= maxPause; delay *= 2 {
		refusals := r.Refusals
		r.Refusals, r.failures = nil, 0
		var failing *FailingError
		tried := false
		for _, refusal := range refusals {
			if failing != nil || !refusal.mayPass() {
				r.Refusals = append(r.Refusals, refusal)
				continue
			}
			if !tried && !pause(ctx, delay) {
				return ctx.Err()
			}
			tried = true
			r.Refused--
			r.Done--
			if err := m.visitAgain(ctx, p, r, refusal, visit); err != nil && !errors.As(err, &failing) {
				return err
			}
		}
		if !tried {
			return nil
		}
	}
	return nil
}

// SettleTime is for Migration.Settle: API servers watch definitions, and follow within milliseconds unless something is
// wrong.
const SettleTime = 5 * time.Second

// Unsettled is how long Run will wait before it begins.
func (m *Migration) Unsettled(p *Plan) time.Duration {
	return min(m.Settle, max(0, m.Settle-time.Since(p.changed))) // clocks differ
}

// changed is when someone changed a definition last, by its managers.
func changed(crd *apiextensionsv1.CustomResourceDefinition) time.Time {
	last := crd.CreationTimestamp.Time
	for _, entry := range crd.ManagedFields {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// pause returns false where ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (m *Migration) visitAgain(ctx context.Context, p *Plan, r *Result, refusal Refusal,
	visit func(_ *unstructured.Unstructured, left int64) error,
) error {
	u, err := m.Client.Resource(p.resource).Namespace(refusal.Object.Namespace).
		Get(ctx, refusal.Object.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return visit(u, 0)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if r.Done++; apierrors.IsNotFound(err) {
		return nil
	}
	return r.refuse(Refusal{refusal.Object, err})
}
