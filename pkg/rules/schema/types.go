package schema

import (
	"maps"
	"slices"
	"strings"

	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// TypePrefix begins the names of object types, followed by the path of the first object of the type. The space
// distinguishes the name from an expression: CEL resolves names of types before fields.
const TypePrefix = "object "

// Types declares the CEL types of one scope. Objects with the same fields have one type, so that either can be used:
// the status of two Deployments in `c ? downstreams.blue.status : downstreams.green.status`.
type Types map[string]*apiservercel.DeclType

// Declare declares the CEL type of a node at a path, as in rules of a CRD: names of fields are escaped to identifiers;
// fields that cannot be escaped are omitted.
func (d Types) Declare(n *Node, path string) *apiservercel.DeclType {
	switch {
	case n.Dyn || n.IsXIntOrString():
		return apiservercel.DynType
	case n.Item != nil:
		return apiservercel.NewListType(d.Declare(n.Item, path+".@idx"), unbounded)
	case n.Values != nil:
		return apiservercel.NewMapType(apiservercel.StringType, d.Declare(n.Values, path+".@elem"), unbounded)
	case n.Fields != nil:
		return d.object(n, path)
	}
	return common.SchemaDeclType(n, false)
}

func (d Types) object(n *Node, path string) *apiservercel.DeclType {
	fields := make(map[string]*apiservercel.DeclField, len(n.Fields))
	var structure strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.Fields)) {
		escaped, ok := apiservercel.Escape(name)
		if !ok {
			continue
		}
		t := d.Declare(n.Fields[name], path+"."+escaped)
		fields[escaped] = apiservercel.NewDeclField(escaped, t, false, nil, nil)
		structure.WriteString(escaped + " " + t.CelType().String() + "\n")
	}
	known := d[structure.String()]
	if known == nil {
		known = apiservercel.NewObjectType(TypePrefix+path, fields)
		d[structure.String()] = known
	}
	return known
}

// unbounded is the size of lists and maps: sizes are only used to estimate costs, and here costs are measured.
const unbounded = -1
