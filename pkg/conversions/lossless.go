package conversions

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/crddiff"
)

// Lossless returns an error where objects of a kind that are stored in one of the versions before lose something by
// being converted to the stored one for good. c may be nil.
func (c *Conversion) Lossless(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, stored string, before []string,
) error {
	if len(before) == 0 {
		return nil
	}
	if s := crd.Spec.Conversion; s == nil || s.Strategy == apiextensionsv1.NoneConverter {
		var dropped []string
		for _, version := range before {
			list, err := crddiff.Dropped(crd, version, stored)
			if err != nil {
				return err
			}
			for _, change := range list {
				dropped = append(dropped, version+" "+change.Path)
			}
		}
		if len(dropped) > 0 {
			return fmt.Errorf("no webhook converts %s, and version %s drops what others have: %s: write a conversion and "+
				"serve it, or accept the "+
				"loss with --unproven", crd.Name, stored, strings.Join(dropped, ", "))
		}
		return nil
	}
	if c == nil {
		return fmt.Errorf("a webhook converts %s, and nothing proves that it loses nothing: give the conversion and its "+
			"certificate with -c, or "+
			"trust the webhook with --unproven", crd.Name)
	}
	for _, version := range before {
		if !c.Converter.Has(version) {
			return c.File.Errorf("spokes", "add it", "objects may be stored as %s, which it does not convert", version)
		}
	}
	if unproven := c.Proven(ctx); unproven != nil {
		return unproven
	}
	return nil
}
