package rules

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// Dialect says how expressions of the scope Upstream are written for somebody else who evaluates them.
type Dialect struct {
	// Self is what self is called there.
	Self string
	// Plain: self is plain JSON there, as in an admission policy. Where the schema gives a value another meaning (a text
	// that is a time, an escaped name), the expression says so itself.
	Plain bool
	// Params is the variable there whose field of that name holds the params; empty: the values are written in.
	Params string
	// Values are the params, where they are written in.
	Values map[string]any
}

// UntranslatableError tells that an expression has no counterpart in a Dialect.
type UntranslatableError struct {
	// Problem goes on after "it": "reads inputs".
	Problem string
}

// Error is "it …".
func (e *UntranslatableError) Error() string { return "it " + e.Problem }

func untranslatable(format string, args ...any) error {
	return &UntranslatableError{Problem: fmt.Sprintf(format, args...)}
}

// Translator writes expressions in a Dialect. Names are changed in the parsed expression, never in its text, so that
// variables of macros and texts stay what they are.
type Translator struct {
	env     *Env
	scope   *scope
	dialect Dialect
	source  *cel.Env // parses and checks what was written, and remembers macros
	target  *cel.Env // checks what is written
	// surface parses without expanding macros.
	surface *parser.Parser
}

// Translator returns a Translator of expressions of the scope Upstream.
func (e *Env) Translator(d Dialect) (*Translator, error) {
	s, err := e.scope(Upstream, "")
	if err != nil {
		return nil, err
	}
	t := &Translator{env: e, scope: s, dialect: d}
	if t.source, err = s.env.Extend(cel.EnableMacroCallTracking()); err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	t.target = s.env
	if d.Plain {
		options := []cel.EnvOption{cel.Variable(d.Self, cel.DynType)}
		if d.Params != "" {
			options = append(options, cel.Variable(d.Params, cel.MapType(cel.StringType, cel.DynType)))
		}
		if t.target, err = e.environment().Extend(options...); err != nil {
			return nil, fmt.Errorf("preparing the CEL environment: %w", err)
		}
	}
	if t.surface, err = parser.NewParser(parser.EnableOptionalSyntax(true)); err != nil {
		return nil, fmt.Errorf("preparing the CEL parser: %w", err)
	}
	return t, nil
}

// Bool writes an expression whose result is a bool. The error is a *CompileError where the expression is no good, an
// *UntranslatableError where it has no counterpart.
func (t *Translator) Bool(expr string) (string, error) { return t.write(expr, wantBool) }

// String is Bool for an expression whose result is a string.
func (t *Translator) String(expr string) (string, error) { return t.write(expr, wantString) }

// Message is String for a message that begins with a prefix. Its result is empty where the expression's is blank.
func (t *Translator) Message(expr, prefix string) (string, error) {
	return t.write(expr, wantString, prefix)
}

func (t *Translator) write(expr string, wants wanted, prefix ...string) (string, error) {
	t.env.mu.Lock()
	defer t.env.mu.Unlock()
	checked, err := t.check(expr)
	if err != nil {
		return "", err
	}
	w := &rewriter{dialect: t.dialect, checked: checked, factory: ast.NewExprFactory()}
	made := w.expression(checked.Expr(), bindings{
		varSelf:   {name: t.dialect.Self, at: t.scope.self, global: true},
		varParams: {params: true, global: true},
	})
	if w.err != nil {
		return "", w.err
	}
	text, result, err := t.unparse(w.expr(made))
	if err != nil || !t.dialect.Plain {
		return text, err
	}
	typed := w.typed(w.expr(made), result, wants)
	for _, text := range prefix {
		typed = w.prefixed(typed, text)
	}
	if text, result, err = t.unparse(typed); err != nil {
		return "", err
	}
	if problem := checkResult(result, wants); problem != nil {
		return "", problem
	}
	return text, nil
}

// check parses and checks what was written. (*Env).compile says better what is wrong with it.
func (t *Translator) check(expr string) (*ast.AST, error) {
	parsed, issues := t.source.Parse(expr)
	if issues.Err() != nil {
		return nil, syntaxError(expr, issues.Errors()[0])
	}
	t.scope.provider.forget()
	checked, issues := t.source.Check(parsed)
	if issues.Err() != nil {
		return nil, t.scope.typeError(expr, parsed.NativeRep(), issues.Errors())
	}
	return checked.NativeRep(), nil
}

// typed makes the result of a type that is known before anything is evaluated, which an admission policy demands. A value
// of another type stays an error.
func (w *rewriter) typed(e ast.Expr, result *cel.Type, wants wanted) ast.Expr {
	switch {
	case wants == wantAny || !result.IsExactType(types.DynType):
		return e
	case wants == wantString:
		return w.factory.NewCall(0, operators.Add, w.text(""), e)
	}
	return w.factory.NewCall(0, operators.Conditional, e, w.factory.NewLiteral(0, types.True), w.factory.NewLiteral(0, types.False))
}

// prefixed puts a text before that of an expression, unless that is blank.
func (w *rewriter) prefixed(e ast.Expr, prefix string) ast.Expr {
	if made := w.joined(e, prefix); made != nil {
		return made
	}
	m := w.factory.NewIdent(0, "m")
	given := w.factory.NewMemberCall(0, "ofNonZeroValue", w.factory.NewIdent(0, "optional"), w.factory.NewMemberCall(0, "trim", e))
	added := w.factory.NewMemberCall(0, "optMap", given, m, w.factory.NewCall(0, operators.Add, w.text(prefix), m))
	return w.factory.NewMemberCall(0, "orValue", added, w.text(""))
}

// joined puts the prefix into the text that an expression begins with, which then is never blank; nil if it begins
// with something else.
func (w *rewriter) joined(e ast.Expr, prefix string) ast.Expr {
	switch {
	case isText(e):
		text := strings.TrimLeftFunc(e.AsLiteral().Value().(string), unicode.IsSpace)
		if text == "" {
			return nil
		}
		return w.text(prefix + text)
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Add:
		args := e.AsCall().Args()
		if first := w.joined(args[0], prefix); first != nil {
			return w.factory.NewCall(0, operators.Add, first, args[1])
		}
	}
	return nil
}

// unparse writes an expression out and makes sure that it reads as what it was made of.
func (t *Translator) unparse(e ast.Expr) (string, *cel.Type, error) {
	text, err := textOf(e)
	if err != nil {
		return "", nil, err
	}
	again, problems := t.surface.Parse(common.NewTextSource(text))
	if len(problems.GetErrors()) > 0 || !same(again.Expr(), e) {
		return "", nil, untranslatable("cannot be written out again without a change of its meaning: write it with less nesting")
	}
	compiled, issues := t.target.Compile(text)
	if issues.Err() != nil {
		return "", nil, untranslatable("does not compile there: %s", readable(issues.Errors()[0].Message))
	}
	return text, compiled.OutputType(), nil
}

// textOf is the text of an expression on one line.
func textOf(e ast.Expr) (string, error) {
	text, err := parser.Unparse(e, ast.NewSourceInfo(nil), parser.WrapOnColumn(lineWidth))
	if err != nil {
		return "", untranslatable("cannot be written out again: %v", err)
	}
	return text, nil
}

// lineWidth is beyond any expression: what prints it breaks lines.
const lineWidth = 1 << 20
