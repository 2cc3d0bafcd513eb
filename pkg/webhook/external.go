package webhook

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
)

// external reads a Secret that another writer keeps, such as cert-manager: tls.crt, tls.key and ca.crt. Unlike
// readBundle it refuses what could not be served now, so that a Secret that is half written, or not renewed, does not
// replace what is served.
func external(secret *corev1.Secret, hosts []string, now time.Time) (*bundle, error) {
	current, err := readPair(secret.Data[keyCertificate], secret.Data[keyPrivate])
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", keyCertificate, keyPrivate, err)
	}
	b := &bundle{current: current}
	if text := secret.Data[keyTrusted]; len(text) > 0 {
		if b.trusted, err = certutil.ParseCertsPEM(text); err != nil {
			return nil, fmt.Errorf("%s: %w", keyTrusted, err)
		}
	}
	var unknown x509.UnknownAuthorityError
	switch err := current.verify(b.trust(), hosts, now); {
	case errors.As(err, &unknown) && len(b.trusted) == 0:
		return nil, fmt.Errorf("%s: %w; %s, the authority that signed it, is missing", keyCertificate, err, keyTrusted)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", keyCertificate, err)
	}
	return b, nil
}

// follow brings what is served to what another writer has put into the Secret. A certificate that definitions do not
// trust yet waits for them, and for API servers to follow: until the next look. Meanwhile both are trusted, and for a
// while after that, for other replicas.
func (c *Certificates) follow(secret *corev1.Secret, accepts func(*pair) bool) error {
	now := time.Now()
	offered, err := external(secret, c.Hosts, now)
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w%s", c.At, err, c.meanwhile())
	}
	before := c.served.Load()
	if before == nil {
		return c.serve(offered)
	}
	next := &bundle{current: offered.current, trusted: union(offered.trusted, before.bundle.trusted)}
	accepted := accepts(offered.current)
	switch {
	case before.bundle.current.leaf.Equal(offered.current.leaf):
		if now.Sub(c.changed) >= overlap {
			next.trusted = offered.trusted
		}
	case accepted && c.accepted != nil && c.accepted.Equal(offered.current.leaf), accepted &&
		!accepts(before.bundle.current),
		before.bundle.current.verify(before.bundle.trust(), c.Hosts, now) != nil:
		c.changed = now
		c.Log.Info("the certificate of the webhook has changed", "secret", c.At.String(), "expires",
			offered.current.leaf.NotAfter)
	default:
		next.current, next.next = before.bundle.current, offered.current
	}
	if c.accepted = nil; accepted {
		c.accepted = offered.current.leaf
	}
	return c.serve(next)
}

// meanwhile says what is served while the Secret is not usable.
func (c *Certificates) meanwhile() string {
	before := c.served.Load()
	if before == nil {
		return ": nothing can be served until whoever writes it has fixed it"
	}
	return ": the previous certificate is served, which expires at " +
		before.bundle.current.leaf.NotAfter.UTC().Format(time.RFC3339)
}

func union(a, b []*x509.Certificate) []*x509.Certificate {
	all := slices.Clone(a)
	for _, c := range b {
		if !slices.ContainsFunc(all, c.Equal) {
			all = append(all, c)
		}
	}
	return all
}
