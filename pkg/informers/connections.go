package informers

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/corollary-dev/corollary/pkg/apply"
	"github.com/corollary-dev/corollary/pkg/config"
)

// Identity is who sends an operator's requests: a ServiceAccount by impersonation, or, where it is zero, whoever the
// process is. Watches are shared within an identity alone: in a cache that another one's rights have filled a config
// would read what its own do not allow.
type Identity struct{ Namespace, Name string }

// IdentityOf is who the config says that its operator is.
func IdentityOf(f *config.File) Identity {
	if f.ServiceAccount == nil {
		return Identity{}
	}
	return Identity{f.ServiceAccount.Namespace, f.ServiceAccount.Name}
}

// Forbidden says what to grant, where the API server refused a request that takes the rights named in needs.
func (i Identity) Forbidden(doing, needs string, err error) string {
	switch account := i.Namespace + "/" + i.Name; {
	case i == Identity{}:
		return fmt.Sprintf("%s is forbidden: grant %s (%s)", doing, needs, answerOf(err))
	case apply.Impersonating(err):
		return fmt.Sprintf("acting as ServiceAccount %s is forbidden: grant this process impersonate on serviceaccounts %s in namespace %s (%s)",
			account, i.Name, i.Namespace, answerOf(err))
	default:
		return fmt.Sprintf("%s is forbidden: grant ServiceAccount %s %s (%s)", doing, account, needs, answerOf(err))
	}
}

// clients are one identity's.
type clients struct {
	objects dynamic.Interface
	packed  dynamic.Interface // brings upstreams packed
}

// Connections makes clients for identities. They share connections, and one limit of requests where there is one.
type Connections struct {
	cfg  *rest.Config
	http *http.Client

	mu   sync.Mutex
	made map[Identity]clients
}

// NewConnections prepares them. It sends no request.
func NewConnections(cfg *rest.Config) (*Connections, error) {
	cfg = rest.CopyConfig(cfg)
	if cfg.RateLimiter == nil && cfg.QPS > 0 {
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	c := &Connections{cfg: cfg, http: httpClient, made: map[Identity]clients{}}
	if c.made[Identity{}], err = c.connect(httpClient); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Connections) connect(httpClient *http.Client) (clients, error) {
	objects, err := newDynamic(c.cfg, httpClient, objectCodec{})
	if err != nil {
		return clients{}, err
	}
	packed, err := newDynamic(c.cfg, httpClient, packedCodec{})
	return clients{objects: objects, packed: packed}, err
}

// Objects is the client of an identity.
func (c *Connections) Objects(i Identity) dynamic.Interface { return c.as(i).objects }

// as returns the clients of an identity.
func (c *Connections) as(i Identity) clients {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.made[i]; ok {
		return made
	}
	impersonating := *c.http
	// It goes before whatever --as says, which is who the process is. The API server adds the groups of a ServiceAccount.
	impersonating.Transport = transport.NewImpersonatingRoundTripper(
		transport.ImpersonationConfig{UserName: serviceaccount.MakeUsername(i.Namespace, i.Name)}, c.http.Transport)
	made, err := c.connect(&impersonating)
	if err != nil { // it is made of what the first ones were made of: cannot happen
		panic("preparing the clients of " + i.Namespace + "/" + i.Name + ": " + err.Error())
	}
	c.made[i] = made
	return made
}

// IsNotServed tells whether a list or watch was refused as one of a kind that the API server does not serve, or of one whose
// definition is being deleted.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// answerOf is what the API server itself said, without what the client library put before it.
func answerOf(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Message != "" {
		return answer.Status().Message
	}
	return err.Error()
}
