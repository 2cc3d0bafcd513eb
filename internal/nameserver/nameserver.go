// Package nameserver is a name server on loopback for tests. It serves one zone's worth of answers, which the test
// changes as it runs, and can be silent or fail.
//
// It knows nothing of what the answers are for.
package nameserver

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Server answers every name alike, by UDP and TCP.
type Server struct {
	// Addr is where it listens.
	Addr string

	mu     sync.Mutex
	values []string
	rcode  int
	silent bool
	asked  int
	given  []Answer
}

// Answer is one that was given: the values that the name has, or none. Errors are none.
type Answer struct {
	At     time.Time
	Values []string
}

// Start starts a server that ends with the test. No name exists until Say.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{}
	// A port that is free for TCP is tried for UDP, too; of those that are taken there, another one is tried.
	for range 20 {
		stream, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		packets, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", stream.Addr().String())
		if err != nil {
			_ = stream.Close()
			continue
		}
		s.Addr = stream.Addr().String()
		for _, server := range []*dns.Server{{Listener: stream, Handler: s}, {PacketConn: packets, Handler: s}} {
			started := make(chan struct{})
			server.NotifyStartedFunc = func() { close(started) }
			go func() { _ = server.ActivateAndServe() }()
			<-started
			t.Cleanup(func() { _ = server.Shutdown() })
		}
		return s
	}
	t.Fatal("no port is free for TCP and UDP")
	return nil
}

// Say sets the answer: addresses for questions about these, and texts for questions about texts. Without any, no name
// exists.
func (s *Server) Say(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values, s.rcode, s.silent = values, dns.RcodeSuccess, false
}

// Fail has each question answered by an error.
func (s *Server) Fail(rcode int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rcode, s.silent = rcode, false
}

// Hush has no question answered.
func (s *Server) Hush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
}

// Asked is how many questions have arrived.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Given are all answers so far.
func (s *Server) Given() []Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.given)
}

// ServeDNS implements dns.Handler.
func (s *Server) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	s.mu.Lock()
	values, rcode, silent := s.values, s.rcode, s.silent
	s.asked++
	if !silent && rcode == dns.RcodeSuccess {
		s.given = append(s.given, Answer{time.Now(), values})
	}
	s.mu.Unlock()
	if silent {
		return
	}
	answer := new(dns.Msg).SetRcode(question, rcode)
	if rcode == dns.RcodeSuccess && len(values) == 0 {
		answer.Rcode = dns.RcodeNameError
	}
	for _, v := range values {
		if r := record(question.Question[0], v); r != nil && answer.Rcode == dns.RcodeSuccess {
			answer.Answer = append(answer.Answer, r)
		}
	}
	if _, isPacket := w.RemoteAddr().(*net.UDPAddr); isPacket {
		size := dns.MinMsgSize
		if o := question.IsEdns0(); o != nil {
			size = int(o.UDPSize())
		}
		answer.Truncate(size)
	}
	_ = w.WriteMsg(answer) // whoever asks has gone
}

// record is a value as the answer to a question; nil if it does not answer it.
func record(q dns.Question, value string) dns.RR {
	header := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: 1}
	address, err := netip.ParseAddr(value)
	switch {
	case q.Qtype == dns.TypeTXT:
		return &dns.TXT{Hdr: header, Txt: split(value)}
	case err == nil && address.Is4() && q.Qtype == dns.TypeA:
		return &dns.A{Hdr: header, A: address.AsSlice()}
	case err == nil && address.Is6() && q.Qtype == dns.TypeAAAA:
		return &dns.AAAA{Hdr: header, AAAA: address.AsSlice()}
	}
	return nil
}

// split cuts a text into strings of 255 bytes, which is as long as one may be.
func split(text string) []string {
	const most = 255
	var list []string
	for len(text) > most {
		list, text = append(list, text[:most]), text[most:]
	}
	return append(list, text)
}
