package webhook

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corollary-dev/corollary/internal/must"
)

// The metric says when the certificate expires that is served, not the one that the Secret offers.
func TestExpiration(t *testing.T) {
	t.Parallel()
	ours, others := newIssuer(t, "ours"), newIssuer(t, "others")
	c := &Certificates{At: types.NamespacedName{Namespace: "ops", Name: "expiring"}, Hosts: []string{externalHost}, ReadOnly: true,
		Log: logr.Discard()}
	now := time.Now()
	var secret *corev1.Secret
	for _, row := range []struct {
		reason  string
		issuer  *issuer
		life    time.Duration
		accepts bool
		want    time.Duration
	}{
		{"the first one", ours, time.Hour, true, time.Hour},
		{"definitions do not trust the next one", others, 3 * time.Hour, false, time.Hour},
		{"they trust it", ours, 2 * time.Hour, true, time.Hour},
		{"they still do at the next look", nil, 0, true, 2 * time.Hour},
	} {
		if row.issuer != nil {
			secret = row.issuer.secret(1, externalHost, row.life)
		}
		must.Do(t, c.follow(secret, func(*pair) bool { return row.accepts }))
		if got := time.Unix(int64(expirationOf(t, "ops/expiring")), 0).Sub(now.Add(row.want)); got.Abs() > time.Minute {
			t.Errorf("%s: the metric differs by %s", row.reason, got)
		}
	}
}

func expirationOf(t *testing.T, secret string) float64 {
	t.Helper()
	families := must.Get(metrics.Registry.Gather()).In(t)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "corollary_webhook_certificate_expiration_timestamp_seconds" && m.GetLabel()[0].GetValue() == secret {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatal("there is no metric")
	return 0
}
