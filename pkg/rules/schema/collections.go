package schema

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"
)

// sortedMap is a map that is iterated in the order of its keys.
type sortedMap struct {
	traits.Mapper
	members map[string]any
}

func newSortedMap(adapter types.Adapter, members map[string]any) *sortedMap {
	return &sortedMap{Mapper: types.NewStringInterfaceMap(adapter, members), members: members}
}

// Iterator implements traits.Iterable.
func (m *sortedMap) Iterator() traits.Iterator {
	return types.NewStringList(plain{}, slices.Sorted(maps.Keys(m.members))).Iterator()
}

// IsZeroValue implements traits.Zeroer, for optional.ofNonZeroValue.
func (m *sortedMap) IsZeroValue() bool { return len(m.members) == 0 }

// ConvertToType implements ref.Val.
func (m *sortedMap) ConvertToType(t ref.Type) ref.Val { return convert(m, m.Mapper, t) }

// convert converts a map; for every type except its own it calls the wrapped map.
func convert(m, within traits.Mapper, t ref.Type) ref.Val {
	if t == types.MapType {
		return m
	}
	return within.ConvertToType(t)
}

func get(m traits.Mapper, key ref.Val) ref.Val {
	if v, found := m.Find(key); found {
		return v
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

func contains(m traits.Mapper, key ref.Val) ref.Val {
	v, found := m.Find(key)
	if found && types.IsUnknownOrError(v) {
		return v
	}
	return types.Bool(found)
}

// list is a list that converts its items with its adapter everywhere: CEL's own list passes them unconverted to macros
// with two variables.
type list struct{ traits.Lister }

func newList(adapter types.Adapter, items []any) *list {
	return &list{types.NewDynamicList(adapter, items)}
}

// Fold implements traits.Foldable.
func (l *list) Fold(f traits.Folder) {
	size, _ := l.Size().(types.Int)
	for i := range size {
		if !f.FoldEntry(i, l.Get(i)) {
			return
		}
	}
}

// IsZeroValue implements traits.Zeroer, for optional.ofNonZeroValue.
func (l *list) IsZeroValue() bool { return l.Size() == types.IntZero }

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val {
	if t == types.ListType {
		return l
	}
	return l.Lister.ConvertToType(t)
}

// keyedList is a list that its schema calls a set, or a map keyed by fields of its items: order does not matter for
// equality, and adding merges. It delegates to Kubernetes' own lists.
type keyedList struct {
	traits.Lister
	items []any
	node  *Node
}

func (l *keyedList) kubernetes() traits.Lister {
	return common.UnstructuredToVal(l.items, l.node).(traits.Lister)
}

// Equal implements ref.Val.
func (l *keyedList) Equal(other ref.Val) ref.Val {
	if keyed, ok := other.(*keyedList); ok {
		other = keyed.kubernetes()
	}
	return l.kubernetes().Equal(other)
}

// Add implements traits.Adder.
func (l *keyedList) Add(other ref.Val) ref.Val {
	if keyed, ok := other.(*keyedList); ok {
		other = keyed.kubernetes()
	}
	return l.kubernetes().(traits.Adder).Add(other)
}
