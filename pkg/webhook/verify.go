package webhook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// verify returns how spec.conversion of a definition differs from what publish would write; the leader records an event
// when that changes. What a single version has does not matter: nothing is converted.
func (p *Publisher) verify(s Served, leads bool) error {
	text := ""
	if !s.isSingle() {
		text = strings.Join(p.differences(s.CRD), "; ")
	}
	p.warn(leads, s, reasonDiffers, text)
	if text == "" {
		return nil
	}
	return fmt.Errorf("CustomResourceDefinition %s: %s: apply what corollary generate crd-conversion prints", s.CRD.Name,
		text)
}

// differences compares the stanza. Of caBundle it matters that it trusts the certificates that are served now and next.
func (p *Publisher) differences(crd *apiextensionsv1.CustomResourceDefinition) (list []string) {
	has := crd.Spec.Conversion
	if has == nil || has.Strategy != apiextensionsv1.WebhookConverter || has.Webhook == nil ||
		has.Webhook.ClientConfig == nil {
		return []string{
			"spec.conversion.strategy is None, and must be Webhook: until then, objects are returned in other versions as " +
				"they are stored",
		}
	}
	const at = "spec.conversion.webhook."
	client := has.Webhook.ClientConfig
	wanted := typed(p.Endpoint.Conversion(false, nil)).Webhook
	if now := Address(client); now != Address(wanted.ClientConfig) {
		list = append(list, fmt.Sprintf("%sclientConfig names %s, and must name %s", at, now, Address(wanted.ClientConfig)))
	}
	if now := has.Webhook.ConversionReviewVersions; !slices.Equal(now, wanted.ConversionReviewVersions) {
		list = append(list, fmt.Sprintf("%sconversionReviewVersions is %v, and must be %v", at, now,
			wanted.ConversionReviewVersions))
	}
	b := p.Certificates.served.Load().bundle
	if err := b.current.verify(client.CABundle, p.Certificates.Hosts, time.Now()); err != nil {
		list = append(list, fmt.Sprintf("%sclientConfig.caBundle does not trust the certificate in Secret %s: %v",
			at, p.Certificates.At, err))
	}
	if b.next == nil {
		return list
	}
	if err := b.next.verify(client.CABundle, p.Certificates.Hosts, time.Now()); err != nil {
		list = append(
			list,
			fmt.Sprintf("%sclientConfig.caBundle does not trust the next certificate in Secret %s, which replaces the one "+
				"that expires at %s: %v",
				at, p.Certificates.At, b.current.leaf.NotAfter.Format(time.RFC3339), err),
		)
	}
	return list
}

// Address is where API servers send reviews, as people read it.
func Address(c *apiextensionsv1.WebhookClientConfig) string {
	if c.URL != nil {
		return *c.URL
	}
	if c.Service == nil {
		return "nothing"
	}
	path, port := "", int32(443) // the API server's own defaults
	if c.Service.Path != nil {
		path = *c.Service.Path
	}
	if c.Service.Port != nil {
		port = *c.Service.Port
	}
	return fmt.Sprintf("Service %s/%s:%d%s", c.Service.Namespace, c.Service.Name, port, path)
}
