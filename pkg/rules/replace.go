package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// FieldRead is a place in an expression that reads a field of self.
type FieldRead struct {
	// Path is the unescaped names of the fields; empty: all of self.
	Path []string
	// Has means has(self.a.b): whether the field is present.
	Has bool
	// Optional means that self.a.?b is an optional. FirstOptional means that self.?a is one, too.
	Optional, FirstOptional bool

	start, end int // in runes
}

// ReplaceReads returns an expression with every read of self replaced by the expression that replace returns. All other
// text stays the same. It returns the error of replace, or an error for a read that it cannot replace.
func (e *Env) ReplaceReads(expr string, replace func(FieldRead) (string, error)) (string, error) {
	return e.replaceReads(varSelf, expr, replace)
}

// replaceReads is ReplaceReads for any variable.
func (e *Env) replaceReads(root, expr string, replace func(FieldRead) (string, error)) (string, error) {
	s, err := e.scope(Upstream, "")
	if err != nil {
		return "", err
	}
	parsed, issues := s.env.Parse(expr)
	if issues.Err() != nil {
		return "", syntaxError(expr, issues.Errors()[0])
	}
	f := &readFinder{root: root, text: []rune(expr), tree: parsed.NativeRep(), found: map[int]FieldRead{}}
	ast.PostOrderVisit(f.tree.Expr(), ast.NewExprVisitor(f.visit))
	if f.err != nil {
		return "", f.err
	}
	reads := make([]FieldRead, 0, len(f.found))
	for _, read := range f.found {
		reads = append(reads, read)
	}
	slices.SortFunc(reads, func(a, b FieldRead) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, read := range reads {
		text, err := replace(read)
		if err != nil {
			return "", err
		}
		b.WriteString(string(f.text[at:read.start]) + text)
		at = read.end
	}
	return b.String() + string(f.text[at:]), nil
}

// readFinder finds the reads by the position of self: the parser does not report their ends.
type readFinder struct {
	root  string
	text  []rune
	tree  *ast.AST
	found map[int]FieldRead // the longest one, by the position of self
	err   error
}

func (f *readFinder) visit(e ast.Expr) {
	if e.Kind() == ast.ComprehensionKind {
		if c := e.AsComprehension(); slices.Contains([]string{c.IterVar(), c.IterVar2()}, f.root) {
			f.err = fmt.Errorf("a variable of a macro is called %s: give it another name", f.root)
		}
	}
	read, self, ok := f.chain(e)
	if !ok {
		return
	}
	if known, ok := f.found[self]; ok && len(known.Path) >= len(read.Path) {
		return
	}
	read.start = self
	if read.end, ok = f.endOf(self, len(read.Path)); !ok {
		f.err = fmt.Errorf("%s cannot be told from what follows it: write it as self.a.b", string(f.text[self:]))
		return
	}
	if read.Has {
		read.start, read.end = f.around(read.start, read.end)
	}
	f.found[self] = read
}

// chain follows selections down to self, and returns its position in runes.
func (f *readFinder) chain(e ast.Expr) (read FieldRead, self int, ok bool) {
	var operand ast.Expr
	var name string
	switch e.Kind() {
	case ast.IdentKind:
		if e.AsIdent() != f.root {
			return read, 0, false
		}
		at, ok := f.tree.SourceInfo().GetOffsetRange(e.ID())
		return read, int(at.Start), ok
	case ast.SelectKind:
		operand, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.OptSelect || !IsText(call.Args()[1]) {
			return read, 0, false
		}
		operand, name = call.Args()[0], call.Args()[1].AsLiteral().Value().(string)
	default:
		return read, 0, false
	}
	if read, self, ok = f.chain(operand); !ok {
		return read, 0, false
	}
	if unescaped, ok := apiservercel.Unescape(name); ok {
		name = unescaped
	}
	read.Path = append(read.Path, name)
	read.Has = e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly()
	read.Optional = read.Optional || e.Kind() == ast.CallKind
	read.FirstOptional = read.FirstOptional || e.Kind() == ast.CallKind && len(read.Path) == 1
	return read, self, true
}

// endOf returns the end of self with this number of selections.
func (f *readFinder) endOf(self, fields int) (end int, ok bool) {
	at := self + len(f.root)
	for range fields {
		at = f.past(at, " \t\n.?")
		begun := at
		for at < len(f.text) && (f.text[at] == '_' || f.text[at] == '`' || isLetterOrDigit(f.text[at])) {
			at++
		}
		if at == begun {
			return 0, false
		}
	}
	return at, true
}

func isLetterOrDigit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func (f *readFinder) past(at int, runes string) int {
	for at < len(f.text) && strings.ContainsRune(runes, f.text[at]) {
		at++
	}
	return at
}

// around returns the has(…) around its argument.
func (f *readFinder) around(start, end int) (from, to int) {
	before := strings.TrimRight(string(f.text[:start]), " \t\n(")
	return len([]rune(before)) - len("has"), f.past(end, " \t\n") + 1
}

// SelfField is an expression for a field of self. It gives an optional if there are fields from optionalFrom on, which
// may be absent. ok is false where CEL has no way to write a name.
func SelfField(path []string, optionalFrom int) (text string, ok bool) {
	optionalFrom = min(optionalFrom, len(path))
	first, ok := fieldsOf(path[:optionalFrom], false)
	rest, okRest := fieldsOf(path[optionalFrom:], true)
	return varSelf + first + rest, ok && okRest
}

// fieldsOf selects fields, one in the other.
func fieldsOf(path []string, optional bool) (text string, ok bool) {
	var b strings.Builder
	for _, name := range path {
		escaped, ok := apiservercel.Escape(name)
		if !ok {
			return "", false
		}
		b.WriteString("." + map[bool]string{true: "?"}[optional] + escaped)
	}
	return b.String(), true
}
