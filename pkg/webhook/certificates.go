package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Certificates serve what a Secret holds. One of several replicas keeps it up to date; all of them read it.
type Certificates struct {
	Secrets corev1client.SecretsGetter
	At      types.NamespacedName
	Hosts   []string
	// ReadOnly: the Secret is kept by another writer, such as cert-manager, and is never written.
	ReadOnly bool
	Log      logr.Logger

	served   atomic.Pointer[served]
	rotation rotation
	// Of a Secret that is only read: the certificate that definitions trusted at the last look, and when what is served
	// last changed.
	accepted *x509.Certificate
	changed  time.Time
}

type served struct {
	bundle      *bundle
	certificate tls.Certificate
}

var errNoCertificate = errors.New("the webhook has no certificate yet")

// GetCertificate is for tls.Config.
func (c *Certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s := c.served.Load(); s != nil {
		return &s.certificate, nil
	}
	return nil, errNoCertificate
}

// Trust is the caBundle for what is served; nil where the API server's system trusts it, or there is nothing.
func (c *Certificates) Trust() []byte {
	if s := c.served.Load(); s != nil {
		return s.bundle.trust()
	}
	return nil
}

// read takes in what the Secret holds; accepts reports whether all definitions trust a certificate.
func (c *Certificates) read(ctx context.Context, accepts func(*pair) bool) error {
	secret, err := c.Secrets.Secrets(c.At.Namespace).Get(ctx, c.At.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w%s", c.At, err, c.meanwhile())
	}
	if c.ReadOnly {
		return c.follow(secret, accepts)
	}
	return c.take(secret, accepts)
}

// take serves what the Secret holds, unless definitions trust what is served and not that.
func (c *Certificates) take(secret *corev1.Secret, accepts func(*pair) bool) error {
	b := readBundle(secret.Data)
	if b.current == nil {
		return fmt.Errorf("reading Secret %s: it holds no certificate with its key in %s and %s%s",
			c.At, keyCertificate, keyPrivate, c.meanwhile())
	}
	if before := c.served.Load(); before != nil && c.breaks(before.bundle, b, accepts) {
		return fmt.Errorf("reading Secret %s: a CustomResourceDefinition does not trust its certificate yet%s",
			c.At, c.meanwhile())
	}
	return c.serve(b)
}

// breaks reports whether reviews would fail if b replaced what is served: no definition trusts it, as after someone has
// replaced the Secret.
func (c *Certificates) breaks(served, b *bundle, accepts func(*pair) bool) bool {
	return !served.current.leaf.Equal(b.current.leaf) && served.current.serves(c.Hosts, time.Now()) &&
		accepts(served.current) && !accepts(b.current)
}

func (c *Certificates) serve(b *bundle) error {
	certificate, err := tls.X509KeyPair(b.current.certificate, b.current.private)
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", c.At, err)
	}
	c.served.Store(&served{bundle: b, certificate: certificate})
	expiration.WithLabelValues(c.At.String()).Set(float64(b.current.leaf.NotAfter.Unix()))
	return nil
}

// next is what the Secret should hold; nil: it stays as it is. If it has lost the certificate that is served, that
// stays in use until the next one is trusted, which is the one that someone has put in its place, if that can be
// served.
func (c *Certificates) next(b *bundle, life time.Duration, accepts func(*pair) bool) (*bundle, error) {
	now := time.Now()
	if before := c.served.Load(); before != nil && before.bundle.current.serves(c.Hosts, now) {
		switch {
		case !b.current.serves(c.Hosts, now):
			return before.bundle.renew(c.Hosts, life)
		case c.breaks(before.bundle, b, accepts):
			return &bundle{
				current: before.bundle.current, next: b.current,
				trusted: []*x509.Certificate{before.bundle.current.authority, b.current.authority},
			}, nil
		}
	}
	return c.rotation.advance(b, c.Hosts, life, now, accepts)
}

// keep brings the Secret to what it should be now, with certificates that live so long; accepts reports whether all
// definitions trust one. Of several processes that do this at once one succeeds, and the others read what it wrote.
func (c *Certificates) keep(ctx context.Context, life time.Duration, accepts func(*pair) bool) error {
	secrets := c.Secrets.Secrets(c.At.Namespace)
	secret, err := secrets.Get(ctx, c.At.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("reading Secret %s: %w", c.At, err)
	}
	if missing {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.At.Namespace,
			Name: c.At.Name}, Type: corev1.SecretTypeTLS}
	}
	next, err := c.next(readBundle(secret.Data), life, accepts)
	if err != nil {
		return err
	}
	if next != nil {
		secret.Data = next.data()
		if missing {
			secret, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
		} else {
			secret, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		switch {
		case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
			return c.read(ctx, accepts)
		case err != nil:
			return fmt.Errorf("writing Secret %s: %w", c.At, err)
		}
		c.Log.Info("the certificate of the webhook has changed", "secret", c.At.String(),
			"expires", next.current.leaf.NotAfter,
			"overlaps", next.next != nil)
	}
	return c.take(secret, accepts)
}
