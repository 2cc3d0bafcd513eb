// Package connections makes clients for API servers: one set for each identity that operators act as.
package connections

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
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/informers/kept"
)

// Identity is who sends an operator's requests: an impersonated ServiceAccount or, if it is zero, the process itself.
// Watches are shared only within an identity: from a cache filled with another one's permissions, a config would read
// what its own do not allow.
type Identity struct{ Namespace, Name string }

// IdentityOf is the identity of a config.
func IdentityOf(f *load.File) Identity {
	if f.ServiceAccount == nil {
		return Identity{}
	}
	return Identity{f.ServiceAccount.Namespace, f.ServiceAccount.Name}
}

// Forbidden says what to grant after the API server refused a request that needs the given permissions.
func (i Identity) Forbidden(doing, needs string, err error) string {
	switch account := i.Namespace + "/" + i.Name; {
	case i == Identity{}:
		return fmt.Sprintf("%s is forbidden: grant %s (%s)", doing, needs, answerOf(err))
	case apply.Impersonating(err):
		return fmt.Sprintf("acting as ServiceAccount %s is forbidden: grant this process impersonate on serviceaccounts "+
			"%s in namespace %s (%s)",
			account, i.Name, i.Namespace, answerOf(err))
	default:
		return fmt.Sprintf("%s is forbidden: grant ServiceAccount %s %s (%s)", doing, account, needs, answerOf(err))
	}
}

// Clients are the clients of one identity.
type Clients struct {
	Objects dynamic.Interface
	Packed  dynamic.Interface // brings upstreams packed

	http *http.Client
}

// Connections makes clients for identities. They share connections, and one rate limit if there is one.
type Connections struct {
	cfg  *rest.Config
	http *http.Client
	// Texts compresses what caches keep.
	Texts *kept.Texts

	mu      sync.Mutex
	clients map[Identity]Clients
}

// NewConnections prepares connections. It sends no request.
func NewConnections(cfg *rest.Config) (*Connections, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(apply.KeepAnswers)
	if cfg.RateLimiter == nil && cfg.QPS > 0 {
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection: %w", err)
	}
	c := &Connections{cfg: cfg, http: httpClient, Texts: kept.NewTexts(), clients: map[Identity]Clients{}}
	if c.clients[Identity{}], err = c.connect(httpClient); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Connections) connect(httpClient *http.Client) (Clients, error) {
	objects, err := kept.NewDynamic(c.cfg, httpClient, kept.ObjectCodec{})
	if err != nil {
		return Clients{}, err
	}
	packed, err := kept.NewDynamic(c.cfg, httpClient, kept.PackedCodec{Texts: c.Texts})
	return Clients{Objects: objects, Packed: packed, http: httpClient}, err
}

// Watching is the client of an identity whose watches do not read again what writes returned.
func (c *Connections) Watching(i Identity, returned *kept.Returned) (dynamic.Interface, error) {
	return kept.NewDynamic(c.cfg, c.ClientsOf(i).http, kept.LiveCodec{Returned: returned})
}

// Objects is the client of an identity.
func (c *Connections) Objects(i Identity) dynamic.Interface { return c.ClientsOf(i).Objects }

// ClientsOf returns the clients of an identity.
func (c *Connections) ClientsOf(i Identity) Clients {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.clients[i]; ok {
		return made
	}
	impersonating := *c.http
	// Impersonation here replaces --as, which is who the process is. The API server adds the groups of a ServiceAccount.
	impersonating.Transport = transport.NewImpersonatingRoundTripper(
		transport.ImpersonationConfig{UserName: serviceaccount.MakeUsername(i.Namespace, i.Name)}, c.http.Transport)
	made, err := c.connect(&impersonating)
	if err != nil { // cannot happen: the first clients were made of the same config
		panic("preparing the clients of " + i.Namespace + "/" + i.Name + ": " + err.Error())
	}
	c.clients[i] = made
	return made
}

// IsNotServed reports whether a list or watch was refused because the API server does not serve the kind, or its
// definition is being deleted.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// answerOf is the API server's message, without what the client library added.
func answerOf(err error) string {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Message != "" {
		return answer.Status().Message
	}
	return err.Error()
}
