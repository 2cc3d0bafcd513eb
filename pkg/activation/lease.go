package activation

import (
	"k8s.io/client-go/tools/clientcmd"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// openLease returns a lock that is a Lease in another cluster.
func openLease(f *config.ActivationFile) (leadership.Store, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: f.Place(f.Lease.Kubeconfig)}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.Lease.Context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, f.Errorf("lease.kubeconfig", "name a kubeconfig for the cluster with the Lease", "%s cannot be used: %v",
			rules.ExplicitPath, err)
	}
	cfg.QPS = -1 // the rate is that of the renewals
	return leadership.NewLease(cfg, f.Lease.Namespace, f.Lease.Name, requestTimeout(f))
}
