package rules

import (
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// value returns the CEL value of a JSON value with its schema, with the same meaning as in rules of a CRD. Nothing is copied:
// members are converted on access. Maps are iterated in the order of their keys, so that results are deterministic.
func (n *node) value(v any) ref.Val {
	if n.dyn {
		return plain{}.NativeToValue(v)
	}
	switch v := v.(type) {
	case map[string]any:
		if n.properties != nil {
			return &typedObject{sortedMap: newSortedMap(plain{}, v), node: n}
		}
		if n.values != nil {
			return newSortedMap(typed{n.values}, v)
		}
	case []any:
		if n.items != nil {
			return n.list(v)
		}
	}
	// Scalars, null, and values that do not fit the schema, which become an error value.
	return common.UnstructuredToVal(v, n)
}

// list returns a list. Sets and lists with map keys compare and add as such, unless some part of the items has no schema: then
// they are plain lists.
func (n *node) list(v []any) ref.Val {
	list := newList(typed{n.items}, v)
	if kind := n.XListType(); (kind == "set" || kind == "map") && !n.mixed {
		return &keyedList{Lister: list, items: v, node: n}
	}
	return list
}

// typed makes CEL values of the members of a map or list with one schema.
type typed struct{ node *node }

// NativeToValue implements types.Adapter.
func (t typed) NativeToValue(v any) ref.Val {
	if val, ok := v.(ref.Val); ok {
		return val
	}
	return t.node.value(v)
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
	node *node
}

// Find implements traits.Mapper.
func (o *typedObject) Find(key ref.Val) (ref.Val, bool) {
	escaped, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	name, ok := unescape(string(escaped))
	if !ok {
		return nil, false
	}
	property, known := o.node.properties[name]
	member := o.members[name]
	if !known || member == nil {
		return nil, false
	}
	return property.value(member), true
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
	for _, field := range o.node.fields {
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

// plainMap is a map without a schema. It may be an object, whose fields have escaped names (foo-bar is foo__dash__bar), so that
// an expression for the schema also works without it; or a map with its own keys. The unescaped key wins.
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

// unescape returns the field name for a CEL identifier; false if there is none.
func unescape(identifier string) (string, bool) {
	if !strings.Contains(identifier, "__") {
		return identifier, true
	}
	return apiservercel.Unescape(identifier)
}
