package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/suggest"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

type suggestOptions struct {
	streams command.IO
	crds    []string
	kind    string
	hub     string
	manager string
}

func newSuggest(streams command.IO) *cobra.Command {
	o := &suggestOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "suggest --crds FILE --hub VERSION",
		Short: "Draft a conversion from the schemas of a kind",
		Long: `Draft a conversion between the served versions of a kind, from their schemas alone, and
print it as a config of kind Conversion. Fields that seem to have another name or place
become rules; so do values that are lists of one item on the other side, words of enums
that differ, and types that can be converted.

A draft is a guess: rules to look at are marked "check", fields for which no rule was
found are listed at the end, and a renaming for which too little speaks is a rule in a
comment. Prove the result: corollary convert prove.`,
		Example: `  corollary convert suggest --crds crd.yaml --hub v1 > conversion.yaml`,
		Args:    command.NoArguments("CustomResourceDefinitions are named with --crds"),
		RunE:    func(*cobra.Command, []string) error { return o.run() },
	}
	command.BindCRDs(cmd, &o.crds)
	flags := cmd.Flags()
	flags.StringVar(&o.kind, "kind", "", "Kind to convert, where the files define several: KIND.GROUP")
	flags.StringVar(&o.hub, "hub", "", "Version that all others convert through; by default the stored one")
	flags.StringVar(&o.manager, "field-manager", "",
		"Field manager that writes spec.conversion; by default the resource's name")
	return cmd
}

func (o *suggestOptions) run() error {
	crd, err := o.definition()
	if err != nil {
		return err
	}
	versions, err := kinds.Versions(crd)
	if err != nil {
		return fmt.Errorf("reading CustomResourceDefinition %s: %w", crd.Name, err)
	}
	if o.hub == "" {
		o.hub = kinds.StoredVersion(crd)
	}
	h := slices.IndexFunc(versions, func(v *kinds.Version) bool { return v.Name == o.hub })
	if h < 0 {
		return command.Usagef("--hub is %q: %s does not serve that version", o.hub, crd.Name)
	}
	if o.manager == "" {
		o.manager = crd.Name
	}
	made := conversion.Conversion{Hub: o.hub}
	guesses, suspected := map[string]string{}, []string{}
	for _, v := range versions {
		if v.Name == o.hub {
			continue
		}
		spoke, found := suggest.Suggest(v, versions[h])
		made.Spokes = append(made.Spokes, spoke)
		for path, reason := range found {
			guesses[v.Name+" "+path] = reason
		}
		for _, rule := range suggest.Suspected(v, versions[h]) {
			suspected = append(suspected, fmt.Sprintf(
				"# if %s of %s is %s of %s by another name, add to rules of %[2]s:\n#   - {move: %[1]s, to: %[3]s}",
				rule.Move, v.Name, rule.To, o.hub))
		}
	}
	if len(made.Spokes) == 0 {
		return fmt.Errorf("CustomResourceDefinition %s serves only %s: there is nothing to convert", crd.Name, o.hub)
	}
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	_, problems := convert.Compile(&made, convert.Options{
		Kind: kind, Versions: versions, Stored: kinds.StoredVersion(crd), Namespaced: kinds.IsNamespaced(crd),
	})
	return o.print(crd, &made, guesses, problems, suspected)
}

// definition is the one that is meant.
func (o *suggestOptions) definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	list, err := kinds.CRDs(o.crds...)
	if err != nil {
		return nil, err
	}
	var names []string
	list = slices.DeleteFunc(list, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		name := crd.Spec.Names.Kind + "." + crd.Spec.Group
		names = append(names, name)
		return o.kind != "" && o.kind != name
	})
	switch {
	case len(names) == 0:
		return nil, command.Usagef("no CustomResourceDefinition is given: add --crds FILE")
	case len(list) == 0:
		return nil, command.Usagef("--kind is %q: the files define %s", o.kind, strings.Join(names, ", "))
	case len(list) > 1:
		return nil, command.Usagef("the files define %s: name one with --kind", strings.Join(names, ", "))
	}
	return list[0], nil
}

// print writes the draft, with a comment for each guess, for each problem, and for each rule that is only suspected.
func (o *suggestOptions) print(
	crd *apiextensionsv1.CustomResourceDefinition, made *conversion.Conversion, guesses map[string]string,
	problems []*convert.Problem,
	suspected []string,
) error {
	text, err := yaml.Marshal(conversion.ConversionDocument{
		APIVersion: config.APIVersion, Kind: conversion.ConversionKind,
		Metadata:     common.Metadata{Name: crd.Spec.Names.Plural},
		For:          conversion.ConvertedKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
		FieldManager: o.manager, Conversion: *made,
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	b.Write(text)
	lines := make([]string, 0, len(guesses)+len(problems))
	for at, reason := range guesses {
		lines = append(lines, fmt.Sprintf("# check: %s: %s", at, reason))
	}
	slices.Sort(lines)
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("# to do: %s: %s", p.Path, p.Message))
	}
	lines = append(lines, suspected...)
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	_, err = o.streams.Out.Write([]byte(b.String()))
	return err
}
