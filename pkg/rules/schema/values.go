package schema

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Value returns the CEL value of a JSON value with its schema, with the same meaning as in rules of a CRD. Nothing is
// copied: members are converted on access. Maps are iterated in the order of their keys, so that results are
// deterministic.
func (n *Node) Value(v any) ref.Val {
	if n.Dyn {
		return plain{}.NativeToValue(v)
	}
	switch v := v.(type) {
	case map[string]any:
		if n.Fields != nil {
			return &typedObject{sortedMap: newSortedMap(plain{}, v), node: n}
		}
		if n.Values != nil {
			return newSortedMap(typed{n.Values}, v)
		}
	case []any:
		if n.Item != nil {
			return n.list(v)
		}
	}
	// Scalars, null, and values that do not fit the schema, which become an error value.
	return common.UnstructuredToVal(v, n)
}

// list returns a list. Sets and lists with map keys compare and add as such, unless some part of the items has no
// schema: then they are plain lists.
func (n *Node) list(v []any) ref.Val {
	list := newList(typed{n.Item}, v)
	if kind := n.XListType(); (kind == "set" || kind == "map") && !n.mixed {
		return &keyedList{Lister: list, items: v, node: n}
	}
	return list
}

// typed makes CEL values of the members of a map or list with one schema.
type typed struct{ node *Node }

// NativeToValue implements types.Adapter.
func (t typed) NativeToValue(v any) ref.Val {
	if val, ok := v.(ref.Val); ok {
		return val
	}
	return t.node.Value(v)
}

// plain makes CEL values of JSON values without a schema.
type plain struct{}

// NativeToValue implements types.Adapter.
func (plain) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case map[string]any:
		return &plainMap{newSortedMap(plain{}, v)}
	case []any:
		return newList(plain{}, v)
	case string:
		return types.String(v)
	case int64:
		return types.Int(v)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// typedObject is an object with known fields. They have escaped names, and a null field counts as absent.
type typedObject struct {
	*sortedMap
	node *Node
}

// Find implements traits.Mapper.
func (o *typedObject) Find(key ref.Val) (ref.Val, bool) {
	escaped, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	name, ok := Unescape(string(escaped))
	if !ok {
		return nil, false
	}
	property, known := o.node.Fields[name]
	member := o.members[name]
	if !known || member == nil {
		return nil, false
	}
	return property.Value(member), true
}

// Get implements traits.Mapper.
func (o *typedObject) Get(key ref.Val) ref.Val { return get(o, key) }

// Contains implements traits.Mapper.
func (o *typedObject) Contains(key ref.Val) ref.Val { return contains(o, key) }

// ConvertToType implements ref.Val.
func (o *typedObject) ConvertToType(t ref.Type) ref.Val { return convert(o, o.sortedMap, t) }

// Equal implements ref.Val: objects are equal if their known fields are.
func (o *typedObject) Equal(other ref.Val) ref.Val {
	with, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	for _, field := range o.node.names {
		a, inA := o.Find(types.String(field))
		b, inB := with.Find(types.String(field))
		if inA != inB {
			return types.False
		}
		if inA {
			if equal := a.Equal(b); equal != types.True {
				return equal
			}
		}
	}
	return types.True
}

// plainMap is a map without a schema. It may be an object, whose fields have escaped names (foo-bar is foo__dash__bar),
// so that an expression for the schema also works without it; or a map with its own keys. The unescaped key wins.
type plainMap struct{ *sortedMap }

// Find implements traits.Mapper.
func (m *plainMap) Find(key ref.Val) (ref.Val, bool) {
	if v, found := m.Mapper.Find(key); found {
		return v, true
	}
	if name, ok := key.(types.String); ok && strings.Contains(string(name), "__") {
		if unescaped, ok := apiservercel.Unescape(string(name)); ok {
			return m.Mapper.Find(types.String(unescaped))
		}
	}
	return nil, false
}

// Get implements traits.Mapper.
func (m *plainMap) Get(key ref.Val) ref.Val { return get(m, key) }

// Contains implements traits.Mapper.
func (m *plainMap) Contains(key ref.Val) ref.Val { return contains(m, key) }

// ConvertToType implements ref.Val.
func (m *plainMap) ConvertToType(t ref.Type) ref.Val { return convert(m, m.sortedMap, t) }

// Unescape returns the field name for a CEL identifier; false if there is none.
func Unescape(identifier string) (string, bool) {
	if !strings.Contains(identifier, "__") {
		return identifier, true
	}
	return apiservercel.Unescape(identifier)
}

// Members returns the members of a map whose values are JSON: they need no conversion.
func Members(m traits.Mapper) (members map[string]any, ok bool) {
	switch m := m.(type) {
	case *sortedMap:
		return m.members, true
	case *typedObject:
		return m.members, true
	case *plainMap:
		return m.members, true
	}
	return nil, false
}

// lazyObject is an object whose fields are read when an expression reads them.
type lazyObject struct {
	*typedObject
	read func(name string) (any, error)
}

// Lazy returns an object with the fields of the node, whose names need no escape.
func (n *Node) Lazy(read func(name string) (any, error)) ref.Val {
	return &lazyObject{&typedObject{sortedMap: newSortedMap(plain{}, nil), node: n}, read}
}

// Find implements traits.Mapper.
func (l *lazyObject) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	property, known := l.node.Fields[string(name)]
	if !known {
		return nil, false
	}
	value, err := l.read(string(name))
	switch {
	case err != nil:
		return types.WrapErr(err), true
	case value == nil && !property.Dyn:
		return nil, false
	}
	return property.Value(value), true
}

// Get implements traits.Mapper.
func (l *lazyObject) Get(key ref.Val) ref.Val { return get(l, key) }

// Contains implements traits.Mapper.
func (l *lazyObject) Contains(key ref.Val) ref.Val { return contains(l, key) }
