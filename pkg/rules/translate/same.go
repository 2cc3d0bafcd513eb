package translate

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/debug"
	"github.com/google/cel-go/common/operators"
)

// same reports whether two expressions without expanded macros are the same, apart from the nesting of && or ||.
func same(a, b ast.Expr) bool {
	f := ast.NewExprFactory()
	return debug.ToDebugString(chained(f, a)) == debug.ToDebugString(chained(f, b))
}

// chained returns a copy of an expression in which every chain of && or || nests to the left.
func chained(f ast.ExprFactory, e ast.Expr) ast.Expr {
	switch e.Kind() {
	case ast.SelectKind:
		return f.NewSelect(0, chained(f, e.AsSelect().Operand()), e.AsSelect().FieldName())
	case ast.CallKind:
		return chainedCall(f, e.AsCall())
	case ast.ListKind:
		return f.NewList(0, chainedAll(f, e.AsList().Elements()), e.AsList().OptionalIndices())
	case ast.MapKind:
		var entries []ast.EntryExpr
		for _, entry := range e.AsMap().Entries() {
			m := entry.AsMapEntry()
			entries = append(entries, f.NewMapEntry(0, chained(f, m.Key()), chained(f, m.Value()), m.IsOptional()))
		}
		return f.NewMap(0, entries)
	case ast.StructKind:
		var fields []ast.EntryExpr
		for _, field := range e.AsStruct().Fields() {
			s := field.AsStructField()
			fields = append(fields, f.NewStructField(0, s.Name(), chained(f, s.Value()), s.IsOptional()))
		}
		return f.NewStruct(0, e.AsStruct().TypeName(), fields)
	}
	return e
}

func chainedCall(f ast.ExprFactory, call ast.CallExpr) ast.Expr {
	name := call.FunctionName()
	if name == operators.LogicalAnd || name == operators.LogicalOr {
		all := links(name, call.Args())
		made := chained(f, all[0])
		for _, next := range all[1:] {
			made = f.NewCall(0, name, made, chained(f, next))
		}
		return made
	}
	if call.IsMemberFunction() {
		return f.NewMemberCall(0, name, chained(f, call.Target()), chainedAll(f, call.Args())...)
	}
	return f.NewCall(0, name, chainedAll(f, call.Args())...)
}

func chainedAll(f ast.ExprFactory, list []ast.Expr) []ast.Expr {
	made := make([]ast.Expr, len(list))
	for i, e := range list {
		made[i] = chained(f, e)
	}
	return made
}

// links returns the operands of a chain of one operator.
func links(name string, args []ast.Expr) (all []ast.Expr) {
	for _, arg := range args {
		if arg.Kind() == ast.CallKind && arg.AsCall().FunctionName() == name {
			all = append(all, links(name, arg.AsCall().Args())...)
			continue
		}
		all = append(all, arg)
	}
	return all
}
