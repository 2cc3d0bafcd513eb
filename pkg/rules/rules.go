// Package rules compiles and evaluates the CEL expressions of an operator: validation rules, conditions and status
// values. It is the CEL of CustomResourceDefinitions, with the same function libraries, optional fields and cost
// limits.
//
// If the schema of an object is known, expressions are type-checked when they are compiled; otherwise errors show only
// when they are evaluated. The result is the same, except that with a schema strings with a format (date-time,
// duration, byte) are timestamps, durations and bytes, a whole number in a field of type number is a double, a null
// field counts as absent, and lists that are sets or maps compare in any order.
//
// The package reads no files, sends no requests and never changes an object.
package rules

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	binaryversion "k8s.io/component-base/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
)

// Scope is a set of variables that an expression may use.
type Scope int

const (
	// Upstream has self, params and inputs.
	Upstream Scope = iota
	// Downstream also has downstream, the object of one downstream.
	Downstream
	// Status has downstreams instead, all by name: downstreams.NAME, where a NAME that is not an identifier is escaped as
	// in CRDs (web-server is downstreams.web__dash__server).
	Status
	// Sibling has the variables of Upstream, and downstreams: what a downstream reads of the others.
	Sibling
	// Matching has self, params and object, a candidate for an input that is a list.
	Matching
)

// Names of the variables.
const (
	varSelf        = "self"
	varDownstream  = "downstream"
	varDownstreams = "downstreams"
	varParams      = "params"
	varInputs      = "inputs"
	varItem        = "item"
	varObject      = "object"
	varVariables   = "variables"
)

// variables returns the variables of a scope, in the order for messages.
func (s *scope) variables() []string {
	list := []string{varSelf}
	if s.item != nil {
		list = append(list, varItem)
	}
	switch s.kind {
	case Downstream:
		list = append(list, varDownstream)
	case Status, Sibling:
		list = append(list, varDownstreams)
	case Matching:
		return append(list, varObject, varParams)
	}
	if list = append(list, varParams, varInputs); s.variableNode != nil {
		list = append(list, varVariables)
	}
	return list
}

// EnvOptions are the options of NewEnv.
type EnvOptions struct {
	// Version is the Kubernetes version of the CEL environment, normally the API server's; nil means the newest that this
	// build knows. Functions of later versions are unknown, so that a rule can move into a CRD of that cluster. Versions
	// before 1.28, which have no optional fields, count as 1.28.
	Version *version.Version
	// Self is the schema of the upstream; nil: unknown.
	Self *spec.Schema
	// SelfItem means that self is not an upstream, but an item of a list or map in one, without apiVersion, kind and
	// metadata.
	SelfItem bool
	// Downstreams has an entry for each downstream; a nil schema means unknown. In the scope Status other names are
	// errors.
	Downstreams map[string]*spec.Schema
	// ForEach are the downstreams with several objects: in the scope Status each is a map of objects by name.
	ForEach map[string]bool
	// Apart is the same as Downstreams, for objects that are not downstreams: the scope Status does not have them.
	Apart map[string]*spec.Schema
	// Lists has the schema of the objects of each input that is a list; nil: unknown.
	Lists map[string]*spec.Schema
}

// Env compiles expressions. It is safe for concurrent use.
type Env struct {
	version     *version.Version
	self        *schema.Node
	downstreams map[string]*schema.Node
	apart       map[string]*schema.Node
	inputLists  map[string]*schema.Node
	lists       map[string]bool         // downstreams with several objects
	items       map[string]*schema.Node // by downstream
	declared    []*declaredVariable

	mu     sync.Mutex // held while compiling, which is rare
	scopes map[scopeKey]*scope
}

type scopeKey struct {
	scope      Scope
	downstream string
}

// oldest is the first version with optional fields (self.spec.?replicas).
var oldest = version.MajorMinor(1, 28)

// NewEnv returns an Env. It returns an error if a schema cannot be converted to a CEL type.
func NewEnv(o EnvOptions) (*Env, error) {
	e := &Env{
		version:     o.Version,
		self:        schema.New(o.Self, !o.SelfItem),
		downstreams: make(map[string]*schema.Node, len(o.Downstreams)),
		apart:       make(map[string]*schema.Node, len(o.Apart)),
		inputLists:  make(map[string]*schema.Node, len(o.Lists)),
		items:       map[string]*schema.Node{},
		scopes:      map[scopeKey]*scope{},
	}
	if e.version == nil {
		e.version = version.MustParseGeneric(binaryversion.DefaultKubeBinaryVersion)
	}
	if e.version.LessThan(oldest) {
		e.version = oldest
	}
	for name, s := range o.Downstreams {
		e.downstreams[name] = schema.New(s, true)
	}
	e.lists = o.ForEach
	for name, s := range o.Apart {
		e.apart[name] = schema.New(s, true)
	}
	for name, s := range o.Lists {
		e.inputLists[name] = schema.New(s, true)
	}
	_, err := e.scope(Upstream, "")
	return e, err
}

// Bool compiles an expression whose result is a bool. downstream is the name of the variable downstream in the scope
// Downstream, or of the input in the scope Matching; its schema is unknown if EnvOptions has none. item is declared if
// Items was called for it. It returns a *CompileError.
func (e *Env) Bool(expr string, s Scope, downstream string) (*Program, error) {
	return e.compile(expr, s, downstream, wantBool)
}

// String is Bool for an expression whose result is a string.
func (e *Env) String(expr string, s Scope, downstream string) (*Program, error) {
	return e.compile(expr, s, downstream, wantString)
}

// Any is Bool for an expression whose result may be any JSON value.
func (e *Env) Any(expr string, s Scope, downstream string) (*Program, error) {
	return e.compile(expr, s, downstream, wantAny)
}

// isBlank reports whether an expression is empty.
func isBlank(expr string) bool { return strings.TrimSpace(expr) == "" }
