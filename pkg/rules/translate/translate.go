// Package translate writes expressions out for other CEL environments: the rules of a CustomResourceDefinition, and
// admission policies.
package translate

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

	"github.com/corollary-dev/corollary/pkg/rules"
)

// Dialect describes the CEL environment that expressions of the scope Upstream are translated to.
type Dialect struct {
	// Self is the name of self in the dialect.
	Self string
	// Plain means that self is plain JSON, as in an admission policy. If the schema gives a value another meaning (a
	// timestamp, an escaped name), the translated expression converts it.
	Plain bool
	// Params is the variable that has the params as fields; empty: their values become literals.
	Params string
	// Values are the params that become literals.
	Values map[string]any
}

// UntranslatableError is the error for an expression that cannot be translated.
type UntranslatableError struct {
	// Problem continues a sentence that begins with "it": "reads inputs".
	Problem string
}

// Error returns "it " and the problem.
func (e *UntranslatableError) Error() string { return "it " + e.Problem }

func untranslatable(format string, args ...any) error {
	return &UntranslatableError{Problem: fmt.Sprintf(format, args...)}
}

// Translator translates expressions to a Dialect. It changes names in the parsed expression, not in the text, so that
// variables of macros and string literals stay the same.
type Translator struct {
	source  *rules.Checker
	dialect Dialect
	target  *cel.Env // checks the translation
	// surface parses without expanding macros.
	surface *parser.Parser
}

// New returns a Translator for expressions of the scope Upstream.
func New(e *rules.Env, d Dialect) (*Translator, error) {
	source, err := e.Checker()
	if err != nil {
		return nil, err
	}
	t := &Translator{source: source, dialect: d, target: source.Env()}
	if d.Plain {
		options := []cel.EnvOption{cel.Variable(d.Self, cel.DynType)}
		if d.Params != "" {
			options = append(options, cel.Variable(d.Params, cel.MapType(cel.StringType, cel.DynType)))
		}
		if t.target, err = e.Base().Extend(options...); err != nil {
			return nil, fmt.Errorf("preparing the CEL environment: %w", err)
		}
	}
	if t.surface, err = parser.NewParser(parser.EnableOptionalSyntax(true)); err != nil {
		return nil, fmt.Errorf("preparing the CEL parser: %w", err)
	}
	return t, nil
}

// result is the type that the result of an expression must have.
type result int

const (
	anyResult result = iota
	boolResult
	stringResult
)

// Bool translates an expression whose result is a bool. It returns a *CompileError if the expression is invalid, or an
// *UntranslatableError.
func (t *Translator) Bool(expr string) (string, error) { return t.write(expr, boolResult) }

// String is Bool for an expression whose result is a string.
func (t *Translator) String(expr string) (string, error) { return t.write(expr, stringResult) }

// Any is Bool for an expression whose result may be any value.
func (t *Translator) Any(expr string) (string, error) { return t.write(expr, anyResult) }

// Message is String for a message with a prefix. Its result is empty if the expression's result is blank.
func (t *Translator) Message(expr, prefix string) (string, error) {
	return t.write(expr, stringResult, prefix)
}

func (t *Translator) write(expr string, wants result, prefix ...string) (text string, err error) {
	t.source.Alone(func() { text, err = t.written(expr, wants, prefix) })
	return text, err
}

func (t *Translator) written(expr string, wants result, prefix []string) (string, error) {
	checked, err := t.source.Check(expr)
	if err != nil {
		return "", err
	}
	w := &rewriter{dialect: t.dialect, checked: checked, factory: ast.NewExprFactory()}
	made := w.expression(checked.Expr(), bindings{
		varSelf:   {name: t.dialect.Self, at: t.source.SelfNode(), global: true},
		varParams: {params: true, global: true},
	})
	if w.err != nil {
		return "", w.err
	}
	text, gives, err := t.unparse(w.expr(made))
	if err != nil || !t.dialect.Plain {
		return text, err
	}
	typed := w.typed(w.expr(made), gives, wants)
	for _, text := range prefix {
		typed = w.prefixed(typed, text)
	}
	if text, gives, err = t.unparse(typed); err != nil {
		return "", err
	}
	if problem := wants.problem(gives); problem != nil {
		return "", problem
	}
	return text, nil
}

// problem returns what is wrong with the type of a result, or nil.
func (r result) problem(gives *cel.Type) *rules.CompileError {
	switch r {
	case boolResult:
		return rules.BoolProblem(gives)
	case stringResult:
		return rules.StringProblem(gives)
	}
	return nil
}

// Names of the variables of the scope Upstream.
const (
	varSelf   = "self"
	varParams = "params"
	varInputs = "inputs"
)

// typed converts the result to a type that is known before the evaluation, which an admission policy requires. A value
// of another type is still an error.
func (w *rewriter) typed(e ast.Expr, gives *cel.Type, wants result) ast.Expr {
	switch {
	case wants == anyResult || !gives.IsExactType(types.DynType):
		return e
	case wants == stringResult:
		return w.factory.NewCall(0, operators.Add, w.text(""), e)
	}
	return w.factory.NewCall(0, operators.Conditional, e, w.factory.NewLiteral(0, types.True),
		w.factory.NewLiteral(0, types.False))
}

// prefixed adds a prefix to the text of an expression, unless it is blank.
func (w *rewriter) prefixed(e ast.Expr, prefix string) ast.Expr {
	if made := w.joined(e, prefix); made != nil {
		return made
	}
	m := w.factory.NewIdent(0, "m")
	given := w.factory.NewMemberCall(0, "ofNonZeroValue", w.factory.NewIdent(0, "optional"),
		w.factory.NewMemberCall(0, "trim", e))
	added := w.factory.NewMemberCall(0, "optMap", given, m, w.factory.NewCall(0, operators.Add, w.text(prefix), m))
	return w.factory.NewMemberCall(0, "orValue", added, w.text(""))
}

// joined adds the prefix to the string literal at the start of an expression, which then is never blank; nil if there
// is no such literal.
func (w *rewriter) joined(e ast.Expr, prefix string) ast.Expr {
	switch {
	case rules.IsText(e):
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

// unparse prints an expression and checks that the text parses to the same expression.
func (t *Translator) unparse(e ast.Expr) (string, *cel.Type, error) {
	text, err := textOf(e)
	if err != nil {
		return "", nil, err
	}
	again, problems := t.surface.Parse(common.NewTextSource(text))
	if len(problems.GetErrors()) > 0 || !same(again.Expr(), e) {
		return "", nil, untranslatable(
			"cannot be written out again without a change of its meaning: write it with less nesting")
	}
	compiled, issues := t.target.Compile(text)
	if issues.Err() != nil {
		return "", nil, untranslatable("does not compile there: %s", rules.Readable(issues.Errors()[0].Message))
	}
	return text, compiled.OutputType(), nil
}

// textOf returns the text of an expression on one line.
func textOf(e ast.Expr) (string, error) {
	text, err := parser.Unparse(e, ast.NewSourceInfo(nil), parser.WrapOnColumn(lineWidth))
	if err != nil {
		return "", untranslatable("cannot be written out again: %v", err)
	}
	return text, nil
}

// lineWidth is longer than any expression, because the printer breaks lines.
const lineWidth = 1 << 20
