package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// undeclared warns of the fields of the upstream, inputs, other downstreams and the item that a template reads and that are never there, since an API server drops
// describe the schema of a kind does not declare. A misspelt one would only show once something is rendered. Where a value comes
// from a function nothing is known of it, and nothing is found.
func (c *compiler) undeclared(d *Downstream) {
	found := walkShapes(d.Config.Template, c.p.renderOptions(), c.p.rootsOf(d)).undeclared
	for _, pos := range slices.Sorted(maps.Keys(found)) {
		line, _ := d.source.place(int(pos))
		c.warn(d.source.problem(line, found[pos], ""))
	}
}

// lacks says what to write instead of a field that an object of the shape never has; empty if it may have it.
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
