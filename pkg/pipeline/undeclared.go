package pipeline

import (
	"maps"
	"slices"
	"strings"
	template "text/template/parse"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// undeclared finds the fields of the upstream, inputs, other downstreams and the item that a template reads and that are never
// there, since an API server drops what the schema of a kind does not declare. It refuses those that rendering needs, and warns
// of others. Of what a function gives nothing is known.
func (c *compiler) undeclared(d *Downstream) {
	found := walkShapes(d.Config.Template, c.p.renderOptions(), c.p.rootsOf(d)).undeclared
	for _, pos := range slices.Sorted(maps.Keys(found)) {
		line, _ := d.source.place(int(pos))
		wrong := d.source.problem(line, found[pos].problem, "")
		if found[pos].optional {
			c.warn(wrong)
		} else {
			c.addOnce(&wrong)
		}
	}
}

// undeclaredIn is undeclared for a text of the conventions.
func (c *compiler) undeclaredIn(at, text string) {
	for _, found := range walkShapes(text, c.p.renderOptions(), c.p.rootsOf(&Downstream{})).undeclared {
		if found.optional {
			c.warn(*c.file.Errorf(at, "", "%s", found.problem))
		} else {
			c.failOnce(at, "", "%s", found.problem)
		}
	}
}

// undeclaredField is a field that a schema does not have, or a call that its values never fit.
type undeclaredField struct {
	problem string
	// optional is true if the template may work without it: it has a default, or only decides a condition.
	optional bool
}

// lack records a field that the schema does not have.
func (w *shapeWalk) lack(pos template.Pos, problem string) {
	before, again := w.undeclared[pos]
	w.undeclared[pos] = undeclaredField{problem, w.optional && (!again || before.optional)}
}

// printf records a constant format that the values never fit, such as %d for a text; piped is the last of them if isPiped.
func (w *shapeWalk) printf(cmd *template.CommandNode, isPiped bool, piped, dot shape, vars map[string]shape) {
	if len(cmd.Args) < 2 {
		return
	}
	format, isConstant := cmd.Args[1].(*template.StringNode)
	if !isConstant {
		return
	}
	var types []string
	for _, arg := range cmd.Args[2:] {
		types = append(types, w.node(arg, dot, vars).scalarType())
	}
	if isPiped {
		types = append(types, piped.scalarType())
	}
	if !functions.FitsVerbs(format.Text, types) {
		w.lack(cmd.Pos, "printf "+format.Quoted+" never fits its values ("+strings.Join(types, ", ")+"): use %v, %s for a string, %d for an integer")
	}
}

// scalarType is the schema type of a value that has always the same one; "unknown" of any other.
func (s shape) scalarType() string {
	if types := typesOf(s.schema); len(types) == 1 && !s.schema.Nullable {
		return types[0]
	}
	return s.typed
}

// takesMissing reports whether a call works without a value.
func takesMissing(cmd *template.CommandNode) bool {
	name, isCall := cmd.Args[0].(*template.IdentifierNode)
	return isCall && name.Ident != "include" && functions.TakesNull(name.Ident)
}

// isConstant reports whether a call gives nothing but what the config's author has written. piped is what comes down the pipe.
func (w *shapeWalk) isConstant(cmd *template.CommandNode, isPiped bool, piped, dot shape, vars map[string]shape) bool {
	args := cmd.Args[1:]
	switch cmd.Args[0].(*template.IdentifierNode).Ident {
	case "param":
		return true
	case "input", "downstream", "variable", "include", nameOfItem:
		return false
	case "index", "get": // a field may choose the part
		if len(args) > 0 {
			args, isPiped = args[:1], false
		}
	}
	return (!isPiped || piped.constant) && !slices.ContainsFunc(args, func(n template.Node) bool { return !w.node(n, dot, vars).constant })
}

// lacks says what to write instead of a field that an object of the shape never has; empty if it may have it.
func (s shape) lacks(name string) string {
	if s.schema != nil && isScalar(s.schema) {
		return describeScalar(s.schema) + " has no fields"
	}
	if s.schema == nil || len(s.schema.Properties) == 0 || s.schema.AdditionalProperties != nil {
		return ""
	}
	if keeps, _ := s.schema.Extensions.GetBool(preservesUnknown); keeps || len(s.schema.AllOf)+len(s.schema.AnyOf)+len(s.schema.OneOf) > 0 {
		return ""
	}
	if embedded, _ := s.schema.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded && slices.Contains(ofEveryKind[:3], name) {
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

func describeScalar(s *spec.Schema) string {
	switch {
	case len(s.Type) != 1:
		return "an integer or string"
	case s.Type[0] == "integer":
		return "an integer"
	}
	return "a " + s.Type[0]
}
