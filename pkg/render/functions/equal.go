package functions

import (
	"reflect"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// deepEqual compares values recursively. Integers of all types are comparable, so that the 80 of a template equals the
// 80 of an upstream.
func deepEqual(budget *values.Budget, a, b any) (bool, error) {
	if err := budget.Work(1); err != nil {
		return false, err
	}
	if text, ok := a.(string); ok {
		if other, ok := b.(string); ok {
			return text == other, budget.Work(len(text) >> 12)
		}
	}
	if values.IsStructure(a) != values.IsStructure(b) {
		return false, nil
	}
	// Convert results of functions, and numbers, to the types of an upstream.
	ca, err := values.Copy(budget, a)
	if err != nil {
		return false, err
	}
	cb, err := values.Copy(budget, b)
	return err == nil && reflect.DeepEqual(ca, cb), err
}

// eq compares scalars as text/template does, but does not print a map or list into its error.
func eq(budget *values.Budget, a any, others ...any) (bool, error) {
	for _, other := range others {
		if equal, err := same(budget, a, other); err != nil || equal {
			return equal, err
		}
	}
	return false, nil
}

func ne(budget *values.Budget, a, b any) (bool, error) {
	equal, err := same(budget, a, b)
	return !equal, err
}

func same(budget *values.Budget, a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			return s == t, budget.Work(len(s) >> 12)
		}
	}
	for _, v := range []any{a, b} {
		if values.IsStructure(v) {
			return false, values.Problemf("write `deepEqual`", "eq compares scalars, not %s", values.TypeName(v))
		}
	}
	equal, ok := sameScalar(reflect.ValueOf(a), reflect.ValueOf(b))
	if !ok {
		return false, values.Problemf("", "incompatible types for comparison: %s and %s",
			values.TypeName(a), values.TypeName(b))
	}
	return equal, nil
}

// sameScalar compares two values; ok is false if their types cannot be compared.
func sameScalar(a, b reflect.Value) (equal, ok bool) {
	switch {
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int(), true
	case a.CanUint() && b.CanUint():
		return a.Uint() == b.Uint(), true
	case a.CanInt() && b.CanUint():
		return a.Int() >= 0 && uint64(a.Int()) == b.Uint(), true
	case a.CanUint() && b.CanInt():
		return sameScalar(b, a)
	case a.CanFloat() && b.CanFloat():
		return a.Float() == b.Float(), true
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return a.String() == b.String(), true
	case a.Kind() == reflect.Bool && b.Kind() == reflect.Bool:
		return a.Bool() == b.Bool(), true
	}
	return false, false
}
