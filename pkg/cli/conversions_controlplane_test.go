//go:build controlplane

package cli_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestRunServesConversions: what is proven is served and published, put back after someone has changed it, and the same
// after a restart.
func TestRunServesConversions(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	address := testkit.FreeAddress(t)
	first := c.serve(t, address, address)
	c.eventuallyPublished(t, address)
	c.apply(t, "a", "example.com:80")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")

	testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "spec", "conversion", "webhook")
		_ = unstructured.SetNestedField(u.Object, "None", "spec", "conversion", "strategy")
	})
	c.eventuallyPublished(t, address)

	secret := testkit.Get(t, secrets, c.ns, "webhook").GetResourceVersion()
	generation := testkit.Get(t, definitions, "", "crontabs."+c.group).GetGeneration()
	_ = first.Process.Kill()
	first.wait(t)
	second := c.serve(t, address, address)
	eventuallySays(t, second, "every conversion is published")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
	if now := testkit.Get(t, secrets, c.ns, "webhook"); now.GetResourceVersion() != secret {
		t.Error("a restart made another certificate")
	}
	if now := testkit.Get(t, definitions, "", "crontabs."+c.group).GetGeneration(); now != generation {
		t.Errorf("a restart changed the definition: generation %d, then %d", generation, now)
	}

	// A schema that changes is proven again, since the definition already names this webhook.
	testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
		for _, v := range u.Object["spec"].(map[string]any)["versions"].([]any) {
			_ = unstructured.SetNestedField(v.(map[string]any), map[string]any{"type": "string"},
				"schema", "openAPIV3Schema", "properties", "spec", "properties", "note")
		}
	})
	second.stop(t)
	third := c.serve(t, address, address)
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")

	// What replaces a process that answers is not ready as long as it cannot.
	bad := strings.ReplaceAll(strings.ReplaceAll(cronTabConversion, "GROUP", c.group), "split(':')[0]", "split(':')[1]")
	write(t, c.file("conversion.yaml"), bad)
	eventuallySays(t, third, "the conversion has changed since it was proven")
	health := testkit.FreeAddress(t)
	fourth := c.serve(t, address, testkit.FreeAddress(t), "--health-probe-bind-address", health)
	eventuallySays(t, fourth, "the conversion has changed since it was proven")
	if statusOf("http://"+health+"/readyz/conversions") != http.StatusInternalServerError {
		t.Error("it is ready")
	}
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
}

// TestUnprovenIsServedAfterRestart: what was proven and served is served by a process that starts after the schema has
// changed so that the proof fails, or the rules do not fit it any more. Next to one that converts, such a process does
// not become ready.
func TestUnprovenIsServedAfterRestart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		narrow func(properties map[string]any)
	}{
		{"a bound that a converted object breaks", func(properties map[string]any) {
			_ = unstructured.SetNestedField(properties, int64(100), "port", "maximum")
		}},
		{"a field of another type than the rules need", func(properties map[string]any) {
			properties["host"] = map[string]any{"type": "string", "maxLength": int64(3)}
			properties["port"] = map[string]any{"x-kubernetes-int-or-string": true}
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			c := newCronTabs(t)
			address := testkit.FreeAddress(t)
			first := c.serve(t, address, address)
			c.eventuallyPublished(t, address)
			c.apply(t, "a", "example.com:8080")
			c.eventuallyReads(t, "a", "map[host:example.com port:8080]")
			testkit.Update(t, definitions, "", "crontabs."+c.group, func(u *unstructured.Unstructured) {
				v := u.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)
				properties, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", "spec", "properties")
				row.narrow(properties)
				_ = unstructured.SetNestedMap(v, properties, "schema", "openAPIV3Schema", "properties", "spec", "properties")
			})
			eventuallySays(t, first, "not every conversion is published")

			health := testkit.FreeAddress(t)
			beside := c.serve(t, address, testkit.FreeAddress(t), "--health-probe-bind-address", health)
			eventuallySays(t, beside, "it has changed since the conversion was proven")
			testkit.Eventually(t, patience, func() (bool, string) {
				code := statusOf("http://" + health + "/readyz/conversions")
				return code == http.StatusInternalServerError, fmt.Sprint("the probe answers ", code)
			})
			_ = first.Process.Kill()
			first.wait(t)
			testkit.Eventually(t, patience, func() (bool, string) { // what it waited for has gone
				code := statusOf("http://" + health + "/readyz/conversions")
				return code == http.StatusOK, fmt.Sprint("the probe answers ", code)
			})
			c.serve(t, address, address)
			c.eventuallyReads(t, "a", "map[host:example.com port:8080]")
		})
	}
}

// statusOf is the HTTP status of an address; 0 where nothing answers.
func statusOf(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestConversionsSurviveTheirReplicas: while objects are read and written in another version than they are stored in,
// one of two replicas after the other ends and comes back, as in a rollout. No request fails. If one is killed, only
// those fail that were sent to it: the API server does not ask again. The balancer plays the part of the Service.
func TestConversionsSurviveTheirReplicas(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	b := newBalancer(t)
	replicas := make([]*process, 2)
	serve := func(i int) {
		bind := testkit.FreeAddress(t)
		replicas[i] = c.serve(t, b.address, bind, "--leader-elect", "--leader-election-id", "conversions", "--leader-election-namespace", c.ns)
		b.set(i, bind)
	}
	serve(0)
	c.eventuallyPublished(t, b.address)
	serve(1)
	eventuallySays(t, replicas[1], "every conversion is published")
	c.apply(t, "a", "example.com:80")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")

	var failures, reads atomic.Int64
	var group sync.WaitGroup
	done := make(chan struct{})
	const readers = 4
	for range readers {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := testkit.Dynamic(t).Resource(c.resource("v1")).Namespace(c.ns).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
					failures.Add(1)
					t.Log(err)
				}
				reads.Add(1)
			}
		})
	}
	for round := range 4 {
		i := round % 2
		b.set(i, "") // the Service forgets a pod that is to end, before it ends
		replicas[i].interrupt(t)
		replicas[i].wait(t)
		serve(i)
		eventuallySays(t, replicas[i], "every conversion is published")
	}
	rolled := failures.Load()
	_ = replicas[0].Process.Kill()
	replicas[0].wait(t)
	more := func(n int64) {
		t.Helper()
		until := reads.Load() + n
		testkit.Eventually(t, patience, func() (bool, string) { return reads.Load() > until, fmt.Sprintf("%d reads", reads.Load()) })
	}
	more(5 * readers)
	killed := failures.Load() - rolled
	more(20 * readers)
	close(done)
	group.Wait()
	t.Logf("%d reads, of which %d failed by the kill", reads.Load(), killed)
	if rolled > 0 || failures.Load() > killed {
		t.Errorf("%d reads failed in the rollout, %d by the kill, and %d afterwards", rolled, killed, failures.Load()-killed-rolled)
	}
}

// balancer passes connections on to the replicas that are there.
type balancer struct {
	address string
	mu      sync.Mutex
	targets [2]string
	next    int
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	b := &balancer{address: listener.Addr().String()}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(in)
		}
	}()
	return b
}

func (b *balancer) set(i int, target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets[i] = target
}

func (b *balancer) pick() (string, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = 1 - b.next
	return b.targets[b.next], b.targets[1-b.next]
}

func (b *balancer) pass(in net.Conn) {
	defer func() { _ = in.Close() }()
	first, second := b.pick()
	out, err := net.DialTimeout("tcp", first, time.Second)
	if err != nil {
		if out, err = net.DialTimeout("tcp", second, time.Second); err != nil {
			return
		}
	}
	defer func() { _ = out.Close() }()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

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

// connect connects to the webhook as an API server with the caBundle of the definition does, and returns the
// certificate.
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

// TestSecretIsLost: if someone deletes or empties the Secret of the certificate, a new certificate is made and no read
// fails: the previous one is served until API servers trust the new one.
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

// TestReadOnlySecretIsLost: if someone else keeps the Secret, its loss is logged, and the process serves what it has.
// Without one it serves nothing until there is one.
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
