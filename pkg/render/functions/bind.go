package functions

import (
	"reflect"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// binding makes the function that a template calls: executions are pooled, and have another Budget each time.
type binding func(at **values.Budget) any

func plain(f any) binding { return func(**values.Budget) any { return f } }

func one[A, R any](f func(*values.Budget, A) (R, error)) binding {
	return func(at **values.Budget) any { return func(a A) (R, error) { return f(*at, a) } }
}

func two[A, B, R any](f func(*values.Budget, A, B) (R, error)) binding {
	return func(at **values.Budget) any { return func(a A, b B) (R, error) { return f(*at, a, b) } }
}

func three[A, B, C, R any](f func(*values.Budget, A, B, C) (R, error)) binding {
	return func(at **values.Budget) any { return func(a A, b B, c C) (R, error) { return f(*at, a, b, c) } }
}

func all[A, R any](f func(*values.Budget, ...A) (R, error)) binding {
	return func(at **values.Budget) any { return func(a ...A) (R, error) { return f(*at, a...) } }
}

func more[A, B, R any](f func(*values.Budget, A, ...B) (R, error)) binding {
	return func(at **values.Budget) any { return func(a A, b ...B) (R, error) { return f(*at, a, b...) } }
}

// counting makes a function count what it reads, twice, since libraries copy, and what it makes. The most common type
// does without reflection.
func counting(f any) binding {
	if of, ok := f.(func(string) string); ok {
		return func(at **values.Budget) any {
			return func(text string) string {
				take(*at, 2*len(text))
				made := of(text)
				take(*at, len(made))
				return made
			}
		}
	}
	return wrapped(f, func(reflect.Value) {})
}

// numbers is counting for a function that must not be given a map or a list: the library would print it into an error
// that is discarded.
func numbers(f any) binding {
	return wrapped(f, func(arg reflect.Value) {
		if values.IsStructure(arg.Interface()) {
			panic(values.Problemf("", "%s is not a number", values.TypeName(arg.Interface())))
		}
	})
}

// wrapped returns a function that checks each of its arguments, and counts. text/template turns a panic into an error
// of the call.
func wrapped(f any, check func(arg reflect.Value)) binding {
	called := reflect.ValueOf(f)
	last := called.Type().NumIn() - 1
	return func(at **values.Budget) any {
		return reflect.MakeFunc(called.Type(), func(args []reflect.Value) []reflect.Value {
			read := 0
			look := func(arg reflect.Value) {
				check(arg)
				read = values.Plus(read, sizeOf(arg))
			}
			call := called.Call
			for i, arg := range args {
				if i < last || !called.Type().IsVariadic() {
					look(arg)
					continue
				}
				call = called.CallSlice
				for k := range arg.Len() {
					look(arg.Index(k))
				}
			}
			take(*at, values.Times(2, read))
			out := call(args)
			take(*at, sizeOf(out[0]))
			return out
		}).Interface()
	}
}

func take(b *values.Budget, bytes int) {
	if err := b.Text(bytes); err != nil {
		panic(err)
	}
}

// sizeOf returns the bytes of a text, or of a map or list without what is in it.
func sizeOf(v reflect.Value) int {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Slice, reflect.Array:
		return 16 * v.Len()
	case reflect.Map:
		return 80 * v.Len()
	}
	return 0
}
