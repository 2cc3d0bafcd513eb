package rules

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Items compiles an expression for a list or a map, and declares its items for the expressions of a downstream that are
// compiled later: item is an item of the list, or {key, value} of the map. It returns a *CompileError.
func (e *Env) Items(expr, downstream string) (*Program, error) {
	p, err := e.compile(expr, Sibling, "", wantItems)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.items[downstream] = unknown; err != nil {
		return nil, err
	}
	e.items[downstream] = p.items
	return p, nil
}

// itemsOf returns the node of the items of an expression's value.
func (s *scope) itemsOf(tree *ast.AST, e ast.Expr) *node {
	n := s.nodeOf(tree, e)
	switch {
	case n.items != nil:
		return n.items
	case n.values != nil:
		return entryOf(n.values)
	}
	if s := schemaOf(tree.GetType(e.ID())); s != nil && n.dyn {
		switch n = newNode(s, false); {
		case n.items != nil:
			return n.items
		case n.values != nil:
			return entryOf(n.values)
		}
	}
	return unknown
}

// valueNode returns the node of an expression's value.
func (s *scope) valueNode(tree *ast.AST, e ast.Expr, result *spec.Schema) *node {
	if n := s.nodeOf(tree, e); n != unknown || result == nil {
		return n
	}
	return newNode(result, false)
}

// nodeOf returns the node of an expression that selects fields of the upstream; unknown for any other.
func (s *scope) nodeOf(tree *ast.AST, e ast.Expr) *node {
	switch e.Kind() {
	case ast.IdentKind:
		return s.nodeOfVariable(e.AsIdent())
	case ast.SelectKind:
		return s.nodeOf(tree, e.AsSelect().Operand()).property(e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case name == operators.OptSelect && isText(call.Args()[1]):
			return s.nodeOf(tree, call.Args()[0]).property(call.Args()[1].AsLiteral().Value().(string))
		case name == operators.Index && !isText(call.Args()[1]):
			if n := s.nodeOf(tree, call.Args()[0]); n.items != nil {
				return n.items
			}
		case name == "orValue" && call.IsMemberFunction():
			return s.nodeOf(tree, call.Target())
		}
	case ast.ComprehensionKind: // only the macro filter returns a list or map of the items that it iterates over
		c := e.AsComprehension()
		if over, of := tree.GetType(c.IterRange().ID()), tree.GetType(e.ID()); of.Kind() == types.ListKind && over.IsExactType(of) {
			return s.nodeOf(tree, c.IterRange())
		}
	}
	return unknown
}

func (s *scope) nodeOfVariable(name string) *node {
	switch {
	case name == varSelf:
		return s.self
	case name == varVariables && s.variableNode != nil:
		return s.variableNode
	}
	return unknown
}

// property returns the node of a property by its escaped name; unknown if there is none.
func (n *node) property(escaped string) *node {
	name, ok := unescape(escaped)
	if property := n.properties[name]; ok && property != nil {
		return property
	}
	return unknown
}

// entryOf returns the node of an entry of a map whose values have the given node.
func entryOf(values *node) *node {
	key := &node{Schema: openapi.Schema{Schema: spec.StringProperty()}}
	object := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"key": *key.Schema.Schema, "value": *schemaOfNode(values)}}}
	n := &node{Schema: openapi.Schema{Schema: object}, properties: map[string]*node{"key": key, "value": values}}
	n.seal()
	return n
}

// schemaOfNode returns the schema of a node; for an unknown one it allows anything.
func schemaOfNode(n *node) *spec.Schema {
	if n == unknown || n.Schema.Schema == nil {
		return &spec.Schema{}
	}
	return n.Schema.Schema
}

// Schema returns the schema of the items if the program was compiled by Items, or of the value if it was compiled by Variable;
// nil if unknown.
func (p *Program) Schema() *spec.Schema {
	if p.items == nil || p.items == unknown {
		return nil
	}
	return p.items.Schema.Schema
}

// mapOf returns the node of a map whose values have the given node.
func mapOf(values *node) *node {
	return &node{Schema: openapi.Schema{Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}}, values: values,
		mixed: values.mixed}
}
