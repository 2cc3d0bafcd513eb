package webhook

import (
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
