package rules

import (
	"regexp"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// selecting is a way of selecting a field.
type selecting int

const (
	plainSelect    selecting = iota // a.b
	optionalSelect                  // a.?b
	presence                        // has(a.b)
)

// simple are names that a selection can have as they are, also those that are words of CEL.
var simple = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// selection writes the selection of a field.
func (w *rewriter) selection(operand ast.Expr, name string, how selecting, names bindings) piece {
	p := w.expression(operand, names)
	if p.constant {
		return w.constantField(p, name, how)
	}
	if !w.dialect.Plain {
		return piece{e: w.selected(w.expr(p), []string{name}, true, how)}
	}
	t, optional := w.operandType(operand)
	candidates, escaped := keys(t, name)
	field := p.at.field(candidates[len(candidates)-1])
	if field != nil && field.nullable() && p.at.properties != nil {
		return w.nullable(w.expr(p), candidates[0], field, how, optional)
	}
	made := piece{e: w.selected(w.expr(p), candidates, !escaped, how), at: field}
	if how == presence {
		return piece{e: made.e}
	}
	optional = optional || how == optionalSelect
	if escaped && optional {
		made.e = w.retyped(made.e, t)
	}
	return w.converted(made, optional)
}

// operandType is the checked type of what is selected from, and whether that is optional.
func (w *rewriter) operandType(operand ast.Expr) (t *types.Type, optional bool) {
	t = w.checked.GetType(operand.ID())
	switch {
	case t == nil:
		return types.DynType, false
	case isOptional(t):
		return t.Parameters()[0], true
	}
	return t, false
}

// keys are the names under which an object may have what an expression calls by a name, and whether it is an escaped one:
// where no schema tells an object from a map, it may be either.
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

// selected is the selection of the first of the names that is there. As a field where the name is as it was written; else
// by index, which takes any name.
func (w *rewriter) selected(operand ast.Expr, names []string, field bool, how selecting) ast.Expr {
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

// indexed is the member of the first name that is there, else of the last: it may be an optional that is looked into, of
// which the result is one too.
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

// unwrapped makes of an optional what the selection gives.
func (w *rewriter) unwrapped(optional ast.Expr, how selecting) ast.Expr {
	switch how {
	case plainSelect:
		return w.factory.NewMemberCall(0, "value", optional)
	case presence:
		return w.factory.NewMemberCall(0, "hasValue", optional)
	}
	return optional
}

// nullable is the selection of a field that may be null, which counts as absent where the schema is known:
// a[?"b"].optFlatMap(v, dyn(v) == null ? optional.none() : optional.of(dyn(v))).
func (w *rewriter) nullable(operand ast.Expr, name string, field *node, how selecting, within bool) piece {
	if within && how == plainSelect {
		how = optionalSelect
	}
	v := w.factory.NewIdent(0, "v")
	value := w.dyn(v) // else its type would be that of null
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

// index writes an index, of a list or of a map.
func (w *rewriter) index(operator string, args []ast.Expr, names bindings) piece {
	p := w.expression(args[0], names)
	t, optional := w.operandType(args[0])
	if isText(args[1]) {
		name, how := args[1].AsLiteral().Value().(string), plainSelect
		if operator == operators.OptIndex {
			how = optionalSelect
		}
		if p.constant {
			return w.constantField(p, name, how)
		}
		if either, escaped := keys(t, name); escaped && w.dialect.Plain {
			return piece{e: w.selected(w.expr(p), either, false, how), at: p.at.element()}
		}
	}
	made := piece{e: w.factory.NewCall(0, operator, w.expr(p), w.whole(args[1], names)), at: p.at.element()}
	if optional = optional || operator == operators.OptIndex; optional {
		made.e = w.retyped(made.e, t)
	}
	return w.converted(made, optional)
}

// retyped lets the value in an optional that an index has given be of any type: of what has no type, as everything there,
// CEL takes it for one of a type that int(…), string(…) and the like do not take. Where t, the type of what is looked into,
// is not known here either, it is the same here.
func (w *rewriter) retyped(optional ast.Expr, t *types.Type) ast.Expr {
	if !w.dialect.Plain || t.Kind() == types.DynKind {
		return optional
	}
	v := w.factory.NewIdent(0, "v")
	return w.factory.NewMemberCall(0, "optMap", optional, v, w.dyn(v))
}

// converted makes of a plain value what its schema says it is: a time, a duration, a fraction.
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

// conversion is what makes a value of a schema's type of its JSON; nil if they are the same.
func (w *rewriter) conversion(n *node) func(ast.Expr) ast.Expr {
	call := func(name string) func(ast.Expr) ast.Expr {
		return func(e ast.Expr) ast.Expr { return w.factory.NewCall(0, name, e) }
	}
	switch {
	case !n.converts():
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

// demandSame makes sure that a value which is used as a whole is the same there.
func (w *rewriter) demandSame(p piece) {
	if w.dialect.Plain && p.at != nil && p.at.differs() {
		w.fail("uses the whole of a value to which its schema gives another meaning (%s): name the fields that matter", p.at.difference())
	}
}
