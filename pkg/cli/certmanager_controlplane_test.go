//go:build controlplane

package cli_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/internal/tools"
)

var certificateResource = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}

// startCertManager runs the controllers and the cainjector of cert-manager, with its own CustomResourceDefinitions.
func startCertManager(t *testing.T) {
	t.Helper()
	download := exec.Command("go", "mod", "download", "-json", "github.com/cert-manager/cert-manager")
	download.Dir = "../../tools/certmanager"
	download.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := download.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var module struct{ Dir string }
	ok(t, json.Unmarshal(out, &module))
	files, err := filepath.Glob(filepath.Join(module.Dir, "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no definitions: %v", module.Dir, err)
	}
	for _, file := range files {
		text := read(t, file)
		testkit.InstallCRDs(t, text)
	}
	var log bytes.Buffer
	cmd := exec.Command(tools.Path(t, "certmanager"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testkit.Kubeconfig(t))
	cmd.Stdout, cmd.Stderr = &log, &log
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
}

// issued are CronTabs whose certificate cert-manager issues, as the objects of the chart request it.
type issued struct {
	*verified
}

func newIssued(t *testing.T, publish string) *issued {
	t.Helper()
	v := newVerified(t)
	v.certificate, v.readOnly = "converter-webhook", true
	replaceIn(t, v.file("conversion.yaml"), "publish: Verify", "publish: "+publish)
	rendered, err := exec.Command(tools.Path(t, "helm"), "template", "converter", "../../charts/corollary", "-n", v.ns,
		"--set", "fullnameOverride=converter,image.repository=a,conversion.certificate.certManager.enabled=true",
		"--set", "conversion.crds[0]=crontabs."+v.group, "-s", "templates/certificate.yaml").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, rendered)
	}
	host, _, err := net.SplitHostPort(v.address)
	if err != nil {
		t.Fatal(err)
	}
	// The API server of the tests reaches no Service.
	rendered = regexp.MustCompile(`dnsNames: .*`).ReplaceAll(rendered, []byte("ipAddresses: ["+host+"]"))
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(string(rendered), -1) {
		if regexp.MustCompile(`(?m)^kind:`).MatchString(doc) {
			testkit.Apply(t, v.ns, doc)
		}
	}
	return &issued{v}
}

// renew has cert-manager issue another certificate, as cmctl renew does.
func (i *issued) renew() {
	i.t.Helper()
	now := metav1.Now().UTC().Format(time.RFC3339)
	client := testkit.Dynamic(i.t).Resource(certificateResource).Namespace(i.ns)
	testkit.Eventually(i.t, patience, func() (bool, string) {
		u, err := client.Get(i.t.Context(), i.certificate, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		conditions = append(conditions, map[string]any{"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
			"message": "requested by a test", "lastTransitionTime": now, "observedGeneration": u.GetGeneration()})
		_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
		_, err = client.UpdateStatus(i.t.Context(), u, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// serves waits until the process serves the certificate in the Secret, and that is another one than before.
func (i *issued) serves(before *x509.Certificate) *x509.Certificate {
	i.t.Helper()
	var leaf *x509.Certificate
	testkit.Eventually(i.t, patience, func() (bool, string) {
		list, err := cert.ParseCertsPEM(i.secret("tls.crt"))
		if err != nil {
			return false, err.Error()
		}
		//nolint:gosec // what is served is compared with the Secret
		conn, err := tls.Dial("tcp", i.address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = conn.Close() }()
		leaf = conn.ConnectionState().PeerCertificates[0]
		return leaf.Equal(list[0]) && !leaf.Equal(before), "the previous certificate is served"
	})
	return leaf
}

// TestCertManager: the webhook serves the certificates that cert-manager issues, and no read fails while they are
// renewed, whether its cainjector or run writes caBundle. Corollary never writes the Secret.
func TestCertManager(t *testing.T) {
	t.Parallel()
	startCertManager(t)
	for _, publish := range []string{"Verify", "Auto"} {
		t.Run(publish, func(t *testing.T) {
			t.Parallel()
			i := newIssued(t, publish)
			p := i.serve()
			if publish == "Verify" {
				i.eventuallyReady(http.StatusOK, "")
				i.inject()
			}
			i.eventuallyPublished(1)
			first := i.serves(nil)
			i.cronTabs.apply(t, "a", "example.com:80")
			i.eventuallyReads(t, "a", "map[host:example.com port:80]")
			authority := i.secret("ca.crt")

			stop := i.reading(t, "a")
			i.renew()
			second := i.serves(first)
			eventuallySays(t, p, "the certificate of the webhook has changed")
			i.renew()
			i.serves(second)
			if failed := stop(); len(failed) > 0 {
				t.Errorf("%d reads failed: %v", len(failed), failed[0])
			}
			if !bytes.Equal(i.secret("ca.crt"), authority) {
				t.Error("the authority has changed with the certificate")
			}
			i.eventuallyPublished(1)

			for _, entry := range testkit.Get(t, secrets, i.ns, i.certificate).GetManagedFields() {
				if entry.Manager == "corollary" {
					t.Errorf("corollary has written the Secret: %v", entry)
				}
			}
		})
	}
}

// inject applies the stanza without caBundle, which the cainjector fills in.
func (i *issued) inject() {
	i.t.Helper()
	crd := filepath.Join(i.t.TempDir(), "crd.yaml")
	definition := regexp.MustCompile("GROUP").ReplaceAllString(cronTabDefinition, i.group)
	write(i.t, crd, definition)
	code, out := run(i.t, "generate", "crd-conversion", "-c", i.dir, "--crds", crd, "--webhook-url", "https://"+i.address,
		"--inject-ca-from", i.ns+"/"+i.certificate)
	if code != 0 {
		i.t.Fatalf("exit code %d\n%s", code, out)
	}
	patch := filepath.Join(i.t.TempDir(), "patch.yaml")
	write(i.t, patch, out)
	cmd := exec.Command(tools.Path(i.t, "kubectl"), "patch", "crd", "crontabs."+i.group, "--type", "merge", "--patch-file", patch)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+testkit.Kubeconfig(i.t))
	if out, err := cmd.CombinedOutput(); err != nil {
		i.t.Fatalf("%v\n%s", err, out)
	}
}
