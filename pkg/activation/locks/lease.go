package locks

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// lease is a lock that is a Lease in another cluster, whose API server reports its time.
type lease struct {
	leadership.Store
	serviceTime *atomic.Int64
}

// ServerTime implements Timed.
func (l *lease) ServerTime() (time.Time, bool) {
	at := l.serviceTime.Load()
	return time.Unix(at, 0), at != 0
}

// reportsTime notes the time in each answer.
type reportsTime struct {
	http.RoundTripper
	serviceTime *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (t reportsTime) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(request)
	if err == nil {
		if at, wrong := http.ParseTime(answer.Header.Get("Date")); wrong == nil {
			t.serviceTime.Store(at.Unix())
		}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below, by which it ends requests.
func (t reportsTime) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// openLease returns a lock that is a Lease in another cluster.
func openLease(f *load.ActivationFile) (leadership.Store, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: f.Place(f.Lease.Kubeconfig)}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.Lease.Context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, f.Errorf("lease.kubeconfig", "name a kubeconfig for the cluster with the Lease", "%s cannot be used: %v",
			rules.ExplicitPath, err)
	}
	cfg.QPS = -1 // the rate is that of the renewals
	serviceTime := &atomic.Int64{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return reportsTime{next, serviceTime} })
	store, err := leadership.NewLease(cfg, f.Lease.Namespace, f.Lease.Name, RequestTimeout(f))
	if err != nil {
		return nil, err
	}
	return &lease{store, serviceTime}, nil
}
