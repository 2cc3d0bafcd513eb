package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// noteConversions says for each conversion of the configs whether the CustomResourceDefinition has it, and what is
// wrong with it.
func (f *surveyFlags) noteConversions(
	ctx context.Context, cfg *rest.Config, operators []*load.File, note noteFunc,
) error {
	list, problems := f.configs.ConversionsBeside(operators, f.streams)
	if len(list)+len(problems) == 0 {
		return nil
	}
	source, err := conversions.NewSource(cfg)
	if err != nil {
		return err
	}
	source.Take(list, problems)
	found, _, err := source.Find(ctx)
	for _, s := range found {
		note("conversion %s: CustomResourceDefinition %s: %s", s.Name, s.CRD.Name, conversionText(s))
	}
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) {
		for _, err := range all.Unwrap() {
			note("conversion: %v", err)
		}
	}
	return nil
}

// conversionText says whether a definition has the conversion that a config gives.
func conversionText(s webhook.Served) string {
	c := s.CRD.Spec.Conversion
	writers := conversions.Writers(s.CRD)
	switch {
	case len(s.CRD.Spec.Versions) == 1:
		return "it has a single version, so nothing is converted"
	case c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil:
		what := "corollary run writes it once it serves the conversion"
		if s.Verify {
			what = "apply what corollary generate crd-conversion prints"
		}
		return "spec.conversion.strategy is None, so objects are returned in other versions as they are stored: " + what
	}
	by := "by nobody that managedFields name"
	if len(writers) > 0 {
		by = "by field manager " + strings.Join(writers, ", ")
	}
	text := fmt.Sprintf("spec.conversion names %s, written %s", webhook.Address(c.Webhook.ClientConfig), by)
	switch {
	case s.Verify:
		return text + ": with publish: Verify, corollary run compares it, see corollary_conversion_published"
	case !slices.Contains(writers, s.FieldManager):
		return fmt.Sprintf("%s and not by %s: corollary run would replace it within seconds, so it does not run or does "+
			"not serve this config",
			text, s.FieldManager)
	}
	return text + ", as this config says"
}
