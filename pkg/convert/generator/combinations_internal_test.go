package generator

import (
	"fmt"
	"testing"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
)

// All combinations of two fields are tried, if these are not too many; else some of every two fields, whatever their
// names.
func TestCombinations(t *testing.T) {
	t.Parallel()
	properties := map[string]structuralschema.Structural{}
	for n := range 10 {
		properties[fmt.Sprint("field", n)] = structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
	}
	v := &kinds.Version{Structural: &structuralschema.Structural{Properties: properties}}
	g := New(Options{Seed: 1, Versions: []*kinds.Version{v}, Others: []*kinds.Version{v}})
	for _, row := range []struct {
		most     int
		complete bool
	}{{1 << 20, true}, {2000, false}} {
		pairs, tried := map[string]int{}, 0
		chosen, all := g.Combinations(v, row.most)
		for c := range chosen {
			tried++
			for a := range c {
				for b := range c {
					if a < b {
						pairs[a+b]++
					}
				}
			}
		}
		if len(pairs) != 45 || row.complete != (tried == all) || tried != min(all, row.most) {
			t.Errorf("of at most %d: %d of %d combinations of %d pairs", row.most, tried, all, len(pairs))
		}
	}
}

// TestManyFields: of many optional fields, most objects have some, and some have all: an object is made and converted
// in bounded time.
func TestManyFields(t *testing.T) {
	t.Parallel()
	properties := map[string]structuralschema.Structural{}
	for n := range 500 {
		properties[fmt.Sprint("field", n)] = structuralschema.Structural{Generic: structuralschema.Generic{Type: "string"}}
	}
	s := &structuralschema.Structural{Generic: structuralschema.Generic{Type: "object"}, Properties: properties}
	g := New(Options{Seed: 1, Versions: []*kinds.Version{{Structural: s}}})
	total, seen := 0, map[string]bool{}
	for range 1000 {
		made, _ := g.value(s, "", 0).(map[string]any)
		total += len(made)
		for name := range made {
			seen[name] = true
		}
	}
	if average := total / 1000; average > 2*usualFields || average < usualFields/2 || len(seen) != len(properties) {
		t.Errorf("%d fields on the average, and %d are ever set", average, len(seen))
	}
	g.uniform = true
	if made, _ := g.value(s, "", 0).(map[string]any); len(made) != len(properties) {
		t.Errorf("a uniform object has %d fields", len(made))
	}
}
