package rules

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// passing are the functions that pass their arguments on as they are.
var passing = []string{
	operators.Conditional, operators.Index, operators.OptIndex, operators.OptSelect,
	"orValue", "or", "optional.of", "value", "hasValue", "dyn",
	"optional.none", "size",
}

// ComputesFloats reports whether the expression does anything with floating-point numbers, or with values that may be
// such, except to pass them on: then tries alone do not show that a value comes back.
func (p *Program) ComputesFloats() bool { return p.floats }

func computesFloats(tree *ast.AST) (found bool) {
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		isConcatenation := call.FunctionName() == operators.Add && tree.GetType(e.ID()).Kind() == types.ListKind
		if slices.Contains(passing, call.FunctionName()) || isConcatenation {
			return
		}
		args := call.Args()
		if call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
		found = found || hasFloat(tree.GetType(e.ID())) || strings.HasPrefix(call.FunctionName(), "asApproximate") ||
			slices.ContainsFunc(args, func(a ast.Expr) bool { return hasFloat(tree.GetType(a.ID())) })
	}))
	return found
}

// hasFloat reports whether values of a type are floating-point numbers, or have some.
func hasFloat(t *types.Type) bool {
	return t.Kind() == types.DoubleKind || slices.ContainsFunc(t.Parameters(), hasFloat)
}
