package values

import (
	"encoding/json"
	"math"
	"reflect"
)

// Copy returns a deep copy of v in JSON types: nil, bool, int64, float64, string, []any, map[string]any. Numbers keep
// their type: an int stays an integer, a float64 a float64.
func Copy(b *Budget, v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, string, int64:
		return v, b.Placed(v)
	case int:
		return int64(v), b.Placed(v)
	case float64:
		if err := checkFloat(v); err != nil {
			return nil, err
		}
		return v, b.Placed(v)
	case map[string]any:
		return copyMap(b, v)
	case []any:
		return copyList(b, v)
	case json.Number:
		return number(v)
	}
	return copyReflected(b, reflect.ValueOf(v))
}

func copyMap(b *Budget, m map[string]any) (any, error) {
	if err := b.PlaceMap(len(m)); err != nil {
		return nil, err
	}
	if err := b.Nest(); err != nil {
		return nil, err
	}
	defer b.Leave()
	out := make(map[string]any, len(m))
	for key, value := range m {
		c, err := Copy(b, value)
		if err != nil {
			return nil, err
		}
		if err := b.MoreText(len(key)); err != nil {
			return nil, err
		}
		out[key] = c
	}
	return out, nil
}

func copyList(b *Budget, l []any) (any, error) {
	if err := b.PlaceList(len(l)); err != nil {
		return nil, err
	}
	if err := b.Nest(); err != nil {
		return nil, err
	}
	defer b.Leave()
	out := make([]any, len(l))
	for i, value := range l {
		c, err := Copy(b, value)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// copyReflected copies results of functions that are not JSON types: []string, map[string]string, small integers.
func copyReflected(b *Budget, v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), b.Placed(v.String())
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if v.Uint() > math.MaxInt64 {
			return float64(v.Uint()), nil
		}
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), checkFloat(v.Float())
	case reflect.Slice, reflect.Array:
		if err := b.Spend(Times(40, v.Len())); err != nil {
			return nil, err
		}
		items := make([]any, v.Len())
		for i := range items {
			items[i] = v.Index(i).Interface()
		}
		return copyList(b, items)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			if err := b.Spend(Plus(MapBytes(v.Len()), Times(32, v.Len()))); err != nil {
				return nil, err
			}
			entries := make(map[string]any, v.Len())
			for it := v.MapRange(); it.Next(); {
				entries[it.Key().String()] = it.Value().Interface()
			}
			return copyMap(b, entries)
		}
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
	}
	return nil, Problemf("", "a Go value of type %s cannot be used in a document", v.Type())
}

func checkFloat(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Problemf("", "the number %v cannot be used in a document", f)
	}
	return nil
}

// number converts an integer to int64 if it fits, as the API server's decoder does.
func number(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, Problemf("", "the number %v is out of range", n)
	}
	return f, nil
}
