package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/status"
)

// CRDStatus is what the operators that watch one kind need of its CustomResourceDefinition to store their status.
type CRDStatus struct {
	// Kind is the upstream kind.
	Kind schema.GroupVersionKind
	// Operators are those that write into its status, in the order of the configs.
	Operators []string
	status    crdschema.Node
	// ready is the condition type that the first of them writes for Ready.
	ready string
}

// CRDStatusOf gathers what configs need by the kind that they watch, kinds in the order of the configs. silent names
// the operators that write no status. The error names an operator whose kind has no definition that could be changed.
func CRDStatusOf(pipelines []*compile.Pipeline) (needs []*CRDStatus, silent []string, err error) {
	for _, p := range pipelines {
		gvk := p.Upstream.GVK
		if !p.StatusEnabled() {
			silent = append(silent, p.Name)
			continue
		}
		if kinds.IsBuiltin(gvk.GroupKind()) {
			return nil, nil, fmt.Errorf(
				"operator %s: %s of %s is a built-in kind: its definition cannot be changed to store a status of "+
					"yours, set status.enabled: false",
				p.Name, gvk.Kind, gvk.GroupVersion())
		}
		i := slices.IndexFunc(needs, func(n *CRDStatus) bool { return n.Kind == gvk })
		if i < 0 {
			i = len(needs)
			needs = append(needs, &CRDStatus{Kind: gvk, status: crdschema.Node{}, ready: p.Config.Status.Conditions.Ready})
		}
		needs[i].Operators = append(needs[i].Operators, p.Name)
		crdschema.Merge(needs[i].status, wantedStatus(p))
	}
	return needs, silent, nil
}

// Version is what the kind needs in its entry of spec.versions, with columns for kubectl get where these are
// wanted.
func (n *CRDStatus) Version(columns bool) map[string]any {
	lines := crdschema.Node{
		"subresources": crdschema.Node{"status": crdschema.Node{}},
		"schema":       crdschema.Node{"openAPIV3Schema": crdschema.Node{"properties": crdschema.Node{"status": n.status}}},
	}
	if columns {
		lines["additionalPrinterColumns"] = crdschema.PrinterColumns(n.ready)
	}
	return lines
}

// Lacks names what the kind as it is lacks, by path; empty if it has all.
func (n *CRDStatus) Lacks(kind *kinds.Kind) []string {
	var lacks []string
	if !kind.HasStatus {
		lacks = append(lacks, "subresources.status")
	}
	_, paths := crdschema.Lacking(n.status, status.Probe(kind.Schema))
	return append(lacks, paths...)
}

// MissingStatus is what the upstream's CustomResourceDefinition lacks to store what the config writes into the status,
// to be merged below openAPIV3Schema.properties. It is nil where nothing is missing or known. optional reports whether
// nothing but the baseline of downstreams is missing, without which a start may take requests.
func MissingStatus(p *compile.Pipeline) (lines map[string]any, optional bool) {
	if p.Storable == nil || p.Upstream.Schema == nil {
		return nil, false
	}
	missing, paths := crdschema.Lacking(wantedStatus(p), p.Storable)
	if missing == nil {
		return nil, false
	}
	optional = len(paths) == 1 && paths[0] == p.Config.Status.Downstreams+".baseline"
	if _, declared := p.Upstream.Schema.Properties["status"]; !declared {
		missing["type"] = "object"
	}
	return crdschema.Node{"status": missing}, optional
}

// wantedStatus is the schema of everything that the config writes below .status. What a CEL expression gives may be
// known to its author alone, and then anything can be stored.
func wantedStatus(p *compile.Pipeline) crdschema.Node {
	all := crdschema.Status(p.Config.Status.Downstreams, slices.ContainsFunc(p.Downstreams, (*desired.Downstream).Several))
	schemas := p.FieldSchemas()
	for i, f := range p.Config.Status.Fields {
		crdschema.Place(all, crdschema.Below(f.Path), crdschema.Of(schemas[i]))
	}
	return all
}

// OpenStatus is a source in which one custom kind has a status that stores everything, as it will once the schema that
// is about to be made is part of its own: what a config asks of the status as it is now is not an error.
func OpenStatus(source kinds.Source, kind schema.GroupVersionKind) kinds.Source {
	return &openStatus{source, kind}
}

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

// Compare says what a kind as it is lacks.
func (n *CRDStatus) Compare(kind *kinds.Kind) string {
	lacks := n.Lacks(kind)
	if len(lacks) == 0 {
		return fmt.Sprintf("the definition of %s has all of it", n.Kind.Kind)
	}
	return fmt.Sprintf("the definition of %s lacks %s", n.Kind.Kind, strings.Join(lacks, ", "))
}
