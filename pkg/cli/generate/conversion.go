package generate

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/conversions"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

// injectFrom is the annotation by which cert-manager's cainjector fills in caBundle.
const injectFrom = "cert-manager.io/inject-ca-from"

type conversion struct {
	maker
	endpoint   command.EndpointFlags
	ca, inject string
}

func newConversion(streams command.IO) *cobra.Command {
	o := &conversion{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
		Use:   "crd-conversion -c CONFIG (--webhook-service NAMESPACE/NAME:PORT | --webhook-url URL)",
		Short: "Print the spec.conversion that CustomResourceDefinitions need",
		Long: `Print spec.conversion for the CustomResourceDefinition of each conversion in the
configs, exactly as "corollary run" applies it with the same flags, so that it can be
committed to a repository. With publish: Verify in the conversion, "corollary run"
only compares it.

Each document is a CustomResourceDefinition with nothing but spec.conversion. It is a
patch for Kustomize and "kubectl patch --type merge". In a Helm chart, copy its
spec.conversion into the template of the CustomResourceDefinition.

--ca-file names the certificate authority that the API server trusts. Leave it out if
another writer fills in caBundle, such as the cainjector of cert-manager, and have
Argo CD ignore differences at /spec/conversion/webhook/clientConfig/caBundle.`,
		Example: `  corollary generate crd-conversion -c conversion.yaml --webhook-service apps/corollary-webhook:443 --ca-file ca.crt \
    > conversion.patch.yaml
  kubectl patch crd crontabs.example.com --type merge --patch-file conversion.patch.yaml

  # The cainjector of cert-manager fills in caBundle
  corollary generate crd-conversion -c conversion.yaml --webhook-service apps/corollary-webhook:443 \
    --inject-ca-from apps/corollary-webhook`,
	})
	o.bindOutput(cmd)
	flags := cmd.Flags()
	o.endpoint.BindFlags(flags)
	flags.StringVar(&o.ca, "ca-file", "", "File of the certificate authorities for caBundle, in PEM")
	flags.StringVar(&o.inject, "inject-ca-from", "",
		"NAMESPACE/NAME of the Certificate from which cert-manager's cainjector fills in caBundle")
	return cmd
}

func (o *conversion) run() error {
	endpoint, err := o.endpoint.Endpoint()
	if err != nil {
		return err
	}
	trust, err := o.trust()
	if err != nil {
		return err
	}
	files, source, err := o.configs.Offline(o.streams, o.crds)
	if err != nil {
		return err
	}
	crds, err := kinds.CRDs(o.crds...)
	if err != nil {
		return err
	}
	converting, err := o.configs.ValidConversions(files, o.streams)
	if err != nil {
		return err
	}
	if len(converting) == 0 {
		return fmt.Errorf("no config of %s has a conversion, so there is nothing to print",
			strings.Join(o.configs.Files, ", "))
	}
	var list []generate.Manifest
	var notes []string
	for _, c := range converting {
		m, note, err := o.definition(c, source, conversions.DefinitionFor(crds, c), endpoint, trust)
		if err != nil {
			return err
		}
		if list = append(list, m); note != "" {
			notes = append(notes, note)
		}
	}
	command.WriteNotes(o.streams, notes)
	return o.print("spec.conversion",
		"What "+endpoint.String()+" needs in CustomResourceDefinitions: generated from the configs by "+
			"corollary generate crd-conversion.", list)
}

// definition is the document for one conversion. crd is its definition; without one it is assumed to have several
// versions.
func (o *conversion) definition(c *load.ConversionFile, source kinds.Source,
	crd *apiextensionsv1.CustomResourceDefinition, endpoint webhook.Endpoint, trust []byte,
) (m generate.Manifest, note string, err error) {
	gr, note, err := generate.Converted(source, c)
	if err != nil {
		return m, "", fmt.Errorf("finding the CustomResourceDefinition of conversion %s: %w", c.Name, err)
	}
	single := crd != nil && len(crd.Spec.Versions) == 1
	definition := webhook.Definition(gr.String(), endpoint.Conversion(single, trust))
	if o.inject != "" && !single {
		definition.SetAnnotations(map[string]string{injectFrom: o.inject})
	}
	return generate.Manifest{Object: definition.Object}, note, nil
}

// trust is the caBundle; nil where another writer fills it in.
func (o *conversion) trust() ([]byte, error) {
	if o.inject != "" {
		if o.ca != "" {
			return nil, command.Usagef(
				"--ca-file and --inject-ca-from cannot be combined: either the repository or the cainjector owns caBundle")
		}
		_, err := command.NamespacedName("--inject-ca-from", o.inject)
		return nil, err
	}
	if o.ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities: %w", err)
	}
	trust, err := webhook.Trust(text)
	if err != nil {
		return nil, fmt.Errorf(
			"reading the certificate authorities: %s: %w: give a file in PEM, such as ca.crt of the webhook's Secret",
			o.ca, err)
	}
	return trust, nil
}
