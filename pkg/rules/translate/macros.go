package translate

import (
	"slices"

	"github.com/google/cel-go/common/ast"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// iterationMacros are the macros that iterate over a list or map, with one variable or with two.
var iterationMacros = []string{"all", "exists", "exists_one", "existsOne", "map", "filter", "sortBy",
	"transformList", "transformMap",
	"transformMapEntry"}

// macro translates the call of a macro, which became an expression.
func (w *rewriter) macro(call ast.CallExpr, expanded ast.Expr, names bindings) piece {
	name, args := call.FunctionName(), call.Args()
	if !call.IsMemberFunction() {
		if name == "has" && len(args) == 1 && args[0].Kind() == ast.SelectKind {
			return w.selection(args[0].AsSelect().Operand(), args[0].AsSelect().FieldName(), presence, names)
		}
		return w.fail("uses the macro %s, which cannot be written out", name)
	}
	if (name == "optMap" || name == "optFlatMap") && len(args) == 2 && args[0].Kind() == ast.IdentKind {
		target := w.expression(call.Target(), names)
		variable, inner := w.bind(args[0].AsIdent(), target.at, names)
		result := w.expression(args[1], inner)
		return piece{e: w.factory.NewMemberCall(0, name, w.expr(target), variable, w.expr(result)), at: result.at}
	}
	if !slices.Contains(iterationMacros, name) {
		return w.fail("uses the macro %s, which cannot be written out", name)
	}
	if expanded.Kind() == ast.ComprehensionKind && expanded.AsComprehension().HasIterVar2() {
		return w.iteration(call, 2, names)
	}
	return w.iteration(call, 1, names)
}

// iteration translates a macro that iterates over a list or map with one or two variables.
func (w *rewriter) iteration(call ast.CallExpr, variables int, names bindings) piece {
	over := w.expression(call.Target(), names)
	made := make([]ast.Expr, 0, len(call.Args()))
	for i, arg := range call.Args()[:variables] {
		if arg.Kind() != ast.IdentKind {
			return w.fail("uses the macro %s in a way that cannot be written out", call.FunctionName())
		}
		var variable ast.Expr
		variable, names = w.bind(arg.AsIdent(), elementOf(over.at, i, variables), names)
		made = append(made, variable)
	}
	var at *schema.Node
	for _, arg := range call.Args()[variables:] {
		p := w.expression(arg, names)
		at = p.at
		if call.FunctionName() != "map" && call.FunctionName() != "transformList" {
			w.requireSame(p)
		}
		made = append(made, w.expr(p))
	}
	result := piece{e: w.factory.NewMemberCall(0, call.FunctionName(), w.expr(over), made...)}
	switch call.FunctionName() {
	case "filter", "sortBy":
		result.at = over.at
	case "map", "transformList":
		result.at = listOf(at)
	}
	return result
}

// elementOf returns the schema of the i-th variable of a macro; nil for indexes and for the keys of a map.
func elementOf(over *schema.Node, i, variables int) *schema.Node {
	switch {
	case over == nil:
		return nil
	case over.Dyn:
		return schema.Unknown
	case i != variables-1:
		return nil
	case over.Item != nil:
		return over.Item
	case variables == 2:
		return over.Values
	}
	return nil
}

// listOf returns the schema of a plain list of items.
func listOf(item *schema.Node) *schema.Node {
	switch {
	case item == nil:
		return nil
	case item.Dyn:
		return schema.Unknown
	}
	return schema.ListOf(item)
}

// bind declares the variable of a macro, under another name if it would hide self or params of the dialect.
func (w *rewriter) bind(name string, at *schema.Node, names bindings) (ast.Expr, bindings) {
	there := name
	for there == w.dialect.Self && there != varSelf || there == w.dialect.Params && there != "" ||
		w.isNameUsed(there, name, names) {
		there += "_"
	}
	return w.factory.NewIdent(0, there), names.with(name, binding{name: there, at: at})
}

// isNameUsed reports whether another variable has that name in the translation.
func (w *rewriter) isNameUsed(there, name string, names bindings) bool {
	for other, b := range names {
		if other != name && b.name == there && !b.global {
			return true
		}
	}
	return false
}
