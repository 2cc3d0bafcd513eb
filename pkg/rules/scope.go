package rules

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/corollary-dev/corollary/pkg/rules/cost"
	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// scope compiles and evaluates expressions with one set of variables.
type scope struct {
	kind     Scope
	env      *cel.Env
	provider *provider
	guard    []cel.ProgramOption
	// estimating serializes estimates: the provider remembers what one check has looked up.
	estimating sync.Mutex

	self, downstream, downstreams *schema.Node // of the kind of scope
	item                          *schema.Node // nil without Items
	object                        *schema.Node // for the scope Matching
	inputLists                    map[string]*schema.Node
	several                       map[string]bool // downstreams with several objects
	declared                      []*declaredVariable
	variableNode                  *schema.Node // of all variables; nil if there are none
}

// scope returns a scope, created on first use: declaring the types of a large schema is slow.
func (e *Env) scope(kind Scope, downstream string) (*scope, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if kind == Status || (kind == Upstream || kind == Sibling) && e.items[downstream] == nil {
		downstream = ""
	}
	key := scopeKey{kind, downstream}
	if s := e.scopes[key]; s != nil {
		return s, nil
	}
	s := &scope{kind: kind, self: e.self, item: e.items[downstream], inputLists: e.inputLists, several: e.lists}
	if kind != Matching {
		s.declared, s.variableNode = e.declared, nodeOfVariables(e.declared)
	}
	switch kind {
	case Downstream:
		if s.downstream = e.downstreams[downstream]; s.downstream == nil {
			s.downstream = e.apart[downstream]
		}
		if s.downstream == nil {
			s.downstream = schema.Unknown
		}
	case Status, Sibling:
		all := map[string]*schema.Node{}
		for name, n := range e.downstreams {
			if e.lists[name] {
				n = schema.MapOf(n)
			}
			all[name] = n
		}
		s.downstreams = schema.ObjectOf(all)
	case Matching:
		s.item = nil
		if s.object = e.inputLists[downstream]; s.object == nil {
			s.object = schema.Unknown
		}
	}
	if err := s.build(e.environment()); err != nil {
		return nil, fmt.Errorf("declaring the variables of rules: %w", err)
	}
	e.scopes[key] = s
	return s, nil
}

// environment returns Kubernetes' CEL at the Env's version. It is the environment for new expressions: the one for
// stored expressions has the functions of every version, so an expression here might be invalid in a CRD of that
// cluster.
func (e *Env) environment() *cel.Env {
	return environment.MustBaseEnvSet(e.version).NewExpressionsEnv()
}

// build makes the CEL environment: types for what has a schema, and the variables.
func (s *scope) build(base *cel.Env) error {
	var declared []*apiservercel.DeclType
	var options []cel.EnvOption
	types := schema.Types{}
	variable := func(name string, n *schema.Node) {
		t := types.Declare(n, name)
		if t.IsObject() {
			declared = append(declared, t)
		}
		options = append(options, cel.Variable(name, t.CelType()))
	}
	variable(varSelf, s.self)
	if s.item != nil {
		variable(varItem, s.item)
	}
	switch s.kind {
	case Downstream:
		variable(varDownstream, s.downstream)
	case Status, Sibling:
		variable(varDownstreams, s.downstreams)
	case Matching:
		variable(varObject, s.object)
	}
	if s.variableNode != nil {
		variable(varVariables, s.variableNode)
	}
	if options = append(options, cel.Variable(varParams, cel.MapType(cel.StringType, cel.DynType))); s.kind != Matching {
		options = append(options, cel.Variable(varInputs, cel.MapType(cel.StringType, cel.DynType)))
	}

	p, typing, err := newProvider(base, declared)
	if err != nil {
		return err
	}
	s.provider = p
	if s.env, err = base.Extend(append(typing, options...)...); err != nil {
		return err
	}
	s.guard, err = cost.Guard(s.env)
	return err
}

// Vars are the values of the variables of a scope. They are not changed and not kept.
type Vars struct {
	// Self is the upstream.
	Self map[string]any
	// Downstream is the downstream, in the scope Downstream.
	Downstream map[string]any
	// Downstreams are the downstreams by name, each a map[string]any, for the scopes Status and Sibling. If one is missing
	// (or nil), downstreams.NAME is an error and has(downstreams.NAME) is false. An empty map has no fields:
	// downstreams.NAME.?status is none.
	Downstreams map[string]any
	Params      map[string]any
	Inputs      map[string]any
	// Item is the item of forEach, for expressions of a downstream with items.
	Item any
	// Values caches the values of variables for one upstream and its inputs; nil: no cache.
	Values *Values
	// Object is the object of an input, in the scope Matching.
	Object map[string]any
}

// activation resolves the variables of one evaluation.
type activation struct {
	scope  *scope
	vars   *Vars
	budget *Budget
}

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case varSelf:
		return objectValue(a.scope.self, a.vars.Self), true
	case varItem:
		if a.scope.item == nil {
			return nil, false
		}
		return a.scope.item.Value(a.vars.Item), true
	case varParams:
		return objectValue(schema.Unknown, a.vars.Params), true
	case varInputs:
		return objectValue(schema.Unknown, a.vars.Inputs), a.scope.kind != Matching
	case varVariables:
		if a.scope.variableNode == nil {
			return nil, false
		}
		return a.variables(), true
	case varObject:
		return objectValue(a.scope.object, a.vars.Object), a.scope.kind == Matching
	case varDownstream:
		return objectValue(a.scope.downstream, a.vars.Downstream), a.scope.kind == Downstream
	case varDownstreams:
		return objectValue(a.scope.downstreams, a.vars.Downstreams), a.scope.kind == Status || a.scope.kind == Sibling
	}
	return nil, false
}

// Parent implements cel.Activation.
func (a *activation) Parent() cel.Activation { return nil }

// objectValue returns the CEL value of an object; a missing one counts as empty.
func objectValue(n *schema.Node, members map[string]any) ref.Val {
	if n == nil {
		return types.NullValue
	}
	return n.Value(members)
}
