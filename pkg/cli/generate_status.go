package cli

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/status"
)

type generateStatusOptions struct {
	streams IO
	configs configFlags
	crds    []string
	columns bool
}

func newGenerateStatus(streams IO) *cobra.Command {
	o := &generateStatusOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "crd-status -c CONFIG",
		Short: "Print what a CustomResourceDefinition needs to store the status",
		Long: `Print the schema of everything that configs write into the status of a kind, and
the status subresource, to be merged into an entry of spec.versions of the kind's
CustomResourceDefinition. Configs that watch one kind are printed as one.

Conditions and the list of downstreams are keyed lists, so that several writers
can keep items in them. status.fields have the type of their expressions: what
schemas given with --crds tell, else what the expression says by itself, such as
an integer for ….orValue(0). Where neither does, any value can be stored.

With the CustomResourceDefinition itself among --crds, it is told on standard
error what of this it lacks.`,
		Example: `  corollary generate crd-status -c app.yaml

  # With columns for kubectl get
  corollary generate crd-status -c app.yaml --printer-columns

  # Typed by definitions, and compared with the one that is there
  corollary generate crd-status -c app.yaml --crds crds/`,
		Args: noArguments("configs are named with -c, CustomResourceDefinitions with --crds"),
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.configs.bind(cmd)
	bindCRDs(cmd, &o.crds)
	cmd.Flags().BoolVar(&o.columns, "printer-columns", false, "Print columns for kubectl get too: Ready, its reason, and the age")
	return cmd
}

func (o *generateStatusOptions) run() error {
	source, err := kinds.Offline(o.crds...)
	if err != nil {
		return err
	}
	files, problems, err := o.configs.load(o.streams)
	if err != nil {
		return err
	}
	var list []compiled
	for _, f := range files {
		upstream := schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind)
		made, more, e := compile([]*config.File{f}, pipeline.Options{Kinds: &openStatus{source, upstream}})
		list, problems, err = append(list, made...), further(problems, more), errors.Join(err, e)
	}
	if err := refuse(o.streams, problems, err); err != nil {
		return err
	}
	needs, err := o.needs(list)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for i, n := range needs {
		if i > 0 {
			out.WriteString("---\n")
		}
		if err := n.write(&out, o.columns); err != nil {
			return err
		}
		if kind, err := source.Kind(n.kind); err == nil {
			fmt.Fprintf(o.streams.Err, "note: %s\n", n.compare(kind))
		}
	}
	if _, err := o.streams.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the schema: %w", err)
	}
	return nil
}

// needs gathers what configs need by the kind that they watch, in their order.
func (o *generateStatusOptions) needs(list []compiled) ([]*statusNeed, error) {
	var needs []*statusNeed
	for _, c := range list {
		p := c.pipeline
		gvk := p.Upstream.GVK
		if !p.StatusEnabled() {
			fmt.Fprintf(o.streams.Err, "note: operator %s writes no status: status.enabled is false\n", p.Name)
			continue
		}
		if !strings.Contains(gvk.Group, ".") || strings.HasSuffix(gvk.Group, ".k8s.io") {
			return nil, fmt.Errorf("operator %s: %s of %s is a kind of Kubernetes' own: no definition can be changed to store a status of yours, write status.enabled: false",
				p.Name, gvk.Kind, gvk.GroupVersion())
		}
		i := slices.IndexFunc(needs, func(n *statusNeed) bool { return n.kind == gvk })
		if i < 0 {
			i = len(needs)
			needs = append(needs, &statusNeed{kind: gvk, schema: node{}, ready: p.Config.Status.Conditions.Ready})
		}
		needs[i].operators = append(needs[i].operators, p.Name)
		merge(needs[i].schema, wantedStatus(p))
	}
	return needs, nil
}

// statusNeed is what the configs that watch one kind need of its status.
type statusNeed struct {
	kind      schema.GroupVersionKind
	operators []string
	schema    node
	ready     string // the condition type that the first of them writes for Ready
}

func (n *statusNeed) write(out *bytes.Buffer, columns bool) error {
	fmt.Fprintf(out, "# %s of %s, for operator %s:\n# to be merged into the entry of spec.versions whose name is %s.\n",
		n.kind.Kind, n.kind.GroupVersion(), strings.Join(n.operators, ", "), n.kind.Version)
	lines := node{
		"subresources": node{"status": node{}},
		"schema":       node{"openAPIV3Schema": node{"properties": node{"status": n.schema}}},
	}
	if columns {
		lines["additionalPrinterColumns"] = printerColumns(n.ready)
	}
	text, err := readable(lines)
	out.WriteString(text)
	return err
}

// compare says what a kind as it is lacks.
func (n *statusNeed) compare(kind *kinds.Kind) string {
	var lacks []string
	if !kind.HasStatus {
		lacks = append(lacks, "subresources.status")
	}
	_, dropped := status.Probe(kind.Schema).Prune(sample(n.schema).(map[string]any))
	lacks = append(lacks, dropped...)
	if len(lacks) == 0 {
		return fmt.Sprintf("the definition of %s has all of it", n.kind.Kind)
	}
	return fmt.Sprintf("the definition of %s lacks %s", n.kind.Kind, strings.Join(lacks, ", "))
}

// printerColumns are columns for kubectl get; ready is the type of the condition.
func printerColumns(ready string) []any {
	of := func(field string) string { return fmt.Sprintf(`.status.conditions[?(@.type==%q)].%s`, ready, field) }
	return []any{
		node{"name": ready, "type": "string", "jsonPath": of("status")},
		node{"name": "Reason", "type": "string", "jsonPath": of("reason")},
		node{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
	}
}

// openStatus is a source in which one custom kind has a status that stores everything, as it will once the schema that is
// about to be printed is part of its own: what a config asks of the status as it is now is no error.
type openStatus struct {
	kinds.Source
	kind schema.GroupVersionKind
}

// Kind implements kinds.Source.
func (o *openStatus) Kind(gvk schema.GroupVersionKind) (*kinds.Kind, error) {
	kind, err := o.Source.Kind(gvk)
	if err != nil || kind.Schema == nil || gvk != o.kind {
		return kind, err
	}
	open := *kind
	open.HasStatus = true
	anything := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	anything.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	whole := *kind.Schema
	whole.Properties = maps.Clone(whole.Properties)
	if whole.Properties == nil {
		whole.Properties = map[string]spec.Schema{}
	}
	whole.Properties["status"] = anything
	open.Schema = &whole
	return &open, nil
}
