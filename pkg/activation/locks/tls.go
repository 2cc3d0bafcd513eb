package locks

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
)

// tlsConfig reads the files that a config names; nil for none. The certificate is read again for each connection.
func tlsConfig(f *load.ActivationFile, at string, t *lock.ActivationTLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		text, err := os.ReadFile(f.Place(t.CA))
		if err != nil {
			return nil, f.Errorf(at+".ca", "check the name and the permissions", "it cannot be read: %v", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, f.Errorf(at+".ca", "name a file in PEM format", "%s has no certificate", f.Place(t.CA))
		}
	}
	if t.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.Place(t.Cert), f.Place(t.Key))
			if err != nil {
				return nil, fmt.Errorf("reading the certificate: %w", err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, f.Errorf(at+".cert", "name the files of a certificate and its key in PEM format", "%v", err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return c, nil
}
