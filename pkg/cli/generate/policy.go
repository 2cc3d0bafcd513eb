package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

type policies struct {
	maker
	accounts []string
	users    []string
	prefix   string
}

func newPolicy(streams command.IO) *cobra.Command {
	o := &policies{maker: maker{streams: streams}}
	cmd := o.command(o.run, true, &cobra.Command{
		Use:   "policy -c CONFIG",
		Short: "Print admission policies for the rules, the ownership marks and conversions",
		Long: `Print two ValidatingAdmissionPolicies and their bindings for each operator, and one for
each conversion with preserve.

OPERATOR-rules refuses upstreams that break the rules under validate, with the same
messages. It allows objects that are being deleted, and updates that change nothing
that the rules read.

OPERATOR-marks lets only the operator mark an object of its downstreams' kinds as its
own: with the owner annotation, the hash, its constant labels, or an owner reference
to an upstream. Everything else in such objects can be edited as before. It is
printed if the operator's account is known: from serviceAccount in the config, or
from --service-account.

CONVERSION-preserve refuses updates that drop the annotation of preserve: a client that
builds an object of an old version anew and replaces the stored one would lose the
fields that only other versions have. Patches and applies keep the annotation.

A rule that a policy cannot express, such as one that reads inputs, is left out;
standard error and a comment say so. Give the CustomResourceDefinitions with --crds:
a policy sees plain JSON, so expressions must convert what they define as a time or
a number.`,
		Example: `  corollary generate policy -c app.yaml --crds crds/ | kubectl apply -f -

  # Allow marks by the ServiceAccount of the process, and by a tool that restores backups
  corollary generate policy -c app.yaml --crds crds/ --service-account platform/corollary \
    --allow-user system:serviceaccount:velero:velero`,
	})
	o.bindOutput(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.accounts, "service-account", nil,
		"NAMESPACE/NAME of a ServiceAccount that operators work as; may be repeated")
	flags.StringVar(&o.prefix, "name-prefix", "",
		"Text before the names of policies and bindings: they are the cluster's, and two teams may have operators of one "+
			"name")
	flags.StringArrayVar(&o.users, "allow-user", nil, "Name of another user who may write marks; may be repeated")
	return cmd
}

func (o *policies) run() error {
	if problems := validation.IsDNS1123Subdomain(o.prefix + "x"); len(problems) > 0 {
		return command.Usagef(
			"--name-prefix %q does not begin a name: write small letters, digits, dots and hyphens, such as team-a-", o.prefix)
	}
	given, err := identities(o.accounts)
	if err != nil {
		return err
	}
	list, err := o.configs.PipelinesOffline(o.streams, o.crds)
	if err != nil {
		return err
	}
	var all []generate.Manifest
	var operators []string
	for _, p := range list {
		made, err := o.policies(p, given, siblings(p, list))
		if err != nil {
			return err
		}
		all, operators = append(all, made...), append(operators, p.Name)
	}
	conversions, err := o.conversionPolicies()
	if err != nil {
		return err
	}
	all = append(all, conversions...)
	if len(all) == 0 {
		return fmt.Errorf(
			"no policy is needed: no config has a rule that a policy can express, or a conversion with preserve, and it is " +
				"not known which " +
				"account writes the marks",
		)
	}
	head := "Admission policies"
	if len(operators) > 0 {
		head += " for " + strings.Join(operators, ", ")
	}
	return o.print("the policies", head+": generated from the configs by corollary generate policy.", all)
}

// conversionPolicies are those of the conversions among the configs.
func (o *policies) conversionPolicies() (all []generate.Manifest, err error) {
	files, source, err := o.configs.Offline(o.streams, o.crds)
	if err != nil {
		return nil, err
	}
	list, err := o.configs.ValidConversions(files, o.streams)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		made, err := generate.PreservePolicy(f, source, o.prefix)
		if err != nil {
			return nil, err
		}
		for _, note := range made.Notes {
			fmt.Fprintf(o.streams.Err, "note: conversion %s: %s\n", f.Name, note)
		}
		all = append(all, made.Manifests...)
	}
	return all, nil
}

// policies are those of one operator.
func (o *policies) policies(p *compile.Pipeline, given, others []generate.Identity) ([]generate.Manifest, error) {
	made, err := generate.RulesPolicy(p, o.prefix)
	if err != nil {
		return nil, err
	}
	notes := made.Notes
	list := made.Manifests
	accounts := slices.Clone(given)
	if sa := p.Config.ServiceAccount; sa != nil {
		accounts = append([]generate.Identity{{Namespace: sa.Namespace, Name: sa.Name}}, accounts...)
	}
	if len(accounts) == 0 {
		notes = append(notes, "anybody may write its marks: name who it works as with --service-account NAMESPACE/NAME")
	} else {
		marks, err := generate.MarksPolicy(p, generate.MarksOptions{Prefix: o.prefix, Accounts: accounts,
			Users: o.users, Siblings: others})
		if err != nil {
			return nil, err
		}
		notes, list = append(notes, marks.Notes...), append(list, marks.Manifests...)
	}
	for i, note := range notes {
		if !slices.Contains(notes[:i], note) {
			fmt.Fprintf(o.streams.Err, "note: operator %s: %s\n", p.Name, note)
		}
	}
	return list, nil
}

// siblings are those whom other operators of the same upstream kind work as.
func siblings(pipeline *compile.Pipeline, list []*compile.Pipeline) []generate.Identity {
	var others []generate.Identity
	for _, p := range list {
		same := p.Upstream.GVK.GroupKind() == pipeline.Upstream.GVK.GroupKind()
		if sa := p.Config.ServiceAccount; same && p != pipeline && sa != nil {
			others = append(others, generate.Identity{Namespace: sa.Namespace, Name: sa.Name})
		}
	}
	return others
}

// identities reads NAMESPACE/NAME.
func identities(texts []string) ([]generate.Identity, error) {
	var list []generate.Identity
	for _, text := range texts {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, command.Usagef("--service-account %q names no ServiceAccount: write NAMESPACE/NAME", text)
		}
		list = append(list, generate.Identity{Namespace: namespace, Name: name})
	}
	return list, nil
}
