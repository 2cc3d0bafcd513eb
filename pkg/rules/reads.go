package rules

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// readSet is what an expression reads of a variable.
type readSet struct {
	paths [][]string
	whole bool
}

// Prune returns the object cut down to the paths; it shares their values. Maps on the way to a path stay even if they
// become empty, and other values stay as they are: has(self.spec.tag) is an error without a spec, but false with an
// empty one.
func Prune(obj map[string]any, paths [][]string) map[string]any {
	kept := map[string]any{}
	below := map[string][][]string{}
	for _, path := range paths {
		if len(path) == 0 {
			return obj
		}
		below[path[0]] = append(below[path[0]], path[1:])
	}
	for name, rest := range below {
		member, ok := obj[name]
		if !ok {
			continue
		}
		if m, isMap := member.(map[string]any); isMap {
			member = Prune(m, rest)
		}
		kept[name] = member
	}
	return kept
}

// findReads walks a checked expression.
func findReads(checked *ast.AST, s *scope) map[string]readSet {
	w := &readWalker{checked: checked, found: map[string][][]string{}, shadow: map[string][]*chain{},
		lists: s.inputLists, several: s.several}
	w.walk(checked.Expr())
	variables := s.variables()
	reads := make(map[string]readSet, len(variables))
	for _, name := range variables {
		reads[name] = minimal(w.found[name])
	}
	return reads
}

// minimal removes paths below other paths.
func minimal(paths [][]string) readSet {
	slices.SortFunc(paths, slices.Compare)
	var r readSet
	for _, path := range paths {
		if len(path) == 0 {
			return readSet{whole: true}
		}
		if n := len(r.paths); n > 0 && len(r.paths[n-1]) <= len(path) &&
			slices.Equal(r.paths[n-1], path[:len(r.paths[n-1])]) {
			continue
		}
		r.paths = append(r.paths, path)
	}
	return r
}

// readWalker collects the paths. If it cannot follow an expression, that counts as reading everything below.
type readWalker struct {
	checked *ast.AST
	found   map[string][][]string
	// shadow has the variables of the enclosing comprehensions: each is an object of a list, or nil.
	shadow map[string][]*chain
	lists  map[string]*schema.Node // the inputs that are lists
	// several are the downstreams with several objects, by name.
	several map[string]bool
}

func (w *readWalker) walk(e ast.Expr) {
	if c, ok := w.chain(e); ok {
		w.found[c.root] = append(w.found[c.root], c.path)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.walk(e.AsSelect().Operand())
	case ast.CallKind:
		operands := e.AsCall().Args()
		if e.AsCall().IsMemberFunction() {
			operands = append([]ast.Expr{e.AsCall().Target()}, operands...)
		}
		for _, operand := range operands {
			if e.AsCall().FunctionName() != "size" || w.objects(operand) == nil && !w.downstreamNames(operand) {
				w.walk(operand)
			}
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			w.walk(item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key())
			w.walk(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.walk(field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		w.comprehension(e.AsComprehension())
	}
}

// comprehension walks the loop of a macro, whose variables hide outer ones with the same name.
func (w *readWalker) comprehension(c ast.ComprehensionExpr) {
	object := w.objects(c.IterRange())
	if object == nil && (c.HasIterVar2() || !w.downstreamNames(c.IterRange())) {
		w.walk(c.IterRange())
	}
	w.walk(c.AccuInit())
	w.hidden(c.AccuVar(), nil, func() {
		w.walk(c.Result())
		w.inLoop(c, object, func() {
			w.walk(c.LoopCondition())
			w.walk(c.LoopStep())
		})
	})
}

// inLoop walks what a comprehension evaluates for each item: its variable, or the second if it has two, is the item.
func (w *readWalker) inLoop(c ast.ComprehensionExpr, item *chain, walk func()) {
	if !c.HasIterVar2() {
		w.hidden(c.IterVar(), item, walk)
		return
	}
	w.hidden(c.IterVar(), nil, func() { w.hidden(c.IterVar2(), item, walk) })
}

func (w *readWalker) hidden(name string, by *chain, walk func()) {
	w.shadow[name] = append(w.shadow[name], by)
	walk()
	w.shadow[name] = w.shadow[name][:len(w.shadow[name])-1]
}

// chain is a selection of fields below a variable.
type chain struct {
	root string
	path []string
	// closed means that the next field is unknown, so that the path includes everything from its end.
	closed bool
	// object means that it begins at an object of a list input, not at the list.
	object bool
}

// chain follows selections down to a variable; ok is false for other expressions.
func (w *readWalker) chain(e ast.Expr) (c chain, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		name, absolute := strings.CutPrefix(e.AsIdent(), ".") // .self is the variable even if self is hidden
		if by := w.shadow[name]; !absolute && len(by) > 0 {
			if last := by[len(by)-1]; last != nil {
				return *last, true
			}
			return chain{}, false
		}
		return chain{root: name}, true
	case ast.SelectKind:
		return w.extend(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.OptSelect, operators.Index, operators.OptIndex:
			if len(call.Args()) == 2 && IsText(call.Args()[1]) {
				return w.extend(call.Args()[0], call.Args()[1].AsLiteral().Value().(string))
			}
			if byName, ok := w.chain(call.Args()[0]); ok && w.isByName(byName) && w.isLoopKey(call.Args()[1]) {
				byName.path = append(slices.Clip(byName.path), anyObject)
				return byName, true
			}
			if list, ok := w.chain(call.Args()[0]); ok && w.isList(list) && call.Args()[1].Kind() == ast.LiteralKind {
				list.object = true
				return list, true
			}
		}
	}
	return chain{}, false
}

// extend returns the chain of an operand with one more field.
func (w *readWalker) extend(operand ast.Expr, name string) (c chain, ok bool) {
	if c, ok = w.chain(operand); !ok || c.closed {
		return c, ok
	}
	field, exact := w.fieldName(operand, name)
	if !exact {
		c.closed = true
		return c, true
	}
	c.path = append(slices.Clip(c.path), field)
	return c, true
}

// fieldName returns the real name of a selected field: names of an object's fields are escaped, keys of a map are not.
// If the type is unknown, ok is false unless both are the same.
func (w *readWalker) fieldName(operand ast.Expr, name string) (string, bool) {
	if !strings.Contains(name, "__") {
		return name, true
	}
	t := w.checked.GetType(operand.ID())
	if t != nil && IsOptional(t) {
		t = t.Parameters()[0]
	}
	switch {
	case t != nil && t.Kind() == types.StructKind:
		return apiservercel.Unescape(name)
	case t != nil && t.Kind() == types.MapKind:
		return name, true
	}
	return "", false
}
