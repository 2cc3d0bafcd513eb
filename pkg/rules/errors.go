package rules

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/redact"
)

// CompileError is an error in an expression.
type CompileError struct {
	// Line and Column are the position in the expression, both from 1.
	Line, Column int
	// Problem says on one line what is wrong.
	Problem string
	// Fix says how to fix it; it may be empty.
	Fix string
}

// Error returns "LINE:COLUMN: problem: fix".
func (e *CompileError) Error() string {
	text := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem)
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	return text
}

// Cause is the kind of an EvalError.
type Cause int

const (
	// CauseValue means that the expression does not fit the object: a missing field, a value of another type, an overflow.
	// A retry gives the same error until the object changes.
	CauseValue Cause = iota
	// CauseCost means that the expression exceeded CostPerCall, or the Budget.
	CauseCost
	// CauseInterrupted means that the context of the Budget was done; it says nothing about the expression or the object.
	CauseInterrupted
)

// EvalError is the error of an evaluation.
type EvalError struct {
	// Expr is the expression.
	Expr string
	// Problem says on one line what went wrong, for example "no such key: tag".
	Problem string
	Cause   Cause
	// Err is the wrapped error; it may be nil.
	Err error
}

// Error returns the expression and the problem.
func (e *EvalError) Error() string {
	return fmt.Sprintf("evaluating %q: %s", strings.TrimSpace(e.Expr), e.Problem)
}

const noSuchKey = "no such key"

// LacksField reports whether the expression reads a field that the object does not have.
func (e *EvalError) LacksField() bool {
	return strings.HasPrefix(e.Problem, noSuchKey) || strings.HasPrefix(e.Problem, "optional.none() dereference")
}

// Redacted returns the error without the values that the problem quotes.
func (e *EvalError) Redacted() string {
	return fmt.Sprintf("evaluating %q: %s", strings.TrimSpace(e.Expr), e.problemWithoutValues())
}

// safeProblems are prefixes of problems that quote no value; the text after them may be a value.
var safeProblems = []string{noSuchKey, "no such overload", "no such attribute", "no such field", "index out of bounds",
	"divide by zero", "division by zero",
	"modulus by zero", "integer overflow", "unsigned integer overflow", "return error for overflow",
	"range error", "type conversion error",
	"invalid argument", "duplicate key", "optional.none() dereference"}

// problemWithoutValues returns the problem without values.
func (e *EvalError) problemWithoutValues() string {
	if e.Cause != CauseValue || strings.HasPrefix(e.Problem, "the result is ") {
		return e.Problem
	}
	for _, kind := range safeProblems {
		if strings.HasPrefix(e.Problem, kind) {
			return strings.TrimSpace(kind)
		}
	}
	return redact.NotQuoted
}

// Unwrap returns the wrapped error.
func (e *EvalError) Unwrap() error { return e.Err }

func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(text)
}
