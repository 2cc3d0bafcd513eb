package survey

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/guard"
	"github.com/corollary-dev/corollary/pkg/informers/connections"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// Exceeded says what guard does not allow without a confirmation, and whether that is confirmed.
type Exceeded struct {
	Text, Digest string
	Confirmed    bool
}

// VisitCounting is Visit for all upstreams. It returns what run's guard would hold of what is found, nil for nothing:
// guard counts all upstreams, so it holds nothing of a single namespace.
func (v *Survey) VisitCounting(
	ctx context.Context, refs []operator.Ref, visit func(*preview.Finding) error,
) (*Exceeded, error) {
	var sum guard.Survey
	err := v.Visit(ctx, refs, func(f *preview.Finding) error {
		sum.Take(f.Ref, f.GuardCount, f.GuardDigest)
		return visit(f)
	})
	op := v.Pipeline().Config
	if err != nil || op.Guard == nil || v.surveyor.options.Namespace != "" {
		return nil, err
	}
	e := &Exceeded{Text: guard.Exceeded(op, sum.Count), Digest: sum.Digest()}
	if e.Text == "" {
		return nil, nil
	}
	e.Confirmed = v.isConfirmed(ctx, op.Guard, e.Digest)
	return e, nil
}

// isConfirmed reports whether a change is confirmed already. A ConfigMap that cannot be read confirms nothing.
func (v *Survey) isConfirmed(ctx context.Context, g *config.Guard, digest string) bool {
	if g.Confirmed == digest {
		return true
	}
	if g.Confirm == nil {
		return false
	}
	maps := v.surveyor.connections.Objects(connections.Identity{}).
		Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	cm, err := maps.Namespace(g.Confirm.Namespace).Get(ctx, g.Confirm.ConfigMap, metav1.GetOptions{})
	if err != nil {
		return false
	}
	value, _, _ := unstructured.NestedString(cm.Object, "data", g.Confirm.Key)
	return value == digest
}
