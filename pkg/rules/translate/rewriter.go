package translate

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// rewriter translates a checked expression. It works on the original, and does not expand macros.
type rewriter struct {
	dialect Dialect
	checked *ast.AST
	factory ast.ExprFactory
	err     error // the first one; what is made after it is invalid
}

// piece is a translated expression.
type piece struct {
	e ast.Expr
	// at is the schema of a read of self as plain JSON; nil for any other expression.
	at *schema.Node
	// value is the value of params that becomes a literal, and constant means that it is known. e is nil then.
	value    any
	constant bool
}

// binding is the meaning of a name.
type binding struct {
	name   string // in the translation
	at     *schema.Node
	params bool // it is the variable params
	global bool // not a variable of a macro
}

type bindings map[string]binding

// with returns b with one more name.
func (b bindings) with(name string, to binding) bindings {
	more := make(bindings, len(b)+1)
	for k, v := range b {
		more[k] = v
	}
	more[name] = to
	return more
}

func (w *rewriter) fail(format string, args ...any) piece {
	if w.err == nil {
		w.err = untranslatable(format, args...)
	}
	return piece{e: w.factory.NewLiteral(0, types.NullValue)}
}

// expr returns the expression of a piece.
func (w *rewriter) expr(p piece) ast.Expr {
	if p.e == nil {
		return w.literal(p.value)
	}
	return p.e
}

// text returns a string literal.
func (w *rewriter) text(s string) ast.Expr { return w.factory.NewLiteral(0, types.String(s)) }

// expression translates any expression.
func (w *rewriter) expression(e ast.Expr, names bindings) piece {
	if call, ok := w.checked.SourceInfo().GetMacroCall(e.ID()); ok {
		return w.macro(call.AsCall(), e, names)
	}
	switch e.Kind() {
	case ast.IdentKind:
		return w.identifier(e.AsIdent(), names)
	case ast.LiteralKind:
		return piece{e: w.factory.NewLiteral(0, e.AsLiteral())}
	case ast.SelectKind:
		return w.selection(e.AsSelect().Operand(), e.AsSelect().FieldName(), plainSelect, names)
	case ast.CallKind:
		return w.call(e.AsCall(), names)
	case ast.ListKind:
		return piece{e: w.factory.NewList(0, w.wholes(e.AsList().Elements(), names), e.AsList().OptionalIndices())}
	case ast.MapKind:
		return piece{e: w.factory.NewMap(0, w.entries(e.AsMap().Entries(), names))}
	case ast.StructKind:
		return piece{e: w.factory.NewStruct(0, e.AsStruct().TypeName(), w.fields(e.AsStruct().Fields(), names))}
	}
	return w.fail("has a part that cannot be written out")
}

func (w *rewriter) identifier(name string, names bindings) piece {
	plain, absolute := strings.CutPrefix(name, ".") // .self is the variable even if a macro's variable hides it
	to, bound := names[plain]
	switch {
	case absolute && bound && !to.global:
		return w.fail("names %s past a macro's variable of that name: give that another one", plain)
	case !bound && plain == varInputs:
		return w.fail("reads inputs")
	case !bound:
		return piece{e: w.factory.NewIdent(0, name)}
	case to.params && w.dialect.Params == "":
		return piece{value: w.dialect.Values, constant: true, at: schema.Unknown}
	case to.params:
		return piece{e: w.factory.NewSelect(0, w.factory.NewIdent(0, w.dialect.Params), varParams), at: schema.Unknown}
	}
	return w.converted(piece{e: w.factory.NewIdent(0, to.name), at: to.at}, false)
}

// call translates operators and functions.
func (w *rewriter) call(call ast.CallExpr, names bindings) piece {
	name, args := call.FunctionName(), call.Args()
	switch name {
	case operators.OptSelect:
		return w.selection(args[0], args[1].AsLiteral().Value().(string), optionalSelect, names)
	case operators.Index, operators.OptIndex:
		return w.index(name, args, names)
	case operators.Conditional:
		a, b := w.expression(args[1], names), w.expression(args[2], names)
		return piece{e: w.factory.NewCall(0, name, w.wholeValue(args[0], names), w.expr(a),
			w.expr(b)), at: eitherNode(a.at, b.at)}
	case operators.In:
		return w.inOperator(args, names)
	}
	if call.IsMemberFunction() {
		return w.member(call, names)
	}
	if slices.Contains(identityFunctions, name) && len(args) == 1 {
		p := w.expression(args[0], names)
		return piece{e: w.factory.NewCall(0, name, w.expr(p)), at: p.at}
	}
	if name == "size" {
		return piece{e: w.factory.NewCall(0, name, w.expr(w.expression(args[0], names)))}
	}
	return piece{e: w.factory.NewCall(0, name, w.wholes(args, names)...)}
}

// inOperator translates the operator in.
func (w *rewriter) inOperator(args []ast.Expr, names bindings) piece {
	item, within := w.wholeValue(args[0], names), w.expression(args[1], names)
	if within.at != nil && within.at.Item != nil {
		w.requireSame(piece{at: within.at.Item})
	}
	asked := func(item ast.Expr) ast.Expr { return w.factory.NewCall(0, operators.In, item, w.expr(within)) }
	if t, _ := w.operandType(args[1]); rules.IsText(args[0]) && w.dialect.Plain {
		if either, _ := keys(t, args[0].AsLiteral().Value().(string)); len(either) > 1 {
			return piece{e: w.factory.NewCall(0, operators.LogicalOr, asked(item), asked(w.text(either[1])))}
		}
	}
	return piece{e: asked(item)}
}

// identityFunctions and throughMembers return their argument.
var (
	identityFunctions = []string{"dyn", "optional.of", "optional.ofNonZeroValue"}
	identityMembers   = []string{"orValue", "or", "value"}
)

// member translates a call with a target.
func (w *rewriter) member(call ast.CallExpr, names bindings) piece {
	name := call.FunctionName()
	if slices.Contains(identityFunctions, "optional."+name) || name == "none" {
		if target := call.Target(); target.Kind() == ast.IdentKind &&
			target.AsIdent() == "optional" && len(call.Args()) <= 1 {
			at := (*schema.Node)(nil)
			var args []ast.Expr
			for _, arg := range call.Args() {
				p := w.expression(arg, names)
				args, at = append(args, w.expr(p)), p.at
			}
			return piece{e: w.factory.NewMemberCall(0, name, w.factory.NewIdent(0, "optional"), args...), at: at}
		}
	}
	target := w.expression(call.Target(), names)
	switch {
	case slices.Contains(identityMembers, name):
		at := target.at
		var args []ast.Expr
		for _, arg := range call.Args() {
			p := w.expression(arg, names)
			args, at = append(args, w.expr(p)), eitherNode(at, p.at)
		}
		return piece{e: w.factory.NewMemberCall(0, name, w.expr(target), args...), at: at}
	case name == "size" || name == "hasValue":
		return piece{e: w.factory.NewMemberCall(0, name, w.expr(target))}
	}
	w.requireSame(target)
	return piece{e: w.factory.NewMemberCall(0, name, w.expr(target), w.wholes(call.Args(), names)...)}
}

// wholeValue translates an expression whose value is used as a whole.
func (w *rewriter) wholeValue(e ast.Expr, names bindings) ast.Expr {
	p := w.expression(e, names)
	w.requireSame(p)
	return w.expr(p)
}

func (w *rewriter) wholes(list []ast.Expr, names bindings) []ast.Expr {
	made := make([]ast.Expr, len(list))
	for i, e := range list {
		made[i] = w.wholeValue(e, names)
	}
	return made
}

func (w *rewriter) entries(list []ast.EntryExpr, names bindings) []ast.EntryExpr {
	made := make([]ast.EntryExpr, len(list))
	for i, e := range list {
		entry := e.AsMapEntry()
		made[i] = w.factory.NewMapEntry(0, w.wholeValue(entry.Key(), names),
			w.wholeValue(entry.Value(), names), entry.IsOptional())
	}
	return made
}

func (w *rewriter) fields(list []ast.EntryExpr, names bindings) []ast.EntryExpr {
	made := make([]ast.EntryExpr, len(list))
	for i, e := range list {
		field := e.AsStructField()
		made[i] = w.factory.NewStructField(0, field.Name(), w.wholeValue(field.Value(), names), field.IsOptional())
	}
	return made
}

func eitherNode(a, b *schema.Node) *schema.Node {
	if a == nil {
		return b
	}
	return a
}
