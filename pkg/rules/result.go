package rules

import (
	"reflect"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// Result returns the schema of the result, or nil if it is unknown before the evaluation. If the types of the objects
// are unknown, it uses the type in the expression: for a.?b.orValue(0) that of 0.
func (p *Program) Result() *spec.Schema { return p.result }

// resultOf returns the schema of an expression's value.
func resultOf(tree *ast.AST, e ast.Expr) *spec.Schema {
	if s := schemaOf(tree.GetType(e.ID())); s != nil {
		return s
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	switch name := call.FunctionName(); {
	case name == operators.Conditional && len(args) == 3:
		return either(resultOf(tree, args[1]), resultOf(tree, args[2]))
	case (name == "orValue" || name == "or" || name == operators.Add) && len(args) == 2:
		// Both operands always have the same type, so either of them decides.
		return either(resultOf(tree, args[0]), resultOf(tree, args[1]))
	}
	return nil
}

// either returns the schema of a value that has one of two schemas; nil means unknown.
func either(a, b *spec.Schema) *spec.Schema {
	switch {
	case a == nil:
		return b
	case b == nil || reflect.DeepEqual(a, b):
		return a
	}
	return nil
}

// schemaOf returns the schema of the JSON values of a CEL type; nil if it can be any value.
func schemaOf(t *types.Type) *spec.Schema {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case types.BoolKind:
		return spec.BooleanProperty()
	case types.IntKind, types.UintKind:
		return spec.Int64Property()
	case types.DoubleKind:
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"number"}}}
	case types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind:
		return spec.StringProperty()
	case types.ListKind:
		return spec.ArrayProperty(orAny(schemaOf(t.Parameters()[0])))
	case types.MapKind:
		return spec.MapProperty(orAny(schemaOf(t.Parameters()[1])))
	case types.StructKind:
		if !strings.HasPrefix(t.TypeName(), schema.TypePrefix) {
			return spec.StringProperty() // a quantity, an address and the like are converted to text
		}
		s := orAny(nil)
		s.Type = []string{"object"}
		return s
	case types.OpaqueKind:
		if IsOptional(t) {
			return schemaOf(t.Parameters()[0])
		}
		return spec.StringProperty()
	}
	return nil
}

// orAny returns s, or a schema for any value if s is nil.
func orAny(s *spec.Schema) *spec.Schema {
	if s != nil {
		return s
	}
	s = &spec.Schema{}
	s.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return s
}
