package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
)

// connects reports whether a client that trusts a caBundle accepts the certificate that is served.
func connects(t *testing.T, trust []byte, served *pair, host string) bool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trust)
	certificate, err := tls.X509KeyPair(served.certificate, served.private)
	if err != nil {
		t.Fatal(err)
	}
	leaf := must.Get(x509.ParseCertificate(certificate.Certificate[0])).In(t)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: time.Now()})
	return err == nil
}

// For a year, an API server whose caBundle is up to five minutes behind and a replica whose certificate is up to five
// minutes behind understand each other at every moment, whatever the leader has just done.
func TestRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hosts := []string{"corollary.ops.svc", "127.0.0.1"}
		b := must.Get((&rotation{}).advance(&bundle{}, hosts, lifetime, time.Now(), nil)).In(t)
		type state struct {
			trust  []byte
			served *pair
		}
		past := []state{{b.trust(), b.current}} // one a minute
		r := &rotation{}
		begun, rotations, largest, news := time.Now(), 0, 0, 0
		for time.Since(begun) < 365*24*time.Hour {
			step := time.Minute
			if b.next == nil && len(b.trusted) == 1 {
				step = 6 * time.Hour
			}
			<-time.After(step) // of a virtual clock
			published := past[max(0, len(past)-5)].trust
			next := must.Get(r.advance(readBundle(b.data()), hosts, lifetime, time.Now(),
				func(c *pair) bool { return c.verify(published, hosts, time.Now()) == nil })).In(t)
			if next != nil {
				news = len(past) + 6
				if !next.current.leaf.Equal(b.current.leaf) {
					rotations++
				}
				b = next
			}
			largest = max(largest, len(b.trusted))
			if past = append(past, state{b.trust(), b.current}); len(past) > 6 {
				past = past[1:]
			}
			if news--; news < 0 {
				continue // every pair has been tried
			}
			for _, server := range past {
				for _, replica := range past {
					if !connects(t, server.trust, replica.served, hosts[0]) {
						t.Fatalf("after %s an API server does not trust what a replica serves", time.Since(begun))
					}
				}
			}
		}
		if rotations < 5 || largest > 2 || len(b.trusted) > 2 {
			t.Errorf("%d rotations, at most %d authorities", rotations, largest)
		}
	})
}

// What cannot be served is replaced at once.
func TestReplaced(t *testing.T) {
	t.Parallel()
	hosts := []string{"a.example.com"}
	good := must.Get((&rotation{}).advance(&bundle{}, hosts, lifetime, time.Now(), nil)).In(t)
	for reason, row := range map[string]struct {
		data  func(map[string][]byte)
		hosts []string
		now   time.Time
		stays bool
	}{
		"nothing":        {data: func(d map[string][]byte) { clear(d) }},
		"it is good":     {data: func(map[string][]byte) {}, stays: true},
		"another host":   {data: func(map[string][]byte) {}, hosts: []string{"b.example.com"}},
		"one more host":  {data: func(map[string][]byte) {}, hosts: []string{"a.example.com", "10.0.0.1"}},
		"it has expired": {data: func(map[string][]byte) {}, now: time.Now().Add(lifetime)},
		"no key":         {data: func(d map[string][]byte) { delete(d, keyPrivate) }},
		"another key":    {data: func(d map[string][]byte) { d[keyPrivate] = d[keyCertificate] }},
		"truncated":      {data: func(d map[string][]byte) { d[keyCertificate] = d[keyCertificate][:100] }},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			data := good.data()
			row.data(data)
			if row.hosts == nil {
				row.hosts = hosts
			}
			if row.now.IsZero() {
				row.now = time.Now()
			}
			next := must.Get((&rotation{}).advance(readBundle(data), row.hosts, lifetime, row.now, nil)).In(t)
			if (next == nil) != row.stays {
				t.Fatalf("it became %v", next)
			}
			if next != nil && !next.current.serves(row.hosts, time.Now()) {
				t.Error("what came instead cannot be served")
			}
		})
	}
}

// A key that has leaked, whose Secret someone deleted, is soon no longer used, and then no longer trusted; what is
// served is trusted at every moment.
func TestRenewed(t *testing.T) {
	t.Parallel()
	b, err := (&rotation{}).advance(&bundle{}, rotationHosts, lifetime, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	leaked := b.current
	if b, err = b.renew(rotationHosts, lifetime); err != nil {
		t.Fatal(err)
	}
	r := &rotation{}
	renewed, begun := b.next, time.Now()
	for minute := range 40 {
		published := b.trust()
		b = r.after(t, b, begun, minute, func(c *pair) bool { return c.verify(published, rotationHosts, time.Now()) == nil })
		if !connects(t, published, b.current, rotationHosts[0]) {
			t.Errorf("after %d minutes, API servers do not trust what is served", minute)
		}
		must.Same(t, (minute < 10), b.current.leaf.Equal(leaked.leaf), "after", minute, "minutes, the leaked key is served")
		must.Same(t, (minute < 31), b.trusts(leaked.authority), "after", minute, "minutes, the leaked key is trusted")
	}
	if !b.current.leaf.Equal(renewed.leaf) || b.next != nil {
		t.Error("another certificate is served")
	}
}
