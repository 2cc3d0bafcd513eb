package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// Keys of the Secret. Of kubernetes.io/tls are tls.crt and tls.key, as cert-manager writes them too.
const (
	keyCertificate     = "tls.crt"
	keyPrivate         = "tls.key"
	keyTrusted         = "ca.crt"
	keyNextCertificate = "next.crt"
	keyNextPrivate     = "next.key"
)

// Times of the certificate's life; the last third is for its renewal. If caBundle is in a repository, someone has to
// change it for each certificate, so these live long: the key of a long-lived authority in the same Secret would
// protect no better. What is trusted is published overlap before it is served, and stays so long after: API servers and
// other replicas have taken it in by then.
const (
	lifetime        = 90 * 24 * time.Hour
	lastingLifetime = 10 * 365 * 24 * time.Hour
	overlap         = 10 * time.Minute
)

// bundle is what the Secret holds: a certificate to serve, the next one while they overlap, and who signed these.
type bundle struct {
	current, next *pair
	trusted       []*x509.Certificate
}

// pair is a certificate with its key, and the authority that signed it.
type pair struct {
	certificate, private []byte
	leaf, authority      *x509.Certificate
	chain                []*x509.Certificate // what is sent with the leaf
}

// issue makes a pair whose authority signs nothing else: its key is not kept.
func issue(hosts []string, life time.Duration) (*pair, error) {
	o := certutil.SelfSignedCertKeyOptions{Host: hosts[0], MaxAge: life}
	for _, host := range hosts[1:] {
		if ip := net.ParseIP(host); ip != nil {
			o.AlternateIPs = append(o.AlternateIPs, ip)
		} else {
			o.AlternateDNS = append(o.AlternateDNS, host)
		}
	}
	certificate, private, err := certutil.GenerateSelfSignedCertKeyWithOptions(o)
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	return readPair(certificate, private)
}

func readPair(certificate, private []byte) (*pair, error) {
	if _, err := tls.X509KeyPair(certificate, private); err != nil {
		return nil, err
	}
	chain, err := certutil.ParseCertsPEM(certificate)
	if err != nil {
		return nil, err
	}
	p := &pair{certificate: certificate, private: private, leaf: chain[0], chain: chain[1:]}
	if last := chain[len(chain)-1]; last.IsCA {
		p.authority = last
	}
	return p, nil
}

// serves reports whether the certificate is good for all hosts at a time.
func (p *pair) serves(hosts []string, now time.Time) bool {
	if p == nil || p.authority == nil || now.Before(p.leaf.NotBefore) || !now.Before(p.leaf.NotAfter) {
		return false
	}
	return !slices.ContainsFunc(hosts, func(host string) bool { return p.leaf.VerifyHostname(host) != nil })
}

// verify returns why an API server with that caBundle does not accept the certificate for all hosts; nil if it does.
// Without a caBundle, an API server trusts what its system trusts: this machine takes its place.
func (p *pair) verify(trust []byte, hosts []string, now time.Time) error {
	o := x509.VerifyOptions{CurrentTime: now, Intermediates: x509.NewCertPool()}
	if len(trust) > 0 {
		o.Roots = x509.NewCertPool()
		o.Roots.AppendCertsFromPEM(trust)
	}
	for _, c := range p.chain {
		o.Intermediates.AddCert(c)
	}
	for _, host := range hosts {
		o.DNSName = host
		if _, err := p.leaf.Verify(o); err != nil {
			return err
		}
	}
	return nil
}

// readBundle reads a Secret's data. What cannot be read is missing from it.
func readBundle(data map[string][]byte) *bundle {
	b := &bundle{}
	b.current, _ = readPair(data[keyCertificate], data[keyPrivate])
	b.next, _ = readPair(data[keyNextCertificate], data[keyNextPrivate])
	b.trusted, _ = certutil.ParseCertsPEM(data[keyTrusted])
	return b
}

// data is the bundle as a Secret holds it.
func (b *bundle) data() map[string][]byte {
	data := map[string][]byte{keyCertificate: b.current.certificate, keyPrivate: b.current.private, keyTrusted: b.trust()}
	if b.next != nil {
		data[keyNextCertificate], data[keyNextPrivate] = b.next.certificate, b.next.private
	}
	return data
}

// trust is what a caBundle holds.
func (b *bundle) trust() []byte { return encode(b.trusted) }

func encode(certificates []*x509.Certificate) []byte {
	var text bytes.Buffer
	for _, c := range certificates {
		_ = pem.Encode(&text, &pem.Block{Type: certutil.CertificateBlockType, Bytes: c.Raw}) // into memory
	}
	return text.Bytes()
}

// Trust is a caBundle of the certificates in a PEM text.
func Trust(text []byte) ([]byte, error) {
	certificates, err := certutil.ParseCertsPEM(text)
	if err != nil {
		return nil, err
	}
	return encode(certificates), nil
}

func (b *bundle) trusts(c *x509.Certificate) bool { return slices.ContainsFunc(b.trusted, c.Equal) }

// sighting is since when something has been true of a certificate, as far as this process has seen; another certificate
// starts it again.
type sighting struct {
	leaf  *x509.Certificate
	since time.Time
}

func (s *sighting) lasts(leaf *x509.Certificate, now time.Time) time.Duration {
	if s.leaf == nil || !s.leaf.Equal(leaf) {
		*s = sighting{leaf, now}
	}
	return now.Sub(s.since)
}

// rotation is what a process has seen of the bundles that it keeps: since when the next certificate has been trusted by
// all definitions, and since when the current one has been served.
type rotation struct{ trusted, served sighting }

// advance brings a bundle to what it should be at a time: a first certificate, the next one in good time, served once
// it has been trusted for a while, and the old authority forgotten a while after that. It returns nil where nothing is
// to be done. accepts reports whether every definition trusts a certificate now.
func (r *rotation) advance(
	b *bundle, hosts []string, life time.Duration, now time.Time, accepts func(*pair) bool,
) (*bundle, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no host is named that the certificate is for")
	}
	switch {
	case !b.current.serves(hosts, now) && b.next.serves(hosts, now):
		return b.promote(), nil
	case !b.current.serves(hosts, now):
		return b.replace(hosts, life)
	case b.next != nil:
		return r.advanceNext(b, hosts, now, accepts), nil
	case b.current.leaf.NotAfter.Sub(now) < life/3:
		return b.renew(hosts, life)
	case !b.trusts(b.current.authority) || len(b.trusted) > 1 && r.served.lasts(b.current.leaf, now) >= 2*overlap:
		return &bundle{current: b.current, trusted: []*x509.Certificate{b.current.authority}}, nil
	}
	return nil, nil
}

// renew makes the next certificate.
func (b *bundle) renew(hosts []string, life time.Duration) (*bundle, error) {
	next, err := issue(hosts, life)
	if err != nil {
		return nil, err
	}
	return &bundle{current: b.current, next: next, trusted: []*x509.Certificate{b.current.authority, next.authority}}, nil
}

// advanceNext is advance where there is a next certificate already.
func (r *rotation) advanceNext(b *bundle, hosts []string, now time.Time, accepts func(*pair) bool) *bundle {
	accepted := accepts(b.next)
	if !accepted {
		r.trusted = sighting{}
	}
	switch {
	case !b.next.serves(hosts, now):
		return &bundle{current: b.current, trusted: []*x509.Certificate{b.current.authority}}
	case !b.trusts(b.next.authority) || !b.trusts(b.current.authority):
		return &bundle{current: b.current, next: b.next, trusted: []*x509.Certificate{b.current.authority, b.next.authority}}
	case accepted && r.trusted.lasts(b.next.leaf, now) >= overlap:
		return b.promote()
	}
	return nil
}

// promote makes the next certificate the current one.
func (b *bundle) promote() *bundle {
	trusted := []*x509.Certificate{b.next.authority}
	if b.current != nil && b.current.authority != nil {
		trusted = append(trusted, b.current.authority)
	}
	return &bundle{current: b.next, trusted: trusted}
}

// replace starts from nothing where nothing that is there can be served. Whoever is trusted stays so until the new one
// is.
func (b *bundle) replace(hosts []string, life time.Duration) (*bundle, error) {
	made, err := issue(hosts, life)
	if err != nil {
		return nil, err
	}
	trusted := []*x509.Certificate{made.authority}
	if b.current != nil && b.current.authority != nil {
		trusted = append(trusted, b.current.authority)
	}
	return &bundle{current: made, trusted: trusted}, nil
}
