package webhook

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/corollary-dev/corollary/internal/must"
)

// issuer signs certificates as the CA issuer of cert-manager does.
type issuer struct {
	t           *testing.T
	certificate *x509.Certificate
	key         crypto.Signer
}

func newIssuer(t *testing.T, name string) *issuer {
	t.Helper()
	key := newKey(t)
	c := must.Get(certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)).In(t)
	return &issuer{t, c, key}
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).In(t)
	return key
}

// secret is a Secret as cert-manager writes it: the leaf alone in tls.crt, and the issuer in ca.crt.
func (i *issuer) secret(serial int64, host string, life time.Duration) *corev1.Secret {
	i.t.Helper()
	key := newKey(i.t)
	der := must.Get(x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, i.certificate, key.Public(), i.key)).In(i.t)
	leaf := must.Get(x509.ParseCertificate(der)).In(i.t)
	private := must.Get(keyutil.MarshalPrivateKeyToPEM(key)).In(i.t)
	return &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{
		keyCertificate: encode([]*x509.Certificate{leaf}), keyPrivate: private, keyTrusted: encode([]*x509.Certificate{i.certificate}),
	}}
}

const externalHost = "corollary-webhook.ops.svc"

// What another writer puts into the Secret is not served if it cannot be: what was served before goes on.
func TestFollowRefuses(t *testing.T) {
	t.Parallel()
	ours, others := newIssuer(t, "ours"), newIssuer(t, "others")
	for _, row := range []struct {
		reason, says string
		change       func(map[string][]byte)
		secret       *corev1.Secret
	}{
		{"the key is not there yet", "tls.crt and tls.key: ", func(d map[string][]byte) { delete(d, keyPrivate) }, nil},
		{"the certificate is not there yet", "tls.crt and tls.key: ", func(d map[string][]byte) { d[keyCertificate] = nil }, nil},
		{"the certificate is truncated", "tls.crt and tls.key: ", func(d map[string][]byte) { d[keyCertificate] = d[keyCertificate][:99] }, nil},
		{"the key is that of another certificate", "private key does not match public key", func(d map[string][]byte) {
			d[keyPrivate] = ours.secret(9, externalHost, time.Hour).Data[keyPrivate]
		}, nil},
		{"the authority is no certificate", "ca.crt: ", func(d map[string][]byte) { d[keyTrusted] = []byte("ca") }, nil},
		{"another authority has signed it", "certificate signed by unknown authority", func(d map[string][]byte) {
			d[keyTrusted] = encode([]*x509.Certificate{others.certificate})
		}, nil},
		{"the authority is not there, and nobody knows it", "; ca.crt, the authority that signed it, is missing",
			func(d map[string][]byte) { delete(d, keyTrusted) }, nil},
		{"it has expired", "certificate has expired", nil, ours.secret(3, externalHost, -time.Minute)},
		{"it is for another host", "not " + externalHost, nil, ours.secret(3, "other.ops.svc", time.Hour)},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			secret := row.secret
			if secret == nil {
				secret = ours.secret(2, externalHost, time.Hour)
				row.change(secret.Data)
			}
			c := &Certificates{Hosts: []string{externalHost}, ReadOnly: true, Log: logr.Discard()}
			all := func(*pair) bool { return true }
			if err := c.follow(secret, all); err == nil || !strings.Contains(err.Error(), row.says) || c.served.Load() != nil {
				t.Errorf("it is served: %v", err)
			}
			good := ours.secret(1, externalHost, time.Hour)
			must.Do(t, c.follow(good, all))
			for range 3 {
				err := c.follow(secret, all)
				if err == nil || !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), "the previous certificate is served") {
					t.Error(err)
				}
			}
			if now := c.served.Load().bundle; now.current.leaf.SerialNumber.Int64() != 1 || string(now.trust()) != string(good.Data[keyTrusted]) {
				t.Error("something else is served")
			}
		})
	}
}

// The certificate changes when every definition trusts the next one. At every moment, what is served is trusted by what
// was published a look before.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Certificates{Hosts: []string{externalHost}, ReadOnly: true, Log: logr.Discard()}
		var published []byte
		accepts := func(p *pair) bool { return published == nil || p.verify(published, c.Hosts, time.Now()) == nil }
		look := func(secret *corev1.Secret, publish bool) int64 {
			t.Helper()
			<-time.After(Interval)
			must.Do(t, c.follow(secret, accepts))
			served := c.served.Load().bundle.current
			if published != nil && served.verify(published, c.Hosts, time.Now()) != nil {
				t.Fatalf("certificate %s is served, and not trusted", served.leaf.SerialNumber)
			}
			if publish {
				published = c.Trust()
			}
			return served.leaf.SerialNumber.Int64()
		}
		one, two := newIssuer(t, "one"), newIssuer(t, "two")
		const day = 24 * time.Hour
		first, renewed, other := one.secret(1, externalHost, day), one.secret(2, externalHost, day), two.secret(3, externalHost, day)
		must.Same(t, 1, look(first, true), "is served")
		look(renewed, true)
		if got := look(renewed, true); got != 2 || string(c.Trust()) != string(first.Data[keyTrusted]) {
			t.Errorf("%d is served after the renewal", got)
		}
		for range 5 { // someone else writes caBundle, and has not yet
			must.Same(t, 2, look(other, false), "is served before it is trusted")
		}
		if trust := string(c.Trust()); !strings.Contains(trust, string(first.Data[keyTrusted])) ||
			!strings.Contains(trust, string(other.Data[keyTrusted])) {
			t.Error("not both authorities are trusted")
		}
		look(other, true)
		look(other, true)
		must.Same(t, 3, look(other, true), "is served after all definitions trust the next")
		<-time.After(overlap)
		if look(other, true); string(published) != string(other.Data[keyTrusted]) {
			t.Error("the previous authority is still trusted")
		}
		// Nobody publishes the authority, and the certificate expires: nothing is gained by waiting any longer.
		<-time.After(25 * time.Hour)
		published = nil
		last := one.secret(4, externalHost, time.Hour)
		if err := c.follow(last, func(*pair) bool { return false }); err != nil || c.served.Load().bundle.current.leaf.SerialNumber.Int64() != 4 {
			t.Error("an expired certificate is served", err)
		}
	})
}
