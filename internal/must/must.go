// Package must ends a test if something fails that is to succeed, and reports what differs.
package must

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Do ends the test if there is an error; about says of what.
func Do(t testing.TB, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(about, err)...)
	}
}

// Result is a value, or why there is none.
type Result[T any] struct {
	value T
	err   error
}

// Get takes what a function returns.
func Get[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// In returns the value. It ends the test if there is an error; about says of what.
func (r Result[T]) In(t testing.TB, about ...any) T {
	t.Helper()
	Do(t, r.err, about...)
	return r.value
}

// Same reports how a value differs from the one that is wanted; about says what it is.
func Same[T any](t testing.TB, want, got T, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(append(about, "(-want +got):\n"+diff)...)
	}
}
