package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Path is where conversions are served.
const Path = "/convert"

// Endpoint is where API servers find this process: a Service, or an address.
type Endpoint struct {
	// Namespace and Name of a Service; empty where URL is set.
	Namespace, Name string
	Port            int32
	// URL is https://HOST:PORT, without a path.
	URL string
}

// Hosts are the names that the certificate must be good for.
func (e Endpoint) Hosts() ([]string, error) {
	if e.URL == "" {
		return []string{e.Name + "." + e.Namespace + ".svc"}, nil
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("address %q of the webhook: it must be https://HOST:PORT", e.URL)
	}
	return []string{u.Hostname()}, nil
}

// Conversion is the whole spec.conversion of a CustomResourceDefinition. A single version needs no webhook. Without
// trust, the stanza has no caBundle: another writer fills it in, or the certificate is one that the API server's system
// trusts.
func (e Endpoint) Conversion(single bool, trust []byte) map[string]any {
	if single {
		return map[string]any{"strategy": string(apiextensionsv1.NoneConverter)}
	}
	client := map[string]any{}
	if len(trust) > 0 {
		client["caBundle"] = base64.StdEncoding.EncodeToString(trust)
	}
	if e.URL != "" {
		client["url"] = e.URL + Path
	} else {
		client["service"] = map[string]any{"namespace": e.Namespace, "name": e.Name, "path": Path, "port": int64(e.Port)}
	}
	return map[string]any{
		"strategy": string(apiextensionsv1.WebhookConverter),
		"webhook":  map[string]any{"conversionReviewVersions": []any{"v1"}, "clientConfig": client},
	}
}

// Definition is what is applied to a CustomResourceDefinition: its spec.conversion, and nothing else.
func Definition(name string, conversion map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kinds.DefinitionResource.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"conversion": conversion},
	}}
}

// isIn reports whether a definition names the endpoint, by whatever path.
func (e Endpoint) isIn(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return false
	}
	if e.URL != "" {
		return c.Webhook.ClientConfig.URL != nil && hostOf(*c.Webhook.ClientConfig.URL) == hostOf(e.URL)
	}
	s := c.Webhook.ClientConfig.Service
	return s != nil && s.Namespace == e.Namespace && s.Name == e.Name
}

// hostOf is the host and port of a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443"))
}

// answers has the endpoint convert objects by a real review, as an API server that trusts a caBundle does.
func (e Endpoint) answers(ctx context.Context, trust []byte, to string, objects ...map[string]any) error {
	address := e.URL + Path
	if e.URL == "" {
		address = "https://" + net.JoinHostPort(e.Name+"."+e.Namespace+".svc", strconv.Itoa(int(e.Port))) + Path
	}
	in := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  &apiextensionsv1.ConversionRequest{UID: uuid.NewUUID(), DesiredAPIVersion: to},
	}
	for _, obj := range objects {
		text, err := json.Marshal(obj)
		if err != nil {
			return err
		}
		in.Request.Objects = append(in.Request.Objects, runtime.RawExtension{Raw: text})
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var roots *x509.CertPool // without a caBundle, the system's
	if len(trust) > 0 {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(trust)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the webhook cannot be reached as the API server would: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("reading the webhook's answer: %w", err)
	}
	var out apiextensionsv1.ConversionReview
	if err := json.Unmarshal(text, &out); err != nil || out.Response == nil || out.Response.UID != in.Request.UID {
		return fmt.Errorf("%s answers with %d %.200q, which is not a ConversionReview of ours",
			address, response.StatusCode, text)
	}
	if result := out.Response.Result; result.Status != metav1.StatusSuccess ||
		len(out.Response.ConvertedObjects) != len(objects) {
		return fmt.Errorf("%s does not convert to %s: %s", address, to, result.Message)
	}
	return nil
}
