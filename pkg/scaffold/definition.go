package scaffold

import (
	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// firstConditions are the conditions that a new config writes: those by which kubectl wait, Argo CD and Flux go.
var firstConditions = config.Conditions{Ready: "Ready", Valid: "Valid", Reconciling: "Reconciling", Stalled: "Stalled"}

// recorded is where a new config records its downstreams.
const recorded = ".status.downstreams"

// definition is the text of a new kind's definition.
func (u *Upstream) definition(fields *branch) (string, error) {
	spec, _ := fields.definition()
	names := crdschema.Names{Kind: u.kind, Plural: u.plural, Namespaced: u.namespaced}
	return yamltext.Of(crdschema.Definition(names, spec, crdschema.Status(recorded, false), firstConditions.Ready))
}

// complete is the text of a definition with what it lacks: fields that holes name, and whatever the status needs. It is
// empty where nothing is lacking. What is there stays as it is, and where it is.
func (u *Upstream) complete(fields *branch) (string, error) {
	properties := crdschema.Node{}
	if spec := u.absent(fields, fieldpath.New("spec")); spec != nil {
		properties["spec"] = spec
	}
	lacking, _ := crdschema.Lacking(crdschema.Status(recorded, false), status.Probe(u.known.Schema))
	if lacking != nil {
		lacking["type"] = "object"
		properties["status"] = lacking
	}
	missing := crdschema.Node{}
	if len(properties) > 0 {
		missing["schema"] = crdschema.Node{"openAPIV3Schema": crdschema.Node{"properties": properties}}
	}
	if !u.known.HasStatus {
		missing["subresources"] = crdschema.Node{"status": crdschema.Node{}}
	}
	version := u.version()
	if mapEntry(version, "additionalPrinterColumns") == nil {
		missing["additionalPrinterColumns"] = crdschema.PrinterColumns(firstConditions.Ready)
	}
	if len(missing) == 0 {
		return "", nil
	}
	if _, err := addMissing(version, missing); err != nil {
		return "", err
	}
	return yamltext.Write(u.root)
}

// absent is the schema of the fields below a branch that the definition does not have, nil where it has all. They get
// no default and are not required: there may be objects already.
func (u *Upstream) absent(b *branch, at fieldpath.Path) crdschema.Node {
	have := schemaAt(u.known.Schema, at)
	switch {
	case b.fields == nil && have != nil:
		return nil
	case b.fields == nil:
		return b.schema
	case have != nil && len(have.Properties) == 0 && len(at) > 1:
		return nil // anything, or a map of something
	}
	properties := crdschema.Node{}
	for name, child := range b.fields {
		if s := u.absent(child, at.Child(name)); s != nil {
			properties[name] = s
		}
	}
	if len(properties) == 0 {
		return nil
	}
	return crdschema.Object(properties)
}

// version is the entry of spec.versions that the config watches.
func (u *Upstream) version() *yaml.Node {
	for _, v := range mapEntry(mapEntry(u.root, "spec"), "versions").Content {
		if textAt(v, "name") == u.kind.Version {
			return v
		}
	}
	return nil
}

// addMissing adds what a map of the author's lacks, key by key. grew reports whether it has become longer than a line.
func addMissing(n *yaml.Node, missing crdschema.Node) (grew bool, err error) {
	for _, key := range yamltext.Keys(missing) {
		have := mapEntry(n, key)
		more, isMap := missing[key].(crdschema.Node)
		switch {
		case have == nil:
			added, err := yamltext.Node(crdschema.Node{key: missing[key]})
			if err != nil {
				return grew, err
			}
			n.Content = append(n.Content, added.Content...)
			grew = grew || !isMap || !yamltext.IsShort(more)
		case have.Kind == yaml.MappingNode && isMap:
			below, err := addMissing(have, more)
			if err != nil {
				return grew, err
			}
			grew = grew || below
		}
	}
	if grew {
		n.Style &^= yaml.FlowStyle
	}
	return grew, nil
}
