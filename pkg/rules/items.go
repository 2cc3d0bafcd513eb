package rules

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// Items compiles an expression for a list or a map, and declares its items for the expressions of a downstream that are
// compiled later: item is an item of the list, or {key, value} of the map. It returns a *CompileError.
func (e *Env) Items(expr, downstream string) (*Program, error) {
	p, err := e.compile(expr, Sibling, "", wantItems)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.items[downstream] = schema.Unknown; err != nil {
		return nil, err
	}
	e.items[downstream] = p.items
	return p, nil
}

// itemsOf returns the node of the items of an expression's value.
func (s *scope) itemsOf(tree *ast.AST, e ast.Expr) *schema.Node {
	n := s.nodeOf(tree, e)
	switch {
	case n.Item != nil:
		return n.Item
	case n.Values != nil:
		return schema.EntryOf(n.Values)
	}
	if s := schemaOf(tree.GetType(e.ID())); s != nil && n.Dyn {
		switch n = schema.New(s, false); {
		case n.Item != nil:
			return n.Item
		case n.Values != nil:
			return schema.EntryOf(n.Values)
		}
	}
	return schema.Unknown
}

// valueNode returns the node of an expression's value.
func (s *scope) valueNode(tree *ast.AST, e ast.Expr, result *spec.Schema) *schema.Node {
	if n := s.nodeOf(tree, e); n != schema.Unknown || result == nil {
		return n
	}
	return schema.New(result, false)
}

// nodeOf returns the node of an expression that selects fields of the upstream; unknown for any other.
func (s *scope) nodeOf(tree *ast.AST, e ast.Expr) *schema.Node {
	switch e.Kind() {
	case ast.IdentKind:
		return s.nodeOfVariable(e.AsIdent())
	case ast.SelectKind:
		return s.nodeOf(tree, e.AsSelect().Operand()).Property(e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case name == operators.OptSelect && IsText(call.Args()[1]):
			return s.nodeOf(tree, call.Args()[0]).Property(call.Args()[1].AsLiteral().Value().(string))
		case name == operators.Index && !IsText(call.Args()[1]):
			if n := s.nodeOf(tree, call.Args()[0]); n.Item != nil {
				return n.Item
			}
		case name == "orValue" && call.IsMemberFunction():
			return s.nodeOf(tree, call.Target())
		}
	case ast.ComprehensionKind: // only the macro filter returns a list or map of the items that it iterates over
		c := e.AsComprehension()
		if over, item := tree.GetType(c.IterRange().ID()), tree.GetType(e.ID()); item.Kind() == types.ListKind &&
			over.IsExactType(item) {
			return s.nodeOf(tree, c.IterRange())
		}
	}
	return schema.Unknown
}

func (s *scope) nodeOfVariable(name string) *schema.Node {
	switch {
	case name == varSelf:
		return s.self
	case name == varVariables && s.variableNode != nil:
		return s.variableNode
	}
	return schema.Unknown
}

// Schema returns the schema of the items if the program was compiled by Items, or of the value if it was compiled by
// Variable; nil if unknown.
func (p *Program) Schema() *spec.Schema {
	if p.items == nil || p.items == schema.Unknown {
		return nil
	}
	return p.items.Schema.Schema
}
