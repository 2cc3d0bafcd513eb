package crdschema

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names are what a definition says of a kind besides its schema.
type Names struct {
	Kind       schema.GroupVersionKind
	Plural     string
	ShortNames []string
	Namespaced bool
}

// Definition is the CustomResourceDefinition of a kind with one version. spec is the schema of .spec; one with fields
// that must be set must be there itself. Without a status there is no subresource for it. ready is the type of the
// condition that is a column for kubectl get.
func Definition(n Names, spec, status Node, ready string) Node {
	properties := Node{"apiVersion": Node{"type": "string"}, "kind": Node{"type": "string"},
		"metadata": Node{"type": "object"}, "spec": spec}
	version := Node{"name": n.Kind.Version, "served": true, "storage": true,
		"additionalPrinterColumns": []any{ageColumn()}}
	if status != nil {
		properties["status"] = status
		version["subresources"] = Node{"status": Node{}}
		version["additionalPrinterColumns"] = PrinterColumns(ready)
	}
	whole := Object(properties)
	if spec["required"] != nil {
		whole["required"] = []any{"spec"}
	}
	version["schema"] = Node{"openAPIV3Schema": whole}
	scope := "Cluster"
	if n.Namespaced {
		scope = "Namespaced"
	}
	names := Node{"kind": n.Kind.Kind, "listKind": n.Kind.Kind + "List", "plural": n.Plural,
		"singular": strings.ToLower(n.Kind.Kind)}
	if len(n.ShortNames) > 0 {
		var short []any
		for _, name := range n.ShortNames {
			short = append(short, name)
		}
		names["shortNames"] = short
	}
	return Node{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": Node{"name": n.Plural + "." + n.Kind.Group},
		"spec":     Node{"group": n.Kind.Group, "scope": scope, "names": names, "versions": []any{version}},
	}
}
