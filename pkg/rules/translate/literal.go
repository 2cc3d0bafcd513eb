package translate

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// Literal returns a JSON value as a CEL expression of unknown type, like params.
func Literal(value any) (string, error) {
	w := &rewriter{factory: ast.NewExprFactory()}
	e := w.literal(value)
	if e.Kind() != ast.CallKind {
		e = w.dyn(e)
	}
	if w.err != nil {
		return "", w.err
	}
	return textOf(e)
}

func (w *rewriter) dyn(e ast.Expr) ast.Expr { return w.factory.NewCall(0, "dyn", e) }

// literal returns a JSON value as an expression. In Kubernetes' CEL the members of a list or map must have one type: if
// they do not, each is converted to dyn.
func (w *rewriter) literal(value any) ast.Expr {
	switch v := value.(type) {
	case nil:
		return w.factory.NewLiteral(0, types.NullValue)
	case bool:
		return w.factory.NewLiteral(0, types.Bool(v))
	case string:
		return w.text(v)
	case int64:
		return w.factory.NewLiteral(0, types.Int(v))
	case int:
		return w.factory.NewLiteral(0, types.Int(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			w.fail("uses a param that is not a JSON number")
		}
		return w.factory.NewLiteral(0, types.Double(v))
	case []any:
		return w.list(v)
	case map[string]any:
		entries := make([]ast.EntryExpr, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			entries = append(entries, w.factory.NewMapEntry(0, w.text(key), w.part(v[key]), false))
		}
		return w.dyn(w.factory.NewMap(0, entries))
	}
	w.fail("uses a param of type %T", value)
	return w.text("")
}

// list returns a list. If the items are scalars of one type it is a plain literal, so that cost estimates know its
// size.
func (w *rewriter) list(list []any) ast.Expr {
	items, plain := make([]ast.Expr, len(list)), len(list) > 0
	for i, item := range list {
		items[i] = w.literal(item)
		plain = plain && items[i].Kind() == ast.LiteralKind && reflect.TypeOf(item) == reflect.TypeOf(list[0])
	}
	if plain {
		return w.factory.NewList(0, items, nil)
	}
	for i, item := range list {
		items[i] = w.part(item)
	}
	return w.dyn(w.factory.NewList(0, items, nil))
}

// part returns a member of a list or map.
func (w *rewriter) part(value any) ast.Expr {
	e := w.literal(value)
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "dyn" {
		return e
	}
	return w.dyn(e)
}

// constantField selects a field of a value that becomes a literal.
func (w *rewriter) constantField(p piece, name string, how selectKind) piece {
	members, isMap := p.value.(map[string]any)
	value, found := members[name]
	if unescaped, ok := apiservercel.Unescape(name); !found && ok {
		value, found = members[unescaped]
	}
	switch {
	case !isMap, !found && how == plainSelect:
		return w.fail("selects %s of a param that has no such field", name)
	case how == presence:
		return piece{e: w.factory.NewLiteral(0, types.Bool(found))}
	case how == plainSelect:
		return piece{value: value, constant: true, at: schema.Unknown}
	case found:
		return piece{e: w.factory.NewMemberCall(0, "of", w.factory.NewIdent(0, "optional"),
			w.literal(value)), at: schema.Unknown}
	}
	return piece{e: w.factory.NewMemberCall(0, "none", w.factory.NewIdent(0, "optional"))}
}
