package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Proxy is between a client and a server, and can behave like a bad network. What it holds back while it drops arrives
// later, as what TCP sends again.
type Proxy struct {
	target   string
	listener net.Listener
	mu       sync.Mutex
	drops    chan struct{} // closed when it passes again; nil while it does
	loses    bool          // what it holds back never arrives
	delay    time.Duration
	conns    map[net.Conn]struct{}
	closed   bool
}

// NewProxy listens on a port of its own until it is closed.
func NewProxy(target string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p := &Proxy{target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	go p.accept()
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Drop makes it lose everything until Pass.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops == nil {
		p.drops = make(chan struct{})
	}
}

// Lose is Drop for a network that is away for so long that connections do not outlive it: what was sent meanwhile never
// arrives.
func (p *Proxy) Lose() {
	p.Drop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = true
}

// Delay makes it deliver everything later by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Pass makes it deliver again, at once.
func (p *Proxy) Pass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = 0
	if p.loses {
		p.loses = false
		p.cut()
	}
	if p.drops != nil {
		close(p.drops)
		p.drops = nil
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for c := range p.conns {
		_ = c.Close()
	}
}

// Close ends it.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Pass()
	p.Cut()
	return p.listener.Close()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go p.serve(client)
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.forget(client)
	p.hold()
	server, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", p.target)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.forget(server)
	ended := make(chan struct{}, 2)
	pump := func(to io.Writer, from io.Reader) {
		defer func() { ended <- struct{}{} }()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				p.hold()
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				p.hold() // the end of a connection does not get through either
				return
			}
		}
	}
	go pump(server, client)
	go pump(client, server)
	<-ended
}

// hold waits while it drops, and then for the delay.
func (p *Proxy) hold() {
	p.mu.Lock()
	drops, delay := p.drops, p.delay
	p.mu.Unlock()
	if drops != nil {
		<-drops
	}
	if delay > 0 {
		<-time.After(delay)
	}
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}
