package functions

import (
	"math"
	"reflect"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// builtinArity is the least and the most arguments of text/template's own functions, and of those of an execution.
var builtinArity = map[string][2]int{
	"and": {1, math.MaxInt}, "or": {1, math.MaxInt}, "index": {1, math.MaxInt},
	"not": {1, 1}, "len": {1, 1}, "lt": {2, 2}, "le": {2, 2}, "gt": {2, 2}, "ge": {2, 2},
	"item": {0, 0}, "param": {1, 1}, "variable": {1, 1}, "input": {1, 1}, "downstream": {1, 1}, "include": {2, 2},
}

// builtinResults are the result types of text/template's own functions, and of include.
var builtinResults = map[string]reflect.Type{
	"include": reflect.TypeFor[string](), "not": boolType, "lt": boolType, "le": boolType, "gt": boolType,
	"ge": boolType, "len": reflect.TypeFor[int](),
}

var boolType = reflect.TypeFor[bool]()

// Type returns the type of a function, nil for one of text/template or of an execution.
func Type(name string) reflect.Type {
	var none *values.Budget
	if f := Bind(name, &none); f != nil {
		return reflect.TypeOf(f)
	}
	return nil
}

// Arity returns the least and the most arguments of a function.
func Arity(name string) (least, most int) {
	t := Type(name)
	switch {
	case name == "default" || name == "eq":
		return 2, math.MaxInt // with only a default it would do nothing
	case t == nil:
		n := builtinArity[name]
		return n[0], n[1]
	case t.IsVariadic():
		return t.NumIn() - 1, math.MaxInt
	}
	return t.NumIn(), t.NumIn()
}

// Result returns the result type of a function, nil if it is unknown before the call.
func Result(name string) reflect.Type {
	t := Type(name)
	if t == nil {
		return builtinResults[name]
	}
	if out := t.Out(0); out.Kind() != reflect.Interface {
		return out
	}
	return nil
}

// ResultType returns the schema type of the results of a function: string, integer, number or boolean; "" if it is not
// always the same.
func ResultType(name string) string {
	t := Result(name)
	if t == nil {
		return ""
	}
	switch k := t.Kind(); {
	case k == reflect.String:
		return "string"
	case k == reflect.Bool:
		return "boolean"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	}
	return ""
}

// MayBeNull reports whether the result of a function may be null.
func MayBeNull(name string) bool {
	switch name {
	case "required", "list", "tuple", "dict", "set", "unset", "keys", "values", "pick", "omit":
		return false
	}
	t := Result(name)
	return t == nil || t.Kind() == reflect.Pointer
}

// nullArguments says which arguments of a function may be null. Any other null is an error with the name of the
// argument: sprig would print nothing, or <nil>.
var nullArguments = map[string]func(i, n int) bool{
	"default": anyArgument, "coalesce": anyArgument, "omitempty": anyArgument, "empty": anyArgument,
	"all": anyArgument, "any": anyArgument, "and": anyArgument, "or": anyArgument, "not": anyArgument,
	"eq": anyArgument, "ne": anyArgument, "deepEqual": anyArgument, "list": anyArgument, "tuple": anyArgument,
	"kindOf": anyArgument, "typeOf": anyArgument,
	"kindIs": from(1), "typeIs": from(1), "typeIsLike": from(1), "required": from(1), "include": from(1),
	"dict":   func(i, _ int) bool { return i%2 == 1 },
	"set":    from(2),
	"append": from(1), "mustAppend": from(1), "prepend": from(1), "mustPrepend": from(1),
	"ternary": func(i, n int) bool { return i < 2 && n > 2 },
	"has":     func(i, _ int) bool { return i == 0 }, "mustHas": func(i, _ int) bool { return i == 0 },
	"without": from(1), "mustWithout": from(1),
	"dig": func(i, n int) bool { return i == n-2 },
}

func anyArgument(int, int) bool { return true }

func from(first int) func(i, n int) bool {
	return func(i, _ int) bool { return i >= first }
}

// ArgumentTakesNull reports whether argument i of n may be null. It returns true if name is empty: that is not a
// function.
func ArgumentTakesNull(name string, i, n int) bool {
	if name == "" {
		return true
	}
	f, ok := nullArguments[name]
	return ok && f(i, n)
}

// TakesNull reports whether some argument of a template function may be null.
func TakesNull(function string) bool { return nullArguments[function] != nil }
