package translate

import (
	"regexp"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// selectKind is a way to select a field.
type selectKind int

const (
	plainSelect    selectKind = iota // a.b
	optionalSelect                   // a.?b
	presence                         // has(a.b)
)

// simple matches names that a selection can use without escaping, including keywords of CEL.
var simple = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// selection translates the selection of a field.
func (w *rewriter) selection(operand ast.Expr, name string, how selectKind, names bindings) piece {
	p := w.expression(operand, names)
	if p.constant {
		return w.constantField(p, name, how)
	}
	if !w.dialect.Plain {
		return piece{e: w.selected(w.expr(p), []string{name}, true, how)}
	}
	t, optional := w.operandType(operand)
	candidates, escaped := keys(t, name)
	field := p.at.Field(candidates[len(candidates)-1])
	if field != nil && field.Nullable() && p.at.Fields != nil {
		return w.nullable(w.expr(p), candidates[0], field, how, optional)
	}
	made := piece{e: w.selected(w.expr(p), candidates, !escaped, how), at: field}
	if how == presence {
		return piece{e: made.e}
	}
	optional = optional || how == optionalSelect
	if escaped && optional {
		made.e = w.withDynValue(made.e, t)
	}
	return w.converted(made, optional)
}

// operandType returns the type of the operand of a selection, and whether it is optional.
func (w *rewriter) operandType(operand ast.Expr) (t *types.Type, optional bool) {
	t = w.checked.GetType(operand.ID())
	switch {
	case t == nil:
		return types.DynType, false
	case rules.IsOptional(t):
		return t.Parameters()[0], true
	}
	return t, false
}

// keys returns the keys in an object for a name in an expression, and whether the name is escaped: without a schema,
// both the escaped and the unescaped name are possible.
func keys(t *types.Type, name string) (names []string, escaped bool) {
	if !strings.Contains(name, "__") || t.Kind() == types.MapKind {
		return []string{name}, false
	}
	unescaped, ok := apiservercel.Unescape(name)
	switch {
	case !ok || unescaped == name:
		return []string{name}, false
	case t.Kind() == types.StructKind:
		return []string{unescaped}, true
	}
	return []string{name, unescaped}, true
}

// selected returns the selection of the first key that exists: as a field if the name needs no escaping, otherwise by
// index.
func (w *rewriter) selected(operand ast.Expr, names []string, field bool, how selectKind) ast.Expr {
	name := names[0]
	if field && simple.MatchString(name) {
		switch how {
		case plainSelect:
			return w.factory.NewSelect(0, operand, name)
		case optionalSelect:
			return w.factory.NewCall(0, operators.OptSelect, operand, w.text(name))
		}
		return w.factory.NewCall(0, "has", w.factory.NewSelect(0, operand, name))
	}
	if how == plainSelect {
		return w.indexed(operand, names)
	}
	made := w.optIndex(operand, name)
	for _, other := range names[1:] {
		made = w.factory.NewMemberCall(0, "or", made, w.optIndex(operand, other))
	}
	return w.unwrapped(made, how)
}

// indexed returns the member of the first key that exists, else of the last one. If the operand is an optional, the
// result is an optional too.
func (w *rewriter) indexed(operand ast.Expr, names []string) ast.Expr {
	made := w.factory.NewCall(0, operators.Index, operand, w.text(names[0]))
	if len(names) == 1 {
		return made
	}
	there := w.factory.NewMemberCall(0, "hasValue", w.optIndex(operand, names[0]))
	return w.factory.NewCall(0, operators.Conditional, there, made, w.indexed(operand, names[1:]))
}

func (w *rewriter) optIndex(operand ast.Expr, name string) ast.Expr {
	return w.factory.NewCall(0, operators.OptIndex, operand, w.text(name))
}

// unwrapped converts an optional to the result of the selection.
func (w *rewriter) unwrapped(optional ast.Expr, how selectKind) ast.Expr {
	switch how {
	case plainSelect:
		return w.factory.NewMemberCall(0, "value", optional)
	case presence:
		return w.factory.NewMemberCall(0, "hasValue", optional)
	}
	return optional
}

// nullable returns the selection of a field that may be null, which counts as absent if the schema is known:
// a[?"b"].optFlatMap(v, dyn(v) == null ? optional.none() : optional.of(dyn(v))).
func (w *rewriter) nullable(operand ast.Expr, name string, field *schema.Node, how selectKind, within bool) piece {
	if within && how == plainSelect {
		how = optionalSelect
	}
	v := w.factory.NewIdent(0, "v")
	value := w.dyn(v) // otherwise its type would be the one of null
	optional := w.factory.NewIdent(0, "optional")
	given := w.factory.NewCall(0, operators.Conditional,
		w.factory.NewCall(0, operators.Equals, value, w.factory.NewLiteral(0, types.NullValue)),
		w.factory.NewMemberCall(0, "none", optional), w.factory.NewMemberCall(0, "of", optional, value))
	made := piece{e: w.factory.NewMemberCall(0, "optFlatMap", w.optIndex(operand, name), v, given), at: field}
	if how == presence {
		return piece{e: w.unwrapped(made.e, how)}
	}
	made = w.converted(made, true)
	return piece{e: w.unwrapped(made.e, how), at: made.at}
}

// index translates an index into a list or a map.
func (w *rewriter) index(operator string, args []ast.Expr, names bindings) piece {
	p := w.expression(args[0], names)
	t, optional := w.operandType(args[0])
	if rules.IsText(args[1]) {
		name, how := args[1].AsLiteral().Value().(string), plainSelect
		if operator == operators.OptIndex {
			how = optionalSelect
		}
		if p.constant {
			return w.constantField(p, name, how)
		}
		if either, escaped := keys(t, name); escaped && w.dialect.Plain {
			return piece{e: w.selected(w.expr(p), either, false, how), at: p.at.Element()}
		}
	}
	made := piece{e: w.factory.NewCall(0, operator, w.expr(p), w.wholeValue(args[1], names)), at: p.at.Element()}
	if optional = optional || operator == operators.OptIndex; optional {
		made.e = w.withDynValue(made.e, t)
	}
	return w.converted(made, optional)
}

// withDynValue makes the type of an optional from an index dyn: in plain JSON CEL infers a type for it that int(…),
// string(…) and the like do not accept. If t, the type of the operand, is schema.Unknown, nothing changes.
func (w *rewriter) withDynValue(optional ast.Expr, t *types.Type) ast.Expr {
	if !w.dialect.Plain || t.Kind() == types.DynKind {
		return optional
	}
	v := w.factory.NewIdent(0, "v")
	return w.factory.NewMemberCall(0, "optMap", optional, v, w.dyn(v))
}

// converted converts plain JSON to the type of its schema: a timestamp, a duration, a double.
func (w *rewriter) converted(p piece, optional bool) piece {
	if !w.dialect.Plain || p.at == nil {
		return p
	}
	convert := w.conversion(p.at)
	if convert == nil {
		return p
	}
	if !optional {
		return piece{e: convert(p.e)}
	}
	v := w.factory.NewIdent(0, "v")
	return piece{e: w.factory.NewMemberCall(0, "optMap", p.e, v, convert(v))}
}

// conversion returns the conversion of plain JSON to the type of a schema; nil if they are the same.
func (w *rewriter) conversion(n *schema.Node) func(ast.Expr) ast.Expr {
	call := func(name string) func(ast.Expr) ast.Expr {
		return func(e ast.Expr) ast.Expr { return w.factory.NewCall(0, name, e) }
	}
	switch {
	case !n.Converts():
	case n.Type() == "number":
		return call("double")
	case n.Format() == "duration":
		return call("duration")
	case n.Format() == "date-time":
		return call("timestamp")
	case n.Format() == "date":
		return func(e ast.Expr) ast.Expr {
			return w.factory.NewCall(0, "timestamp", w.factory.NewCall(0, operators.Add, e, w.text("T00:00:00Z")))
		}
	case n.Format() == "byte":
		return func(e ast.Expr) ast.Expr {
			w.fail("reads a field of format byte, and base64 cannot be decoded there")
			return e
		}
	}
	return nil
}

// requireSame fails if a value that is used as a whole differs in plain JSON.
func (w *rewriter) requireSame(p piece) {
	if w.dialect.Plain && p.at != nil && p.at.Differs() {
		w.fail("uses the whole of a value to which its schema gives another meaning (%s): name the fields that matter",
			p.at.Difference())
	}
}
