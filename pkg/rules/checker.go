package rules

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// Checker checks expressions of the scope Upstream that are to be written out again: it keeps their macro calls.
type Checker struct {
	env   *Env
	scope *scope
	own   *cel.Env
}

// Checker returns a Checker.
func (e *Env) Checker() (*Checker, error) {
	s, err := e.scope(Upstream, "")
	if err != nil {
		return nil, err
	}
	own, err := s.env.Extend(cel.EnableMacroCallTracking())
	if err != nil {
		return nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	return &Checker{env: e, scope: s, own: own}, nil
}

// Alone calls f while nothing else is compiled: what checks look up is remembered for all environments of an Env.
func (c *Checker) Alone(f func()) {
	c.env.mu.Lock()
	defer c.env.mu.Unlock()
	f()
}

// Check parses and type-checks an expression, within Alone. (*Env).Bool and the like have better messages.
func (c *Checker) Check(expr string) (*ast.AST, error) {
	parsed, issues := c.own.Parse(expr)
	if issues.Err() != nil {
		return nil, syntaxError(expr, issues.Errors()[0])
	}
	c.scope.provider.forget()
	checked, issues := c.own.Check(parsed)
	if issues.Err() != nil {
		return nil, c.scope.typeError(expr, parsed.NativeRep(), issues.Errors())
	}
	return checked.NativeRep(), nil
}

// SelfNode returns the schema of self.
func (c *Checker) SelfNode() *schema.Node { return c.scope.self }

// Env returns the environment of the scope, which expands macros.
func (c *Checker) Env() *cel.Env { return c.scope.env }

// Base returns Kubernetes' CEL at the Env's version, without variables.
func (e *Env) Base() *cel.Env { return e.environment() }

// BoolProblem returns what is wrong with the type of a result that must be a bool, or nil.
func BoolProblem(t *cel.Type) *CompileError { return checkResult(t, wantBool) }

// StringProblem is BoolProblem for a string.
func StringProblem(t *cel.Type) *CompileError { return checkResult(t, wantString) }
