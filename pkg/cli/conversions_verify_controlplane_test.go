//go:build controlplane

package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// verified are CronTabs whose spec.conversion someone else writes.
type verified struct {
	*cronTabs
	t                        *testing.T
	address, health, metrics string
}

// newWebhook are those whose spec.conversion run writes.
func newWebhook(t *testing.T) *verified {
	t.Helper()
	return &verified{cronTabs: newCronTabs(t), t: t,
		address: testkit.FreeAddress(t), health: testkit.FreeAddress(t), metrics: testkit.FreeAddress(t)}
}

func newVerified(t *testing.T) *verified {
	t.Helper()
	v := newWebhook(t)
	write(t, v.file("conversion.yaml"), read(t, v.file("conversion.yaml"))+"publish: Verify\n")
	return v
}

func (v *verified) serve() *process {
	v.t.Helper()
	return v.cronTabs.serve(v.t, v.address, v.address, "--health-probe-bind-address", v.health, "--metrics-bind-address", v.metrics)
}

// stanza is what generate crd-conversion prints, with the certificate authority of the Secret.
func (v *verified) stanza() map[string]any {
	v.t.Helper()
	dir := v.t.TempDir()
	ca, crd := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "crd.yaml")
	for name, text := range map[string][]byte{ca: v.secret("ca.crt"), crd: []byte(strings.ReplaceAll(cronTabDefinition, "GROUP", v.group))} {
		write(v.t, name, string(text))
	}
	code, out := run(v.t, "generate", "crd-conversion", "-c", v.dir, "--crds", crd, "--webhook-url", "https://"+v.address, "--ca-file", ca)
	if code != 0 {
		v.t.Fatalf("exit code %d\n%s", code, out)
	}
	_, out, _ = strings.Cut(out, "---\n")
	stanza, _, err := unstructured.NestedMap(testkit.Parse(v.t, out).Object, "spec", "conversion")
	if err != nil {
		v.t.Fatal(err)
	}
	return stanza
}

// secret is what a key of the Secret holds, once it is there.
func (v *verified) secret(key string) (value []byte) {
	v.t.Helper()
	testkit.Eventually(v.t, patience, func() (bool, string) {
		s, err := testkit.Dynamic(v.t).Resource(secrets).Namespace(v.ns).Get(v.t.Context(), v.certificate, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		text, _, _ := unstructured.NestedString(s.Object, "data", key)
		value, err = base64.StdEncoding.DecodeString(text)
		return err == nil && len(value) > 0, fmt.Sprint(text, err)
	})
	return value
}

func (v *verified) apply(stanza map[string]any) {
	v.t.Helper()
	testkit.Update(v.t, definitions, "", "crontabs."+v.group, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, stanza, "spec", "conversion")
	})
}

// eventuallyPublished waits for the metric.
func (v *verified) eventuallyPublished(value int) {
	v.t.Helper()
	want := fmt.Sprintf("corollary_conversion_published{crd=\"crontabs.%s\"} %d\n", v.group, value)
	testkit.Eventually(v.t, patience, func() (bool, string) {
		_, text := answer(v.t, "http://"+v.metrics+"/metrics")
		return strings.Contains(text, want), "the metrics lack " + want
	})
}

// eventuallyReady waits for the readiness check, and for what it says.
func (v *verified) eventuallyReady(code int, says string) {
	v.t.Helper()
	testkit.Eventually(v.t, patience, func() (bool, string) {
		now, text := answer(v.t, "http://"+v.health+"/readyz/conversions")
		return now == code && strings.Contains(text, says), fmt.Sprint(now, text)
	})
}

// eventuallyRecorded waits for an event about the definition.
func (v *verified) eventuallyRecorded(says string) {
	v.t.Helper()
	testkit.Eventually(v.t, patience, func() (bool, string) {
		list, err := testkit.Dynamic(v.t).Resource(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).
			Namespace(metav1.NamespaceDefault).List(v.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, e := range list.Items {
			about, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
			if note, _, _ := unstructured.NestedString(e.Object, "note"); about == "crontabs."+v.group && strings.Contains(note, says) {
				return e.Object["reason"] == "ConversionDiffers" && e.Object["type"] == "Warning", fmt.Sprint(e.Object)
			}
		}
		return false, "there is no event that says " + says
	})
}

// TestRunVerifies: with publish: Verify, run says what differs and writes nothing to the definition, which it has no
// right to either.
func TestRunVerifies(t *testing.T) {
	t.Parallel()
	v := newVerified(t)
	p := v.serve()
	v.eventuallyPublished(0)
	eventuallySays(t, p, "spec.conversion.strategy is None, and must be Webhook")
	v.eventuallyRecorded("spec.conversion.strategy is None")
	v.eventuallyReady(http.StatusOK, "")

	good := v.stanza()
	v.apply(good)
	v.eventuallyPublished(1)
	v.cronTabs.apply(t, "a", "example.com:80")
	v.eventuallyReads(t, "a", "map[host:example.com port:80]")
	if certificates, err := cert.ParseCertsPEM(
		v.secret("tls.crt"),
	); err != nil ||
		certificates[0].NotAfter.Year()-certificates[0].NotBefore.Year() < 9 {
		t.Errorf("the certificate must live for years, since caBundle is kept in a repository: %v, expires %s", err, certificates[0].NotAfter)
	}
	for _, row := range []struct {
		reason, says string
		change       func(webhook, client map[string]any)
	}{
		{"another authority", "clientConfig.caBundle does not trust the certificate in Secret " + v.ns + "/webhook: x509: certificate signed",
			func(_, client map[string]any) { client["caBundle"] = base64.StdEncoding.EncodeToString(authority(t)) }},
		{"no authority", "caBundle does not trust the certificate", func(_, client map[string]any) { delete(client, "caBundle") }},
		{"another service", "clientConfig names Service ops/other:443/convert, and must name https://" + v.address + "/convert",
			func(_, client map[string]any) {
				delete(client, "url")
				client["service"] = map[string]any{"namespace": "ops", "name": "other", "path": "/convert"}
			}},
		{"another path", "clientConfig names https://" + v.address + "/other, and must",
			func(_, client map[string]any) { client["url"] = "https://" + v.address + "/other" }},
		{"other reviews", "conversionReviewVersions is [v1beta1 v1], and must be [v1]",
			func(webhook, _ map[string]any) { webhook["conversionReviewVersions"] = []any{"v1beta1", "v1"} }},
		{"nothing is converted", "spec.conversion.strategy is None", nil},
	} {
		stanza := map[string]any{"strategy": "None"}
		if row.change != nil {
			stanza = (&unstructured.Unstructured{Object: good}).DeepCopy().Object
			webhook := stanza["webhook"].(map[string]any)
			row.change(webhook, webhook["clientConfig"].(map[string]any))
		}
		v.apply(stanza)
		generation := testkit.Get(t, definitions, "", "crontabs."+v.group).GetGeneration()
		v.eventuallyPublished(0)
		eventuallySays(t, p, row.says)
		v.eventuallyRecorded(row.says)
		v.eventuallyReady(http.StatusOK, "") // what answered goes on
		if now := testkit.Get(t, definitions, "", "crontabs."+v.group).GetGeneration(); now != generation {
			t.Errorf("%s: the definition was changed", row.reason)
		}
		v.apply(good)
		v.eventuallyPublished(1)
	}

	// What replaces it in a rollout waits until API servers trust it.
	p.stop(t)
	stanza := (&unstructured.Unstructured{Object: good}).DeepCopy().Object
	_ = unstructured.SetNestedField(stanza, base64.StdEncoding.EncodeToString(authority(t)), "webhook", "clientConfig", "caBundle")
	v.apply(stanza)
	v.serve()
	v.eventuallyReady(http.StatusInternalServerError, "caBundle does not trust the certificate")
	v.apply(good)
	v.eventuallyReady(http.StatusOK, "")
	if now := v.stanza(); !reflect.DeepEqual(now, good) {
		t.Errorf("the certificate has changed: %v", now)
	}
}

// authority is one that signed nothing.
func authority(t *testing.T) []byte {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := must(cert.NewSelfSignedCACert(cert.Config{CommonName: "other"}, key))(t)
	text := must(cert.EncodeCertificates(c))(t)
	return text
}

// TestConversionInGetAndWhy: both commands say whether the definition has the conversion of the config, and who has
// written it.
func TestConversionInGetAndWhy(t *testing.T) {
	t.Parallel()
	eventually := func(v *verified, want string) {
		t.Helper()
		operator := filepath.Join(t.TempDir(), "operator.yaml")
		write(t, operator, strings.NewReplacer("GROUP/v1,", v.group+"/v1beta1,", "GROUP", v.group, "NS", v.ns, "spec.host", "spec.hostPort").
			Replace(cronTabOperator))
		want = "conversion crontabs: CustomResourceDefinition crontabs." + v.group + ": " + want
		for _, args := range [][]string{{"get"}, {"why", "crontabs." + v.group, "a"}} {
			testkit.Eventually(t, patience, func() (bool, string) {
				code, out := run(t, append(args, "-c", v.dir, "-c", operator, "-n", v.ns, "--kubeconfig", testkit.Kubeconfig(t))...)
				return code == 0 && strings.Contains(out, want), fmt.Sprintf("%v: exit code %d, without %q\n%s", args, code, want, out)
			})
		}
	}
	auto, verify := newWebhook(t), newVerified(t)
	for _, v := range []*verified{auto, verify} {
		v.cronTabs.apply(t, "a", "example.com:80")
	}
	eventually(auto, "spec.conversion.strategy is None, so objects are returned in other versions as they are stored: corollary run writes it")
	eventually(verify, "spec.conversion.strategy is None, so objects are returned in other versions as they are stored: apply what")

	p := auto.serve()
	eventually(auto, fmt.Sprintf("spec.conversion names https://%s/convert, written by field manager crontabs.%s, as this config says",
		auto.address, auto.group))
	p.stop(t)
	testkit.Update(t, definitions, "", "crontabs."+auto.group, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "https://example.com/other", "spec", "conversion", "webhook", "clientConfig", "url")
	})
	eventually(auto, "spec.conversion names https://example.com/other, written by field manager test and not by crontabs."+auto.group)

	verify.serve()
	verify.apply(verify.stanza())
	eventually(verify, fmt.Sprintf("spec.conversion names https://%s/convert, written by field manager test: with publish: Verify",
		verify.address))
	ok(t, os.Remove(verify.file("certificate.yaml")))
	code, out := run(t, "get", "-c", verify.dir, "-n", verify.ns, "--kubeconfig", testkit.Kubeconfig(t))
	if !strings.Contains(out, "the conversion is not proven") {
		t.Errorf("exit code %d, and it does not say what keeps the conversion from being served\n%s", code, out)
	}
}
