package locks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// etcdKey is a lock that is a key in etcd. It has no lease of etcd's: when it runs out is decided by those that wait,
// each by its own clock, as for a Lease of Kubernetes; a change of etcd's leader prolongs nothing then.
type etcdKey struct {
	client *clientv3.Client
	key    string
	// read is the revision of the record that was read or written last, 0 without one; revision that of etcd at that
	// moment.
	read, revision int64
}

// openEtcd returns a lock that is a key in etcd. It sends no request.
func openEtcd(f *load.ActivationFile) (leadership.Store, error) {
	e := f.Etcd
	secure, err := tlsConfig(f, "etcd.tls", e.TLS)
	if err != nil {
		return nil, err
	}
	password, err := f.Read("etcd.passwordFrom", e.PasswordFrom)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (leadership.Store, error) {
		var dial []grpc.DialOption
		if secure != nil && secure.ServerName != "" {
			dial = append(dial, grpc.WithTransportCredentials(&named{credentials.NewTLS(secure), secure.ServerName}))
		}
		client, err := clientv3.New(clientv3.Config{Endpoints: e.Endpoints, TLS: secure,
			Username: e.Username, Password: password,
			DialTimeout: RequestTimeout(f), DialKeepAliveTime: keepAlive,
			DialKeepAliveTimeout: RequestTimeout(f), Logger: zap.NewNop(),
			DialOptions: dial})
		if err != nil {
			return nil, fmt.Errorf("preparing the client: %w", err)
		}
		return &etcdKey{client: client, key: e.Key}, nil
	}
	return &lazy{name: "etcd key " + e.Key, open: open}, nil
}

// named checks the certificates of all members against one name. gRPC would check each against its address.
type named struct {
	credentials.TransportCredentials
	name string
}

// ClientHandshake implements credentials.TransportCredentials.
func (n *named) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return n.TransportCredentials.ClientHandshake(ctx, n.name, conn)
}

// Clone implements credentials.TransportCredentials.
func (n *named) Clone() credentials.TransportCredentials {
	return &named{n.TransportCredentials.Clone(), n.name}
}

// keepAlive is how often an idle connection is checked: as often as gRPC allows.
const keepAlive = 10 * time.Second

// Describe implements leadership.Store.
func (k *etcdKey) Describe() string { return "etcd key " + k.key }

// Get implements leadership.Store. It reads what a majority has.
func (k *etcdKey) Get(ctx context.Context) (*leadership.Record, error) {
	answer, err := k.client.Get(ctx, k.key)
	if err != nil {
		return nil, etcdError(err)
	}
	k.read, k.revision = 0, answer.Header.Revision
	if len(answer.Kvs) == 0 {
		return nil, leadership.NotFound(k.key)
	}
	record, err := decodeJSON(answer.Kvs[0].Value)
	if err == nil { // else no update may succeed
		k.read = answer.Kvs[0].ModRevision
	}
	return record, err
}

// Create implements leadership.Store: a key that does not exist has the revision 0.
func (k *etcdKey) Create(ctx context.Context, record *leadership.Record) error {
	k.read = 0
	return k.Update(ctx, record)
}

// Update implements leadership.Store.
func (k *etcdKey) Update(ctx context.Context, record *leadership.Record) error {
	text, err := encodeJSON(record)
	if err != nil {
		return err
	}
	answer, err := k.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(k.key), "=", k.read)).
		Then(clientv3.OpPut(k.key, text)).Commit()
	switch {
	case err != nil:
		return etcdError(err)
	case !answer.Succeeded:
		return leadership.Conflict(k.key)
	}
	k.read, k.revision = answer.Header.Revision, answer.Header.Revision
	return nil
}

// Watch implements leadership.Store.
func (k *etcdKey) Watch(ctx context.Context, seen func(*leadership.Record) bool) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for answer := range k.client.Watch(ctx, k.key, clientv3.WithRev(k.read+1)) {
		if answer.Err() != nil {
			return nil
		}
		for _, event := range answer.Events {
			record, err := decodeJSON(event.Kv.Value)
			if event.Type == clientv3.EventTypeDelete || err != nil || seen(record) {
				return nil
			}
			k.read = event.Kv.ModRevision
		}
	}
	return nil
}

// LeastToken implements leadership.Store. Every takeover raises the revision, and uses a smaller one as its token.
func (k *etcdKey) LeastToken() leadership.Token { return leadership.Token(k.revision) }

// LastToken implements leadership.Store.
func (k *etcdKey) LastToken() leadership.Token { return lastToken }

// etcdError marks refusals, which a second try meets too.
func etcdError(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied), errors.Is(err, rpctypes.ErrAuthFailed),
		errors.Is(err, rpctypes.ErrUserEmpty):
		return leadership.Forbidden(err)
	}
	return err
}
