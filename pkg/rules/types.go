package rules

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// typePrefix begins the names of object types, followed by the path of the first object of the type. The space distinguishes
// the name from an expression: CEL resolves names of types before fields.
const typePrefix = "object "

// declarer declares the CEL types of one scope. Objects with the same fields have one type, so that either can be used: the
// status of two Deployments in `c ? downstreams.blue.status : downstreams.green.status`.
type declarer map[string]*apiservercel.DeclType

// declare declares the CEL type of a node at a path, as in rules of a CRD: names of fields are escaped to identifiers; fields
// that cannot be escaped are omitted.
func (d declarer) declare(n *node, path string) *apiservercel.DeclType {
	switch {
	case n.dyn || n.IsXIntOrString():
		return apiservercel.DynType
	case n.items != nil:
		return apiservercel.NewListType(d.declare(n.items, path+".@idx"), unbounded)
	case n.values != nil:
		return apiservercel.NewMapType(apiservercel.StringType, d.declare(n.values, path+".@elem"), unbounded)
	case n.properties != nil:
		return d.object(n, path)
	}
	return scalarType(n.Type(), n.Format())
}

func (d declarer) object(n *node, path string) *apiservercel.DeclType {
	fields := make(map[string]*apiservercel.DeclField, len(n.properties))
	var structure strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		escaped, ok := apiservercel.Escape(name)
		if !ok {
			continue
		}
		t := d.declare(n.properties[name], path+"."+escaped)
		fields[escaped] = apiservercel.NewDeclField(escaped, t, false, nil, nil)
		structure.WriteString(escaped + " " + t.CelType().String() + "\n")
	}
	known := d[structure.String()]
	if known == nil {
		known = apiservercel.NewObjectType(typePrefix+path, fields)
		d[structure.String()] = known
	}
	return known
}

// unbounded is the size of lists and maps: sizes are only used to estimate costs, and here costs are measured.
const unbounded = -1

func scalarType(typeName, format string) *apiservercel.DeclType {
	switch typeName {
	case "boolean":
		return apiservercel.BoolType
	case "integer":
		return apiservercel.IntType
	case "number":
		return apiservercel.DoubleType
	}
	switch format {
	case "byte":
		return apiservercel.BytesType
	case "duration":
		return apiservercel.DurationType
	case "date", "date-time":
		return apiservercel.TimestampType
	}
	return apiservercel.StringType
}

// provider is the type provider of a scope. It remembers which type lacked a field, because CEL's error has only the name of
// the field.
type provider struct {
	*apiservercel.DeclTypeProvider

	mu     sync.Mutex
	misses map[string]string // field to the type that lacks it
}

var _ types.Provider = (*provider)(nil)

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(typeName, field string) (*types.FieldType, bool) {
	found, ok := p.DeclTypeProvider.FindStructFieldType(typeName, field)
	if !ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.misses == nil {
			p.misses = map[string]string{}
		}
		p.misses[field] = typeName
	}
	return found, ok
}

// forget forgets the lookups of the last expression.
func (p *provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.misses = nil
}

// lacking returns the type that lacks the field, and its sorted fields.
func (p *provider) lacking(field string) (typeName string, has []string) {
	p.mu.Lock()
	typeName = p.misses[field]
	p.mu.Unlock()
	if t, ok := p.FindDeclType(typeName); ok {
		for name := range t.Fields {
			has = append(has, name)
		}
	}
	sort.Strings(has)
	return typeName, has
}

// newProvider returns the provider for the declared types, and the options that install it.
func newProvider(base *cel.Env, declared []*apiservercel.DeclType) (*provider, []cel.EnvOption, error) {
	typed := apiservercel.NewDeclTypeProvider(declared...)
	typed.SetRecognizeKeywordAsFieldName(true) // metadata.namespace needs no escape
	typed, err := typed.WithTypeProvider(base.CELTypeProvider())
	if err != nil {
		return nil, nil, err
	}
	p := &provider{DeclTypeProvider: typed}
	return p, []cel.EnvOption{cel.CustomTypeProvider(p), cel.CustomTypeAdapter(typed)}, nil
}
