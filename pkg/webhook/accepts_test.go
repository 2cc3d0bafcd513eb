package webhook

import (
	"crypto/x509"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A next certificate waits for all definitions that send reviews here, and for no others.
func TestAccepts(t *testing.T) {
	t.Parallel()
	now, other := issued(t), issued(t)
	p := &Publisher{Endpoint: Endpoint{URL: "https://a.example.com:443"}, Certificates: &Certificates{Hosts: rotationHosts}}
	definition := func(at string, trusted ...*pair) Served {
		stanza := Endpoint{URL: at}.Conversion(at == "", func() (text []byte) {
			for _, c := range trusted {
				text = append(text, (&bundle{trusted: []*x509.Certificate{c.authority}}).trust()...)
			}
			return text
		}())
		return Served{CRD: &apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Conversion: typed(stanza)},
		}}
	}
	const here = "https://a.example.com:443"
	for _, row := range []struct {
		reason string
		served []Served
		want   bool
	}{
		{"nothing is converted", nil, true},
		{"it is trusted", []Served{definition(here, now)}, true},
		{"both are trusted", []Served{definition(here, other, now)}, true},
		{"another one is trusted", []Served{definition(here, other)}, false},
		{"one of two definitions trusts it", []Served{definition(here, now), definition(here, other)}, false},
		{"a definition with a single version has no webhook", []Served{definition(here, now), definition("")}, true},
		{"another webhook converts", []Served{definition("https://b.example.com", other)}, true},
		{"nothing is trusted but what the system trusts", []Served{definition(here)}, false},
	} {
		if got := p.accepts(row.served)(now); got != row.want {
			t.Errorf("%s: %t", row.reason, got)
		}
	}
	if long, err := issue(rotationHosts, lastingLifetime); err != nil || time.Until(long.leaf.NotAfter) < lastingLifetime/2 {
		t.Error("it does not last", err)
	}
}
