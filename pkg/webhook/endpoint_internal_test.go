package webhook

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestEndpointIsIn: a definition names this webhook if API servers send reviews to this process, at whatever path.
func TestEndpointIsIn(t *testing.T) {
	t.Parallel()
	path := "/other"
	service := func(name string) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: name, Path: &path}}
	}
	url := func(text string) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{URL: &text}
	}
	byURL, byService := Endpoint{URL: "https://a.example:443"}, Endpoint{Namespace: "ns", Name: "webhook", Port: 443}
	for _, row := range []struct {
		reason   string
		endpoint Endpoint
		client   *apiextensionsv1.WebhookClientConfig
		want     bool
	}{
		{"the same", byURL, url("https://a.example:443/convert"), true},
		{"another path", byURL, url("https://a.example:443/other"), true},
		{"no path, the default port", byURL, url("https://A.example"), true},
		{"another port", byURL, url("https://a.example:9443/convert"), false},
		{"another host", byURL, url("https://b.example:443/convert"), false},
		{"a Service instead", byURL, service("webhook"), false},
		{"the Service by another path", byService, service("webhook"), true},
		{"another Service", byService, service("other"), false},
		{"a URL instead", byService, url("https://a.example:443/convert"), false},
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: row.client}}
		if got := row.endpoint.isIn(crd); got != row.want {
			t.Errorf("%s: %t", row.reason, got)
		}
	}
}

// Before a definition names an endpoint, that has to answer as API servers demand: with the uid of the review and all
// objects.
func TestAnswers(t *testing.T) {
	t.Parallel()
	object := map[string]any{"apiVersion": "example.com/v1beta1", "kind": "Thing", "metadata": map[string]any{"name": "a"}}
	for _, row := range []struct{ reason, answer, problem string }{
		{"as demanded", `{"response": {"uid": "UID", "result": {"status": "Success"}, "convertedObjects": [{}]}}`, ""},
		{"another uid", `{"response": {"uid": "xUID", "result": {"status": "Success"}, "convertedObjects": [{}]}}`, "not a ConversionReview of ours"},
		{"no uid", `{"response": {"result": {"status": "Success"}, "convertedObjects": [{}]}}`, "not a ConversionReview of ours"},
		{"no response", `{"kind": "ConversionReview"}`, "not a ConversionReview of ours"},
		{"a page of a proxy", `<html>`, "not a ConversionReview of ours"},
		{"an object too few", `{"response": {"uid": "UID", "result": {"status": "Success"}}}`, "does not convert to example.com/v1"},
		{"a failure", `{"response": {"uid": "UID", "result": {"status": "Failed", "message": "too odd"}}}`, "example.com/v1: too odd"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in struct{ Request struct{ UID string } }
				if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request.UID == "" {
					t.Errorf("the review has the uid %q: %v", in.Request.UID, err)
				}
				fmt.Fprint(w, strings.Replace(row.answer, "UID", in.Request.UID, 1))
			}))
			t.Cleanup(server.Close)
			trust := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			err := Endpoint{URL: server.URL}.answers(t.Context(), trust, "example.com/v1", object)
			if (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
				t.Errorf("the error is %v, want %q", err, row.problem)
			}
		})
	}
}
