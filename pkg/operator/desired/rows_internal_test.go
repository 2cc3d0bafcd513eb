package desired

import (
	"slices"
	"testing"
)

// Rows of a list come in an order that depends on nothing but their keys.
func TestRowsAreOrderedByKey(t *testing.T) {
	want := []string{"-10", "-9", "0", "2", "10", "9223372036854775807", "", "007", "10a", "9223372036854775808", "a", "b"}
	for shift := range want {
		have := append(slices.Clone(want[shift:]), want[:shift]...)
		slices.Reverse(have)
		if slices.SortFunc(have, compareRowNames); !slices.Equal(have, want) {
			t.Errorf("the order is %q", have)
		}
	}
}
