package rules

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// This file handles inputs that are lists: what is read of their objects, and which fields must be equal.

// isList reports whether a chain is an input that is a list.
func (w *readWalker) isList(c chain) bool {
	if c.root != varInputs || len(c.path) != 1 || c.object || c.closed {
		return false
	}
	_, ok := w.lists[c.path[0]]
	return ok
}

// objects returns the chain of an object if the expression is a list input, or a filter of one, and walks what finding
// the list reads. For any other expression it returns nil and walks nothing.
func (w *readWalker) objects(e ast.Expr) *chain {
	if list, ok := w.chain(e); ok && w.isList(list) {
		// every list has it
		w.found[varInputs] = append(w.found[varInputs], append(slices.Clip(list.path), "metadata", "name"))
		list.object = true
		return &list
	}
	if e.Kind() != ast.ComprehensionKind {
		return nil
	}
	c := e.AsComprehension()
	condition, ok := filterOf(c)
	if !ok {
		return nil
	}
	object := w.objects(c.IterRange())
	if object != nil {
		w.inLoop(c, object, func() { w.walk(condition) })
	}
	return object
}

// anyObject is in paths the name of any object of a downstream that has several.
const anyObject = "*"

// isByName reports whether a chain is a downstream with several objects: a map by their names.
func (w *readWalker) isByName(c chain) bool {
	return c.root == varDownstreams && len(c.path) == 1 && !c.closed && w.several[c.path[0]]
}

// downstreamNames reports whether an expression is such a downstream, of which only the names of the objects are
// needed, and notes what gives them.
func (w *readWalker) downstreamNames(e ast.Expr) bool {
	c, ok := w.chain(e)
	if !ok || !w.isByName(c) {
		return false
	}
	w.found[varDownstreams] = append(w.found[varDownstreams], append(slices.Clip(c.path), anyObject, "metadata", "name"))
	return true
}

// isLoopKey reports whether an expression is the variable of a comprehension, which reads nothing by itself.
func (w *readWalker) isLoopKey(e ast.Expr) bool {
	if e.Kind() != ast.IdentKind {
		return false
	}
	by := w.shadow[e.AsIdent()]
	return len(by) > 0 && by[len(by)-1] == nil
}

// filterOf returns the condition of the macro filter. Its step is: condition ? result + [variable] : result.
func filterOf(c ast.ComprehensionExpr) (ast.Expr, bool) {
	step := c.LoopStep()
	if c.HasIterVar2() || step.Kind() != ast.CallKind || step.AsCall().FunctionName() != operators.Conditional {
		return nil, false
	}
	args := step.AsCall().Args()
	if args[1].Kind() != ast.CallKind || args[1].AsCall().FunctionName() != operators.Add ||
		!isIdent(args[2], c.AccuVar()) {
		return nil, false
	}
	sum := args[1].AsCall().Args()
	if !isIdent(sum[0], c.AccuVar()) || sum[1].Kind() != ast.ListKind {
		return nil, false
	}
	items := sum[1].AsList().Elements()
	return args[0], len(items) == 1 && isIdent(items[0], c.IterVar())
}

func isIdent(e ast.Expr, name string) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == name }

// Equality is a field of object and a field of self that must be equal for an expression to be true.
type Equality struct{ Object, Self []string }

// Equality returns such a pair of fields that are texts if present, or nil if the expression has none. It is for the
// scope Matching.
func (p *Program) Equality() *Equality { return p.equal }

// equalPaths looks for a field of object == a field of self among the operands of &&.
func equalPaths(tree *ast.AST) *Equality {
	w := &readWalker{checked: tree, shadow: map[string][]*chain{}}
	var find func(e ast.Expr) *Equality
	find = func(e ast.Expr) *Equality {
		if e.Kind() != ast.CallKind {
			return nil
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd:
			for _, arg := range args {
				if found := find(arg); found != nil {
					return found
				}
			}
		case operators.Equals:
			a, ok := w.chain(args[0])
			b, both := w.chain(args[1])
			if !ok || !both || a.closed || b.closed || !mayBeText(tree, args[0]) || !mayBeText(tree, args[1]) {
				return nil
			}
			if a.root == varSelf {
				a, b = b, a
			}
			if a.root == varObject && b.root == varSelf {
				return &Equality{Object: a.path, Self: b.path}
			}
		}
		return nil
	}
	return find(tree.Expr())
}

// mayBeText reports whether CEL compares an expression as text if JSON has text there: a timestamp or duration is not
// compared as text.
func mayBeText(tree *ast.AST, e ast.Expr) bool {
	t := tree.GetType(e.ID())
	if t != nil && IsOptional(t) {
		t = t.Parameters()[0]
	}
	return t != nil && (t.IsExactType(types.StringType) || t.IsExactType(types.DynType))
}
