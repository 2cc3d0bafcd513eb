package webhook

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/internal/must"
)

var rotationHosts = []string{"a.example.com"}

func issued(t *testing.T) *pair {
	t.Helper()
	p := must.Get(issue(rotationHosts, lifetime)).In(t)
	return p
}

// issuedPair is a bundle of two certificates, of which one is served next.
func issuedPair(t *testing.T) *bundle {
	t.Helper()
	current, next := issued(t), issued(t)
	return &bundle{current: current, next: next, trusted: []*x509.Certificate{current.authority, next.authority}}
}

// after advances a bundle to a minute.
func (r *rotation) after(t *testing.T, b *bundle, begun time.Time, minute int, accepts func(*pair) bool) *bundle {
	t.Helper()
	made, err := r.advance(readBundle(b.data()), rotationHosts, lifetime, begun.Add(time.Duration(minute)*time.Minute), accepts)
	if err != nil {
		t.Fatal(err)
	}
	if made == nil {
		return b
	}
	return made
}

// The overlap counts from when all definitions trust a certificate: one that was issued long ago may have been
// published just now.
func TestOverlapBeginsWithTrust(t *testing.T) {
	t.Parallel()
	b := issuedPair(t)
	current, next := b.current, b.next
	r, begun, trusted := &rotation{}, time.Now(), false
	swapped, forgotten := -1, -1
	for minute := range 120 {
		trusted = minute >= 30 && minute != 35 // it was in the definitions, out, and in again
		b = r.after(t, b, begun, minute, func(*pair) bool { return trusted })
		if swapped < 0 && b.current.leaf.Equal(next.leaf) {
			swapped = minute
		}
		if forgotten < 0 && !b.trusts(current.authority) {
			forgotten = minute
		}
	}
	if swapped != 46 || forgotten != 67 { // seen as current one minute after
		t.Errorf("the next certificate is served after %d minutes, the last one is forgotten after %d", swapped, forgotten)
	}
}

// A current certificate that cannot be served gives way to the next one, which is trusted already, and not to a new
// one, which is not.
func TestNextReplacesABrokenOne(t *testing.T) {
	t.Parallel()
	b := issuedPair(t)
	data := b.data()
	data[keyPrivate] = []byte("damaged")
	made, err := (&rotation{}).advance(readBundle(data), rotationHosts, lifetime, time.Now(), func(*pair) bool { return true })
	if err != nil || !made.current.leaf.Equal(b.next.leaf) {
		t.Errorf("another certificate is served: %v", err)
	}
}

// Somebody puts another certificate into the Secret: it is served once definitions trust it, by the leader and the
// others.
func TestReplacedSecret(t *testing.T) {
	t.Parallel()
	ours, theirs := issued(t), issued(t)
	c := &Certificates{At: types.NamespacedName{Namespace: "ops", Name: "replaced"}, Hosts: rotationHosts, Log: logr.Discard()}
	onlyOurs := func(p *pair) bool { return p.leaf.Equal(ours.leaf) }
	must.Do(t, c.serve(&bundle{current: ours, trusted: []*x509.Certificate{ours.authority}}))
	replaced := &bundle{current: theirs, trusted: []*x509.Certificate{theirs.authority}}
	if err := c.take(&corev1.Secret{Data: replaced.data()}, onlyOurs); err == nil || !c.served.Load().bundle.current.leaf.Equal(ours.leaf) {
		t.Errorf("what no definition trusts is served: %v", err)
	}
	next, err := c.next(replaced, lifetime, onlyOurs)
	if err != nil || !next.current.leaf.Equal(ours.leaf) || !next.next.leaf.Equal(theirs.leaf) || !next.trusts(theirs.authority) {
		t.Errorf("the leader writes %+v: %v", next, err)
	}
	if err := c.take(&corev1.Secret{Data: replaced.data()}, func(*pair) bool { return true }); err != nil {
		t.Error(err)
	}
	if !c.served.Load().bundle.current.leaf.Equal(theirs.leaf) {
		t.Error("what definitions trust is not served")
	}
}

// Without a caBundle, an endpoint is tried as the API server does: with what the system trusts. That is read once in a
// process, so the test runs itself again with other trust.
func TestSystemRoots(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &apiextensionsv1.ConversionReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	err := Endpoint{URL: server.URL}.answers(t.Context(), nil, "example.com/v1")
	if os.Getenv("SSL_CERT_FILE") != "" && os.Getenv("COROLLARY_TEST_ROOTS") != "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err == nil {
		t.Error("a certificate of nobody is trusted")
	}
	roots := filepath.Join(t.TempDir(), "roots.pem")
	must.Do(t, os.WriteFile(roots, encode([]*x509.Certificate{server.Certificate()}), 0o600))
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSystemRoots$")
	again.Env = append(os.Environ(), "SSL_CERT_FILE="+roots, "COROLLARY_TEST_ROOTS=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("with its certificate in the system's: %s", out)
	}
}
