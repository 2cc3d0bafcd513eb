package desired

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/rules"
)

// InputView says what of an input is kept: what anything in the config reads of it. Equal views share a watch.
type InputView struct {
	// Paths are chains of fields, each kept with everything below it.
	Paths [][]string
	// Whole: all of the object is kept.
	Whole bool
	// Matching is what is kept apart for list.matching; nil where the input is not a list.
	Matching *MatchingView
}

// ID is the same for equal views.
func (v InputView) ID() string {
	id := "whole"
	if !v.Whole {
		id = pathsID(v.Paths)
	}
	if m := v.Matching; m != nil {
		id += "\x02" + pathsID(m.Paths) + "\x02" + pathsID([][]string{m.Key})
	}
	return id
}

func pathsID(paths [][]string) string {
	lines := make([]string, len(paths))
	for i, path := range paths {
		lines[i] = strings.Join(path, "\x00")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\x01")
}

// Cut returns what of an input can be read, sharing its values with obj. The version and the managed fields are not
// among it: they change without a change of what the object says.
func (v InputView) Cut(obj map[string]any) map[string]any {
	if v.Whole {
		return readable(obj)
	}
	return rules.Prune(readable(obj), v.Paths)
}

// readable is an object without what cannot be read of it.
func readable(obj map[string]any) map[string]any {
	out := maps.Clone(obj)
	if meta, ok := obj["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(meta))
		for key, value := range meta {
			if key != "resourceVersion" && key != "managedFields" {
				kept[key] = value
			}
		}
		out["metadata"] = kept
	}
	return out
}

// Add takes in what one more reader reads.
func (v *InputView) Add(paths [][]string, whole bool) {
	v.Whole = v.Whole || whole
	v.Paths = append(v.Paths, paths...)
}

// MatchingView is what list.matching reads of an object. It is kept apart, unpacked, since it is asked about each
// upstream.
type MatchingView struct {
	Paths [][]string
	Whole bool
	// Key is the field that must equal one of the upstream; nil if the expression names none.
	Key []string
}

// Match is what list.matching reads of an object.
type Match struct {
	// Key is the text in the field that must equal one of the upstream; empty if there is none: only the expression says
	// then.
	Key    string
	object map[string]any
}

// Match cuts an object down to what list.matching reads, sharing its values with obj.
func (v InputView) Match(obj map[string]any) Match {
	m := v.Matching
	if m == nil {
		return Match{}
	}
	if obj = readable(obj); !m.Whole {
		obj = rules.Prune(obj, m.Paths)
	}
	return Match{Key: keyAt(obj, m.Key), object: obj}
}

// keyAt is the text in a field; empty if there is none, or if the field is not named.
func keyAt(obj map[string]any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	text, _, err := unstructured.NestedString(obj, path...)
	if err != nil {
		return ""
	}
	return text
}
