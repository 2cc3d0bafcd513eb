package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSort(t *testing.T) {
	got := Errors{
		{File: "b", Line: 1, Problem: "p"}, {File: "a", Line: 10, Problem: "p"}, {File: "a", Line: 9, Path: "y", Problem: "p"},
		{File: "a", Line: 9, Path: "x", Problem: "q"}, {File: "a", Line: 9, Path: "x", Problem: "p", Fix: "m"},
		{File: "a", Line: 10, Problem: "p"},
	}.Sort()
	want := "a:9: x: p: m\na:9: x: q\na:9: y: p\na:10: p\nb:1: p"
	if d := cmp.Diff(want, got.Error()); d != "" {
		t.Errorf("by file, line as a number, path and problem, each once: -want +got\n%s", d)
	}
}
