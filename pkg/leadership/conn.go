package leadership

import (
	"context"
	"net"
	"time"

	"k8s.io/client-go/rest"
)

// conn is a connection that asks, each time before bytes go to the network, whether a write may be among them. Between
// the gate and here a process can be frozen for as long as another one likes: in the midst of a large request, say.
type conn struct {
	net.Conn
	tenure *Tenure
	// madeAfter is how many renewals there were when it was made, where the tenure was over then and no write was under
	// way, which may have waited for a connection, or be tried again by the transport: no write is on it, and none comes
	// before the next renewal. It is 0 for all others.
	madeAfter int
}

// Write implements net.Conn. The error is a *RefusedError where the connection was cut.
func (c *conn) Write(data []byte) (int, error) {
	if err := c.tenure.mayCarry(c); err != nil {
		c.tenure.expire()
		return 0, err
	}
	return c.Conn.Write(data)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.tenure.forget(c)
	return c.Conn.Close()
}

// SetLinger lets a connection around this one be closed as abort closes this one.
func (c *conn) SetLinger(seconds int) error {
	if tcp, ok := c.Conn.(interface{ SetLinger(seconds int) error }); ok {
		return tcp.SetLinger(seconds)
	}
	return nil
}

// abort closes it without sending what the kernel still holds: it would be sent for minutes, as soon as the other side
// can be reached again.
func (c *conn) abort() {
	_ = c.SetLinger(0) // it is closed in any case
	_ = c.Close()
}

// mayCarry returns why no bytes may be sent on the connection, or nil.
func (t *Tenure) mayCarry(c *conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stale(c) {
		return &RefusedError{Lock: t.name, After: t.clock().since(t.sent)}
	}
	return nil
}

// keep makes a new connection one of those that are cut.
func (t *Tenure) keep(raw net.Conn) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &conn{Conn: raw, tenure: t}
	if t.over() && len(t.underWay) == 0 {
		c.madeAfter = t.renewals
	}
	t.conns[c] = struct{}{}
	return c
}

func (t *Tenure) forget(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialing makes the connections of a client ones of the tenure.
func (t *Tenure) dialing(cfg *rest.Config) dialer {
	dial := dialer(cfg.Dial)
	if dial == nil {
		dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext // as client-go does
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return t.keep(raw), nil
	}
}
