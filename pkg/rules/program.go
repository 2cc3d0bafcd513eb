package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/rules/cost"
	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// resultKind is the type of an expression's result.
type resultKind int

const (
	wantBool resultKind = iota
	wantString
	wantAny
	wantItems
	wantVariable
)

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	expr    string
	scope   *scope
	wants   resultKind
	program cel.Program
	reads   map[string]readSet
	// loops means that it has a macro that iterates. Only these check the context: a context takes as long as evaluating a
	// simple rule.
	loops bool
	// result is nil if unknown.
	result *spec.Schema

	// items is the schema of the items of the value; nil unless compiled by Items.
	items *schema.Node

	equal *Equality

	floats bool // see ComputesFloats

	literals   []any
	constant   any
	isConstant bool
}

// Text returns the expression as written.
func (p *Program) Text() string { return p.expr }

// Literals returns the strings and whole numbers in the expression.
func (p *Program) Literals() []any { return p.literals }

// Constant returns the result of an expression without variables, for example true for "true". ok is false for other
// expressions, and for those that fail.
func (p *Program) Constant() (value any, ok bool) { return p.constant, p.isConstant }

// Eval evaluates the expression. The result is a bool or string for a Program of Bool or String; for one of Any it is a
// new JSON value, with timestamps, durations and quantities as text, bytes as base64 and an empty optional as nil. The
// error is an
// *EvalError.
func (p *Program) Eval(vars Vars, b *Budget) (any, error) {
	if p.isConstant && (p.wants == wantBool || p.wants == wantString) {
		return p.constant, nil
	}
	val, err := p.run(&vars, b)
	if err != nil {
		return nil, err
	}
	switch p.wants {
	case wantBool:
		if v, ok := val.(types.Bool); ok {
			return bool(v), nil
		}
		return nil, p.valueError("the result is " + article(typeOf(val)) + ", not a bool")
	case wantString:
		if v, ok := val.(types.String); ok {
			return string(v), nil
		}
		return nil, p.valueError("the result is " + article(typeOf(val)) + ", not a string")
	}
	if cost.IsTooLarge(val) {
		return nil, p.valueError(fmt.Sprintf("the result is larger than %d MiB: make it smaller", cost.MaxResult>>20))
	}
	v, err := toJSON(val)
	if err != nil {
		return nil, p.valueError(err.Error())
	}
	return v, nil
}

func (p *Program) valueError(problem string) *EvalError {
	return &EvalError{Expr: p.expr, Problem: problem, Cause: CauseValue}
}

// run evaluates the expression within the budget.
func (p *Program) run(vars *Vars, b *Budget) (ref.Val, error) {
	if b == nil {
		b = NewBudget(context.Background())
	}
	if b.left == 0 {
		return nil, p.overBudget()
	}
	if vars.Values == nil && len(p.scope.declared) > 0 {
		vars.Values = NewValues()
	}
	val, details, err := p.evaluate(b, &activation{p.scope, vars, b})
	if cost := details.ActualCost(); cost != nil && !b.spend(*cost) {
		return nil, p.overBudget()
	}
	if err != nil {
		failure := p.explain(err)
		if failure.Cause == CauseInterrupted && b.ctx.Err() == nil {
			b.expired = true
			failure.Cause, failure.Problem, failure.Err = CauseCost, tooLong, ErrTime
		}
		return nil, failure
	}
	return val, nil
}

func (p *Program) evaluate(b *Budget, vars *activation) (ref.Val, *cel.EvalDetails, error) {
	if !p.loops {
		return p.program.Eval(vars)
	}
	ctx, cancel := context.WithDeadline(b.ctx, b.until)
	defer cancel()
	return p.program.ContextEval(ctx, vars)
}

func (p *Program) overBudget() *EvalError {
	return &EvalError{Expr: p.expr, Cause: CauseCost,
		Problem: "the expressions for this object cost more than they may together, the rest is not evaluated"}
}

// errNoSuchOverload is CEL's error for an operator or function that has no variant for the types of its arguments.
var errNoSuchOverload = types.NoSuchOverloadErr().(*types.Err).Unwrap()

// shorten shortens a problem, which may quote a value of the object.
func shorten(problem string) string {
	const most = 1000
	if len(problem) <= most {
		return problem
	}
	return strings.ToValidUTF8(problem[:most], "") + "…"
}

// explain converts the error of an evaluation to a readable one.
func (p *Program) explain(err error) *EvalError {
	failure := &EvalError{Expr: p.expr, Problem: shorten(firstLine(err.Error())), Err: err}
	var canceled interpreter.EvalCancelledError
	switch {
	case errors.Is(err, interpreter.InterruptError{}):
		failure.Cause, failure.Problem = CauseInterrupted, "interrupted"
	case errors.Is(err, ErrTime): // of a variable
		failure.Cause, failure.Problem = CauseCost, tooLong
	case errors.As(err, &canceled) && canceled.Cause == interpreter.CostLimitExceeded:
		failure.Cause, failure.Problem = CauseCost,
			fmt.Sprintf("it costs more than the limit of %d: make it look at less", CostPerCall)
	case errors.As(err, &canceled):
		failure.Cause, failure.Problem = CauseInterrupted, "interrupted"
	case errors.Is(err, cost.ErrTooExpensive):
		failure.Cause, failure.Problem = CauseCost,
			fmt.Sprintf("it costs more than the limit of %d: make it look at less", CostPerCall)
	case errors.Is(err, errNoSuchOverload):
		failure.Problem = "no such overload: an operator or function was given values of types that it does not take"
	}
	return failure
}

// Reads returns what the expression can read of a variable (self, downstream, downstreams): sorted paths of fields,
// with everything below them. whole means that it may read anything. Names are not escaped; for downstreams the first
// one is the downstream's name. An object that is cut down to these paths by Prune gives the same result or error as
// the whole object.
func (p *Program) Reads(variable string) (paths [][]string, whole bool) {
	r := p.reads[variable]
	return r.paths, r.whole
}
