package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types/ref"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// declaredVariable is an expression with a name, shared by the expressions and templates of an operator.
type declaredVariable struct {
	name    string
	program *Program
	node    *schema.Node
}

// Variable compiles an expression in the scope Sibling and declares its value, as variables.NAME, for expressions that
// are compiled later, including those of other variables. It returns a *CompileError.
func (e *Env) Variable(name, expr string) (*Program, error) {
	p, err := e.compile(expr, Sibling, "", wantVariable)
	e.mu.Lock()
	defer e.mu.Unlock()
	made := &declaredVariable{name, p, schema.Unknown}
	if err == nil {
		made.node = p.items
	}
	e.declared = append(slices.Clip(e.declared), made)
	clear(e.scopes) // their declarations have changed
	return p, err
}

// nodeOfVariables returns the node of an object with the variables; nil if there are none.
func nodeOfVariables(list []*declaredVariable) *schema.Node {
	if len(list) == 0 {
		return nil
	}
	fields := make(map[string]*schema.Node, len(list))
	for _, v := range list {
		fields[v.name] = v.node
	}
	return schema.ObjectOf(fields)
}

// addVariableReads adds the reads of the variables that an expression uses to its own reads.
func addVariableReads(reads map[string]readSet, list []*declaredVariable) {
	used := reads[varVariables]
	for _, v := range list {
		uses := func(path []string) bool { return path[0] == v.name }
		if v.program == nil || !used.whole && !slices.ContainsFunc(used.paths, uses) {
			continue
		}
		for root, r := range v.program.reads {
			if root == varVariables {
				continue // added already
			}
			merged := minimal(append(slices.Clone(reads[root].paths), r.paths...))
			merged.whole = merged.whole || reads[root].whole || r.whole
			if merged.whole {
				merged.paths = nil
			}
			reads[root] = merged
		}
	}
}

// Values caches the values of variables for one upstream and its inputs. It is not safe for concurrent use.
type Values struct {
	found map[string]variableValue
}

type variableValue struct {
	value any
	err   error
}

// NewValues returns an empty cache.
func NewValues() *Values { return &Values{found: map[string]variableValue{}} }

// variable evaluates a variable by name.
func (a *activation) variable(name string) (any, error) {
	i := slices.IndexFunc(a.scope.declared, func(v *declaredVariable) bool { return v.name == name })
	if i < 0 || a.scope.declared[i].program == nil {
		return nil, fmt.Errorf("there is no variable %s", name)
	}
	return a.scope.declared[i].program.VariableValue(name, *a.vars, a.budget)
}

// VariableValue evaluates a program that was compiled by Variable, or returns the value cached in vars.Values: a JSON
// value, which is shared and must not be changed.
func (p *Program) VariableValue(name string, vars Vars, b *Budget) (any, error) {
	if vars.Values == nil {
		vars.Values = NewValues()
	}
	if known, ok := vars.Values.found[name]; ok {
		return known.value, known.err
	}
	vars.Downstream, vars.Item, vars.Object = nil, nil, nil // a variable has the same value for all of them
	value, err := p.Eval(vars, b)
	vars.Values.found[name] = variableValue{value, err}
	return value, err
}

// variables returns the object with the variables, of which one is evaluated when it is read.
func (a *activation) variables() ref.Val {
	return a.scope.variableNode.Lazy(func(name string) (any, error) {
		value, err := a.variable(name)
		if err != nil {
			return nil, fmt.Errorf("variables.%s: %w", name, err)
		}
		return value, nil
	})
}

// Inline returns an expression with the variables replaced by their expressions.
func (e *Env) Inline(expr string) (string, error) {
	if len(e.declared) == 0 {
		return expr, nil
	}
	return e.replaceReads(varVariables, expr, func(r FieldRead) (string, error) {
		if len(r.Path) == 0 {
			return "", fmt.Errorf("it uses all variables")
		}
		i := slices.IndexFunc(e.declared, func(v *declaredVariable) bool { return v.name == r.Path[0] })
		if i < 0 || e.declared[i].program == nil {
			return "", fmt.Errorf("there is no variable %s", r.Path[0])
		}
		value, err := e.Inline(e.declared[i].program.expr)
		if err != nil {
			return "", err
		}
		rest, ok := fieldsOf(r.Path[1:], r.Optional)
		switch text := "(" + value + ")" + rest; {
		case !ok:
			return "", fmt.Errorf("%s cannot be written in an expression", strings.Join(r.Path, "."))
		case r.Has && len(r.Path) == 1:
			return "true", nil
		case r.Has:
			return "has(" + text + ")", nil
		case r.Optional && len(r.Path) == 1:
			return "optional.of(" + value + ")", nil
		default:
			return text, nil
		}
	})
}
