package locks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// zookeeperNode is a lock that is a node in ZooKeeper. It is not ephemeral: when it runs out is decided by those that
// wait, each by its own clock, as for a Lease of Kubernetes. So no renewal counts that a server answered which the
// others have left behind.
type zookeeperNode struct {
	conn *zk.Conn
	path string
	acl  []zk.ACL
	// busy has room for one request: those that are not answered must not pile up.
	busy chan struct{}
	// version is that of the node that was read or written last, zxid the last transaction in it, or in what is above it.
	version int32
	zxid    int64
}

// openZooKeeper returns a lock that is a node in ZooKeeper. It sends no request.
func openZooKeeper(f *load.ActivationFile) (leadership.Store, error) {
	z := f.ZooKeeper
	secure, err := tlsConfig(f, "zookeeper.tls", z.TLS)
	if err != nil {
		return nil, err
	}
	auth, err := f.Read("zookeeper.authFrom", z.AuthFrom)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (leadership.Store, error) {
		// Within two thirds of the session's timeout another server is tried.
		conn, _, err := zk.Connect(z.Servers, RequestTimeout(f), zk.WithLogger(silent{}), zk.WithMaxBufferSize(maxAnswer),
			zk.WithDialer(zookeeperDialer(secure, RequestTimeout(f))))
		if err != nil {
			return nil, fmt.Errorf("preparing the client: %w", err)
		}
		n := &zookeeperNode{conn: conn, path: z.Path, acl: zk.WorldACL(zk.PermAll), busy: make(chan struct{}, 1)}
		if auth != "" {
			n.acl = zk.AuthACL(zk.PermAll)
			if err := n.do(ctx, func() error { return conn.AddAuth("digest", []byte(auth)) }); err != nil {
				conn.Close()
				return nil, err
			}
		}
		return n, nil
	}
	return &lazy{name: "ZooKeeper node " + z.Path, open: open}, nil
}

// maxAnswer bounds an answer: 1 MiB is ZooKeeper's own limit.
const maxAnswer = 1 << 20

// silent keeps the client from logging: its errors are those of requests.
type silent struct{}

// Printf implements zk.Logger.
func (silent) Printf(string, ...any) {}

// zookeeperDialer returns what opens connections, which wait no longer than patience for an answer.
func zookeeperDialer(secure *tls.Config, patience time.Duration) zk.Dialer {
	return func(network, address string, timeout time.Duration) (conn net.Conn, err error) {
		dialer := &net.Dialer{Timeout: timeout}
		if secure == nil {
			conn, err = dialer.Dial(network, address)
		} else {
			conn, err = tls.DialWithDialer(dialer, network, address, secure)
		}
		if err != nil {
			return nil, err
		}
		return &impatient{conn, patience}, nil
	}
}

// impatient bounds how long a connection waits. The client gives a server that accepts connections and does not answer
// ten times as long for its first answer as for all others, and tries no other server meanwhile.
type impatient struct {
	net.Conn

	patience time.Duration
}

// SetReadDeadline implements net.Conn.
func (c *impatient) SetReadDeadline(t time.Time) error {
	if bound := time.Now().Add(c.patience); t.IsZero() || t.After(bound) {
		t = bound
	}
	return c.Conn.SetReadDeadline(t)
}

// do makes a request that the client cannot give up. One that is not answered in time is left behind, and the next one
// waits for it; whatever it still does is a compare and swap, and nobody waits for its answer.
func (n *zookeeperNode) do(ctx context.Context, request func() error) error {
	select {
	case n.busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the answer to another request: %w", ctx.Err())
	}
	answer := make(chan error, 1)
	go func() {
		defer func() { <-n.busy }()
		answer <- request()
	}()
	select {
	case err := <-answer:
		return zookeeperError(n.path, err)
	case <-ctx.Done():
		return fmt.Errorf("waiting for an answer of %s: %w", n.conn.Server(), ctx.Err())
	}
}

// Describe implements leadership.Store.
func (n *zookeeperNode) Describe() string { return "ZooKeeper node " + n.path }

// found is what a request has read.
type found struct {
	data    []byte
	stat    *zk.Stat
	changed <-chan zk.Event
}

// Get implements leadership.Store. What it reads may be old; then no write follows it that succeeds.
func (n *zookeeperNode) Get(ctx context.Context) (*leadership.Record, error) {
	var read found
	err := n.do(ctx, func() (err error) {
		read.data, read.stat, err = n.conn.Get(n.path)
		return err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		if err := n.readAbove(ctx); err != nil {
			return nil, err
		}
		return nil, leadership.NotFound(n.path)
	case err != nil:
		return nil, err
	}
	return n.decode(&read)
}

// noVersion is one that no node has.
const noVersion = math.MaxInt32

// decode notes and returns what was read. If that is not a record, no update succeeds.
func (n *zookeeperNode) decode(read *found) (*leadership.Record, error) {
	record, err := decodeJSON(read.data)
	if n.version, n.zxid = read.stat.Version, read.stat.Mzxid; err != nil {
		n.version = noVersion
	}
	return record, err
}

// readAbove finds the last transaction above a node that does not exist: no earlier one than its deletion.
func (n *zookeeperNode) readAbove(ctx context.Context) error {
	for above := path.Dir(n.path); ; above = path.Dir(above) {
		var exists bool
		var stat *zk.Stat
		err := n.do(ctx, func() (err error) {
			exists, stat, err = n.conn.Exists(above)
			return err
		})
		switch {
		case err != nil:
			return err
		case exists:
			n.zxid = stat.Pzxid
			return nil
		case above == "/":
			return nil
		}
	}
}

// Create implements leadership.Store. It makes the nodes above, too.
func (n *zookeeperNode) Create(ctx context.Context, record *leadership.Record) error {
	text, err := encodeJSON(record)
	if err != nil {
		return err
	}
	steps := strings.Split(strings.Trim(n.path, "/"), "/")
	return n.do(ctx, func() error {
		for i := range steps[:len(steps)-1] {
			_, err := n.conn.Create("/"+strings.Join(steps[:i+1], "/"), nil, 0, n.acl)
			if err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
		_, err := n.conn.Create(n.path, []byte(text), 0, n.acl)
		if err == nil {
			n.version = 0
		}
		return err
	})
}

// Update implements leadership.Store.
func (n *zookeeperNode) Update(ctx context.Context, record *leadership.Record) error {
	text, err := encodeJSON(record)
	if err != nil {
		return err
	}
	var stat *zk.Stat
	version := n.version
	err = n.do(ctx, func() (err error) {
		stat, err = n.conn.Set(n.path, []byte(text), version)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return leadership.Conflict(n.path) // it was deleted
	} else if err != nil {
		return err
	}
	n.version, n.zxid = stat.Version, stat.Mzxid
	return nil
}

// Watch implements leadership.Store. What goes wrong ends it: the node is read again then.
func (n *zookeeperNode) Watch(ctx context.Context, seen func(*leadership.Record) bool) error {
	for ctx.Err() == nil {
		changed, free := n.watchOnce(ctx, seen)
		if changed == nil || free {
			return nil
		}
		select {
		case <-ctx.Done():
		case event := <-changed:
			if event.Err != nil {
				return nil //nolint:nilerr // whoever reads the node again is told why that fails
			}
		}
	}
	return nil
}

// watchOnce reads the node, and returns a channel for its next change; nil if there is none.
func (n *zookeeperNode) watchOnce(
	ctx context.Context, seen func(*leadership.Record) bool,
) (changed <-chan zk.Event, free bool) {
	var read found
	err := n.do(ctx, func() (err error) {
		read.data, read.stat, read.changed, err = n.conn.GetW(n.path)
		return err
	})
	if err != nil {
		return nil, false
	}
	if read.stat.Version == n.version {
		return read.changed, false
	}
	record, err := n.decode(&read)
	if err != nil {
		return nil, false
	}
	return read.changed, seen(record)
}

// LeastToken implements leadership.Store. Every takeover is a transaction with a greater number than those before, and
// uses one of these as its token.
func (n *zookeeperNode) LeastToken() leadership.Token { return leadership.Token(n.zxid) }

// LastToken implements leadership.Store.
func (n *zookeeperNode) LastToken() leadership.Token { return lastToken }

// zookeeperError gives errors the meaning that they have for a Store.
func zookeeperError(name string, err error) error {
	switch {
	case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		return leadership.Conflict(name)
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return leadership.Forbidden(err)
	}
	return err
}
