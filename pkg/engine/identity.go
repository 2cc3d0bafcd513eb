package engine

import (
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
)

// identity is who sends an operator's requests: a ServiceAccount by impersonation, or, where it is zero, whoever the
// process is. Watches are shared within an identity alone: in a cache that another one's rights have filled a config
// would read what its own do not allow.
type identity struct{ namespace, name string }

// identityOf is who the config says that its operator is.
func identityOf(f *config.File) identity {
	if f.ServiceAccount == nil {
		return identity{}
	}
	return identity{f.ServiceAccount.Namespace, f.ServiceAccount.Name}
}

// forbidden tells what to grant, where the API server refused a request that takes the rights named in needs.
func (i identity) forbidden(doing, needs string, err error) string {
	switch account := i.namespace + "/" + i.name; {
	case i == identity{}:
		return fmt.Sprintf("%s is forbidden: grant %s (%s)", doing, needs, answerOf(err))
	case apply.Impersonating(err):
		return fmt.Sprintf("acting as ServiceAccount %s is forbidden: grant this process impersonate on serviceaccounts %s in namespace %s (%s)",
			account, i.name, i.namespace, answerOf(err))
	default:
		return fmt.Sprintf("%s is forbidden: grant ServiceAccount %s %s (%s)", doing, account, needs, answerOf(err))
	}
}

// clients are one identity's.
type clients struct {
	objects dynamic.Interface
	packed  dynamic.Interface // brings upstreams packed
}

// connections makes clients for identities. They share connections, and one limit of requests where there is one.
type connections struct {
	cfg  *rest.Config
	http *http.Client

	mu   sync.Mutex
	made map[identity]clients
}

func newConnections(cfg *rest.Config) (*connections, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.RateLimiter == nil && cfg.QPS > 0 {
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	c := &connections{cfg: cfg, http: httpClient, made: map[identity]clients{}}
	if c.made[identity{}], err = c.connect(httpClient); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *connections) connect(httpClient *http.Client) (clients, error) {
	objects, err := newDynamic(c.cfg, httpClient, objectCodec{})
	if err != nil {
		return clients{}, err
	}
	packed, err := newDynamic(c.cfg, httpClient, packedCodec{})
	return clients{objects: objects, packed: packed}, err
}

// as returns the clients of an identity.
func (c *connections) as(i identity) clients {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.made[i]; ok {
		return made
	}
	impersonating := *c.http
	// It goes before whatever --as says, which is who the process is. The API server adds the groups of a ServiceAccount.
	impersonating.Transport = transport.NewImpersonatingRoundTripper(
		transport.ImpersonationConfig{UserName: serviceaccount.MakeUsername(i.namespace, i.name)}, c.http.Transport)
	made, err := c.connect(&impersonating)
	if err != nil { // it is made of what the first ones were made of: cannot happen
		panic("preparing the clients of " + i.namespace + "/" + i.name + ": " + err.Error())
	}
	c.made[i] = made
	return made
}
