package compile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Described is a kind that a config describes.
type Described struct {
	GVK schema.GroupVersionKind
	// Files are the configs that watch it, in their order; By is the first one that describes it.
	Files []*load.File
	By    *load.File
}

// DescribedKinds are the kinds that configs describe without errors, in the order of the configs.
func DescribedKinds(files []*load.File) []*Described {
	var all []*Described
	for _, f := range files {
		gvk := schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind)
		if f.SpecSchema() == nil || slices.ContainsFunc(all, func(d *Described) bool {
			return d.GVK.GroupKind() == gvk.GroupKind()
		}) {
			continue
		}
		d := &Described{GVK: gvk, By: f}
		for _, other := range files {
			if schema.FromAPIVersionAndKind(other.Watch.APIVersion, other.Watch.Kind) == gvk {
				d.Files = append(d.Files, other)
			}
		}
		all = append(all, d)
	}
	return all
}

// Definition is the CustomResourceDefinition of the kind, as JSON has it. status is the schema of its status; without
// one, no status is stored. It shares the schemas with its arguments.
func (d *Described) Definition(status crdschema.Node, ready string) crdschema.Node {
	s := d.By.Watch.Schema
	names := crdschema.Names{Kind: d.GVK, Plural: s.Plural, ShortNames: s.ShortNames,
		Namespaced: s.Scope != config.ScopeCluster}
	return crdschema.Definition(names, d.By.SpecSchema(), status, ready)
}

// Open is the definition by which configs are typed, as JSON has it: what status.fields give is known once they are
// compiled, and is open until then. It has none of their rules.
func (d *Described) Open() map[string]any {
	var status crdschema.Node
	for _, f := range d.Files {
		if f.Status.Enabled == nil || *f.Status.Enabled {
			if status == nil {
				status = crdschema.Node{}
			}
			crdschema.Merge(status, openStatusOf(&f.Operator))
		}
	}
	return runtime.DeepCopyJSON(d.Definition(status, "Ready"))
}

func (d *Described) typed() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Open(), crd); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", d.GVK.Kind, err)
	}
	return crd, nil
}

// openStatusOf is the schema of the status that a config writes, without the types of what its expressions give.
func openStatusOf(op *config.Operator) crdschema.Node {
	path := op.Status.Downstreams
	if _, err := fieldpath.Parse(path); err != nil { // the loader reports it
		path = ""
	}
	status := crdschema.Status(path, slices.ContainsFunc(op.Downstreams, func(d config.Downstream) bool {
		return d.ForEach != nil
	}))
	for _, f := range op.Status.Fields {
		if at, err := fieldpath.Parse(f.Path); err == nil && len(at) > 1 && at[0].Field == "status" {
			crdschema.Place(status, at[1:], crdschema.Of(nil))
		}
	}
	return status
}

// WithDescribed returns a source that also knows the kinds that configs describe, where the given one does not.
func WithDescribed(files []*load.File, source kinds.Source) kinds.Source {
	return kinds.Together(source, definitions(files))
}

// DescribedInstead returns a source in which the kinds that configs describe replace those that the given one knows: as
// it will be, once the definitions are applied.
func DescribedInstead(files []*load.File, source kinds.Source) kinds.Source {
	return kinds.Instead(source, definitions(files))
}

func definitions(files []*load.File) (crds []*apiextensionsv1.CustomResourceDefinition) {
	for _, d := range DescribedKinds(files) {
		if crd, err := d.typed(); err == nil { // One reports what is wrong with it
			crds = append(crds, crd)
		}
	}
	return crds
}

// checkDescribed checks the description of the upstream's kind beyond its notation: its defaults and its rules.
func checkDescribed(c *compilation, o Options) error {
	if c.file.SpecSchema() == nil || o.Deletions {
		return nil
	}
	d := &Described{GVK: c.p.Upstream.GVK, By: c.file, Files: []*load.File{c.file}}
	crd, err := d.typed()
	if err != nil {
		return err
	}
	refusals, err := kinds.Refusals(context.Background(), crd)
	if err != nil {
		c.fail("watch.schema", "", "an API server does not take it: %v", err)
		return nil
	}
	for _, r := range refusals {
		c.fail(describedAt(c, r.Path), r.Fix, "%s", r.Reason)
	}
	return nil
}

// describedAt is where in watch.schema a field of the objects is described. What is in a type of its own is described
// there, and the field that has the type is named.
func describedAt(c *compilation, path fieldpath.Path) string {
	at, value := fieldpath.New("watch", "schema"), any(map[string]any{"spec": c.file.Watch.Schema.Spec})
	for _, step := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			break
		}
		at, value = at.Child(step.Field), fields[step.Field]
	}
	return strings.TrimPrefix(at.String(), ".")
}
