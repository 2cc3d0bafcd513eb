package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// undeclared is a field that a template reads and the upstream's schema does not have.
type undeclared struct {
	line    int // of the template, from 1
	problem string
}

// undeclaredFields finds the fields of the upstream that a template reads and that are never there, since an API server
// drops what the schema of a kind does not declare. A misspelt one would only show once something is rendered. Where a
// value comes from a function nothing is known of it, and nothing is found.
func undeclaredFields(p *pipeline.Pipeline, d *pipeline.Downstream) []undeclared {
	left, right := delimitersOf(p)
	text := d.Config.Template
	found := walkShapes(text, left, right, upstreamShape(p.Upstream.Schema)).undeclared
	var list []undeclared
	for _, pos := range slices.Sorted(maps.Keys(found)) {
		u := undeclared{line: 1 + strings.Count(text[:pos], "\n"), problem: found[pos]}
		if !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	return list
}

// lacks says what to write instead of a field that an object of the shape never has; empty where it may have it.
func (s shape) lacks(name string) string {
	if s.schema == nil || len(s.schema.Properties) == 0 || s.schema.AdditionalProperties != nil {
		return ""
	}
	if keeps, _ := s.schema.Extensions.GetBool(preservesUnknown); keeps || len(s.schema.AllOf)+len(s.schema.AnyOf)+len(s.schema.OneOf) > 0 {
		return ""
	}
	if _, declared := s.schema.Properties[name]; declared {
		return ""
	}
	names := slices.Sorted(maps.Keys(s.schema.Properties))
	if near := spelling.Closest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are " + strings.Join(names, ", ")
}
