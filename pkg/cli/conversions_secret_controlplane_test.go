//go:build controlplane

package cli_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// reading reads an object, which needs a conversion, until it is stopped. It then returns the errors.
func (c *cronTabs) reading(t *testing.T, name string) (stop func() []error) {
	done := make(chan struct{})
	var failed []error
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := testkit.Dynamic(t).Resource(c.resource("v1")).Namespace(c.ns).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				failed = append(failed, err)
			}
		}
	})
	return func() []error {
		close(done)
		group.Wait()
		return failed
	}
}

// connect connects to the webhook as an API server with the caBundle of the definition does, and returns the certificate.
func (v *verified) connect() *x509.Certificate {
	v.t.Helper()
	crd := testkit.Get(v.t, definitions, "", "crontabs."+v.group)
	text, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	bundle := must(base64.StdEncoding.DecodeString(text))(v.t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	conn, err := tls.Dial("tcp", v.address, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		v.t.Fatalf("an API server cannot connect to the webhook: %v", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.ConnectionState().PeerCertificates[0]
}

// authorities is how many the caBundle of the definition has.
func (v *verified) authorities() int {
	v.t.Helper()
	crd := testkit.Get(v.t, definitions, "", "crontabs."+v.group)
	text, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	bundle := must(base64.StdEncoding.DecodeString(text))(v.t)
	list, _ := cert.ParseCertsPEM(bundle)
	return len(list)
}

// TestSecretIsLost: if someone deletes or empties the Secret of the certificate, a new certificate is made and no read fails: the previous
// one is served until API servers trust the new one.
func TestSecretIsLost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		lose   func(*verified) error
	}{
		{"deleted", func(v *verified) error {
			return testkit.Dynamic(v.t).Resource(secrets).Namespace(v.ns).Delete(v.t.Context(), v.certificate, metav1.DeleteOptions{})
		}},
		{"emptied", func(v *verified) error {
			testkit.Update(v.t, secrets, v.ns, v.certificate, func(u *unstructured.Unstructured) {
				u.Object["data"] = map[string]any{"tls.crt": "", "tls.key": ""}
			})
			return nil
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			v := newWebhook(t)
			v.serve()
			v.eventuallyPublished(1)
			v.cronTabs.apply(t, "a", "example.com:80")
			v.eventuallyReads(t, "a", "map[host:example.com port:80]")
			before, authority := v.connect(), v.secret("ca.crt")

			stop := v.reading(t, "a")
			ok(t, row.lose(v))
			next := v.secret("next.crt")
			testkit.Eventually(t, patience, func() (bool, string) {
				if !v.connect().Equal(before) {
					t.Fatal("another certificate is served before API servers trust it")
				}
				n := v.authorities()
				return n == 2, fmt.Sprintf("caBundle has %d authorities", n)
			})
			if failed := stop(); len(failed) > 0 {
				t.Errorf("%d reads failed: %v", len(failed), failed[0])
			}
			if trusted := v.secret("ca.crt"); !bytes.HasPrefix(trusted, authority) || bytes.Equal(trusted, authority) {
				t.Error("the Secret does not have both authorities")
			}
			list, err := cert.ParseCertsPEM(next)
			if err != nil || list[0].Equal(before) {
				t.Errorf("no new certificate was made: %v", err)
			}
		})
	}
}

// TestReadOnlySecretIsLost: if someone else keeps the Secret, its loss is logged, and the process serves what it has. Without one it
// serves nothing until there is one.
func TestReadOnlySecretIsLost(t *testing.T) {
	t.Parallel()
	v := newWebhook(t)
	v.readOnly = true
	p := v.serve()
	eventuallySays(t, p, "nothing can be served until whoever writes it has fixed it")
	host, _, err := net.SplitHostPort(v.address)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata": map[string]any{"name": v.certificate},
		"data": map[string]any{"tls.crt": base64.StdEncoding.EncodeToString(certificate), "tls.key": base64.StdEncoding.EncodeToString(key),
			"ca.crt": base64.StdEncoding.EncodeToString(certificate)}}
	secrets := testkit.Dynamic(t).Resource(secrets).Namespace(v.ns)
	create := func() {
		t.Helper()
		must(secrets.Create(t.Context(), &unstructured.Unstructured{Object: secret}, metav1.CreateOptions{}))(t)
	}
	create()
	v.eventuallyPublished(1)
	v.cronTabs.apply(t, "a", "example.com:80")
	v.eventuallyReads(t, "a", "map[host:example.com port:80]")
	before := v.connect()

	stop := v.reading(t, "a")
	ok(t, secrets.Delete(t.Context(), v.certificate, metav1.DeleteOptions{}))
	eventuallySays(t, p, `not found: the previous certificate is served, which expires at `)
	if !v.connect().Equal(before) {
		t.Error("another certificate is served")
	}
	v.eventuallyPublished(1)
	create()
	eventuallySays(t, p, "every conversion is published")
	if failed := stop(); len(failed) > 0 {
		t.Errorf("%d reads failed: %v", len(failed), failed[0])
	}
}
