package rules

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// compile implements Bool, String and Any.
func (e *Env) compile(expr string, kind Scope, downstream string, wants resultKind) (*Program, error) {
	if kind == Sibling && !strings.Contains(expr, varDownstreams) {
		kind = Upstream // avoid declaring the types of the downstreams, which is slow
	}
	s, err := e.scope(kind, downstream)
	if err != nil {
		return nil, &CompileError{Line: 1, Column: 1, Problem: err.Error()}
	}
	if isBlank(expr) {
		return nil, &CompileError{Line: 1, Column: 1, Problem: "the expression is empty", Fix: "write one, or leave it out"}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	checked, problem := s.check(expr)
	if problem != nil {
		return nil, problem
	}
	if problem := checkResult(checked.OutputType(), wants); problem != nil {
		return nil, problem
	}
	program, err := s.env.Program(checked, append(slices.Clip(s.guard),
		cel.CostLimit(CostPerCall),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))...)
	if err != nil {
		return nil, &CompileError{Line: 1, Column: 1, Problem: firstLine(err.Error())}
	}
	tree := checked.NativeRep()
	p := &Program{expr: expr, scope: s, wants: wants, program: program, reads: findReads(tree, s), loops: hasLoop(tree),
		result: resultOf(tree, tree.Expr()), literals: literalsOf(tree),
		floats: computesFloats(tree)}
	if kind == Matching {
		p.equal = equalPaths(tree)
	}
	addVariableReads(p.reads, s.declared)
	switch wants {
	case wantItems:
		p.items = s.itemsOf(tree, tree.Expr())
	case wantVariable:
		p.items = s.valueNode(tree, tree.Expr(), p.result)
	}
	p.fold()
	return p, nil
}

// Literals returns the strings and whole numbers that an expression over self has; nothing if it cannot be parsed.
func (e *Env) Literals(expr string) []any {
	s, err := e.scope(Upstream, "")
	if err != nil {
		return nil
	}
	parsed, issues := s.env.Parse(expr)
	if issues.Err() != nil {
		return nil
	}
	return literalsOf(parsed.NativeRep())
}

func literalsOf(tree *ast.AST) (found []any) {
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		switch value := e.AsLiteral().Value().(type) {
		case string, int64:
			found = append(found, value)
		}
	}))
	return found
}

func hasLoop(tree *ast.AST) (found bool) {
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.ComprehensionKind
	}))
	return found
}

// check parses and type-checks.
func (s *scope) check(expr string) (*cel.Ast, *CompileError) {
	s.provider.forget()
	parsed, issues := s.env.Parse(expr)
	if issues.Err() != nil {
		return nil, syntaxError(expr, issues.Errors()[0])
	}
	checked, issues := s.env.Check(parsed)
	if issues.Err() != nil {
		return nil, s.typeError(expr, parsed.NativeRep(), issues.Errors())
	}
	return checked, nil
}

// checkResult checks the type of the result. A type that is known only when the expression is evaluated is accepted.
func checkResult(t *cel.Type, wants resultKind) *CompileError {
	want := types.BoolType
	switch wants {
	case wantAny, wantVariable:
		return nil
	case wantItems:
		if k := t.Kind(); k == types.ListKind || k == types.MapKind || k == types.DynKind {
			return nil
		}
		problem := &CompileError{Line: 1, Column: 1, Problem: "the result is " +
			article(typeText(t)) + ", not a list or a map"}
		if IsOptional(t) {
			problem.Fix = "give a default for a missing field: ….orValue([])"
		}
		return problem
	case wantString:
		want = types.StringType
	}
	if t.IsExactType(want) || t.IsExactType(types.DynType) {
		return nil
	}
	problem := &CompileError{Line: 1, Column: 1,
		Problem: "the result is " + article(typeText(t)) + ", not " + article(typeText(want))}
	switch {
	case IsOptional(t) && wants == wantBool:
		problem.Fix = "give a default for a missing field: ….orValue(false)"
	case IsOptional(t):
		problem.Fix = "give a default for a missing field: ….orValue('')"
	case wants == wantString && isScalar(t):
		problem.Fix = "convert it: string(…)"
	case wants == wantString:
		problem.Fix = "make a string of it"
	default:
		problem.Fix = "compare it with something"
	}
	return problem
}

// isScalar reports whether string() converts values of a type.
func isScalar(t *cel.Type) bool {
	switch t.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.BytesKind,
		types.TimestampKind, types.DurationKind:
		return true
	}
	return false
}

// fold evaluates an expression without variables: all functions of Kubernetes' CEL are deterministic.
func (p *Program) fold() {
	for _, r := range p.reads {
		if r.whole || len(r.paths) > 0 {
			return
		}
	}
	value, err := p.Eval(Vars{}, nil)
	if err != nil {
		return
	}
	p.constant, p.isConstant = value, true
}
