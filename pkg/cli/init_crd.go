package cli

import (
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/status"
)

// firstConditions are the conditions that a new config writes: those by which kubectl wait, Argo CD and Flux go.
var firstConditions = config.Conditions{Ready: "Ready", Reconciling: "Reconciling", Stalled: "Stalled"}

// recorded is where a new config records its downstreams.
const recorded = ".status.downstreams"

// definition is the text of a new kind's definition.
func (u *newUpstream) definition(fields *branch) (string, error) {
	spec, required := fields.definition()
	whole := object(node{
		"apiVersion": node{"type": "string"}, "kind": node{"type": "string"}, "metadata": node{"type": "object"},
		"spec": spec, "status": statusNode(recorded),
	})
	if required {
		whole["required"] = []any{"spec"}
	}
	scope := "Cluster"
	if u.namespaced {
		scope = "Namespaced"
	}
	return readable(node{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": node{"name": u.plural + "." + u.kind.Group},
		"spec": node{
			"group": u.kind.Group, "scope": scope,
			"names": node{"kind": u.kind.Kind, "listKind": u.kind.Kind + "List", "plural": u.plural, "singular": strings.ToLower(u.kind.Kind)},
			"versions": []any{node{
				"name": u.kind.Version, "served": true, "storage": true,
				"subresources":             node{"status": node{}},
				"additionalPrinterColumns": printerColumns(firstConditions.Ready),
				"schema":                   node{"openAPIV3Schema": whole},
			}},
		},
	})
}

// complete is the text of a definition with what it lacks: fields that holes name, and whatever the status needs. It is
// empty where nothing is lacking. What is there stays as it is, and where it is.
func (u *newUpstream) complete(fields *branch) (string, error) {
	properties := node{}
	if spec := u.absent(fields, fieldpath.New("spec")); spec != nil {
		properties["spec"] = spec
	}
	wanted := statusNode(recorded)
	lacking := node{}
	_, dropped := status.Probe(u.known.Schema).Prune(sample(wanted).(map[string]any))
	for _, path := range dropped {
		// What Prune returns parses, and its first step is .status.
		merge(lacking, pick(wanted, fieldpath.MustParse(path)[1:]))
	}
	if len(lacking) > 0 {
		lacking["type"] = "object"
		properties["status"] = lacking
	}
	missing := node{}
	if len(properties) > 0 {
		missing["schema"] = node{"openAPIV3Schema": node{"properties": properties}}
	}
	if !u.known.HasStatus {
		missing["subresources"] = node{"status": node{}}
	}
	version := u.version()
	if mapEntry(version, "additionalPrinterColumns") == nil {
		missing["additionalPrinterColumns"] = printerColumns(firstConditions.Ready)
	}
	if len(missing) == 0 {
		return "", nil
	}
	if _, err := addMissing(version, missing); err != nil {
		return "", err
	}
	return yamlText(u.root)
}

// absent is the schema of the fields below a branch that the definition does not have, nil where it has all. They get no
// default and are not required: there may be objects already.
func (u *newUpstream) absent(b *branch, at fieldpath.Path) node {
	have := schemaAt(u.known.Schema, at)
	switch {
	case b.fields == nil && have != nil:
		return nil
	case b.fields == nil:
		return b.schema
	case have != nil && len(have.Properties) == 0 && len(at) > 1:
		return nil // anything, or a map of something
	}
	properties := node{}
	for name, child := range b.fields {
		if s := u.absent(child, at.Child(name)); s != nil {
			properties[name] = s
		}
	}
	if len(properties) == 0 {
		return nil
	}
	return object(properties)
}

// version is the entry of spec.versions that the config watches.
func (u *newUpstream) version() *yaml.Node {
	for _, v := range mapEntry(mapEntry(u.root, "spec"), "versions").Content {
		if textAt(v, "name") == u.kind.Version {
			return v
		}
	}
	return nil
}

// addMissing adds what a map of the author's lacks, key by key. grew tells that it has become longer than a line.
func addMissing(n *yaml.Node, missing node) (grew bool, err error) {
	for _, key := range inOrder(missing) {
		have := mapEntry(n, key)
		more, isMap := missing[key].(node)
		switch {
		case have == nil:
			added, err := yamlNode(node{key: missing[key]})
			if err != nil {
				return grew, err
			}
			n.Content = append(n.Content, added.Content...)
			grew = grew || !isMap || !isShort(more)
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
