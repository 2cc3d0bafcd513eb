// Package rules compiles and evaluates the CEL expressions of an operator: validation rules, conditions and status
// values. It is CEL as Kubernetes has it – the function libraries, optional fields and cost limits of
// CustomResourceDefinitions – over objects as they are read from the API server.
//
// Where the schema of an object is known, expressions are checked against it when they are compiled, so that a field
// that does not exist is found before anything runs; where it is not, everything is checked when it is evaluated.
// An expression means the same either way, with exceptions that follow from the schema: where it is known, strings with
// a format (date-time, duration, byte) are timestamps, durations and bytes, a whole number in a field of type number is a
// double, a null field counts as absent, and lists that the schema calls sets or maps compare in any order.
//
// The package reads no files, makes no requests, and knows no object but those it is handed. It never changes them.
package rules

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	binaryversion "k8s.io/component-base/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Scope says which variables an expression may use.
type Scope int

const (
	// Upstream gives self, params and inputs.
	Upstream Scope = iota
	// Downstream gives downstream besides, the object that one pipeline made.
	Downstream
	// Status gives downstreams instead, all of them by name: downstreams.NAME, where a NAME that is no identifier is
	// escaped as in CRDs (web-server is downstreams.web__dash__server).
	Status
	// Sibling gives what Upstream gives, and downstreams besides: what a downstream reads of the others.
	Sibling
	// Matching gives self, params and object, one of the objects that an input which is a list may have.
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

// variables lists what a scope gives, in the order in which people read it.
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

// EnvOptions say what is known of the objects.
type EnvOptions struct {
	// Version is the Kubernetes version whose CEL is spoken, normally the API server's; nil means the newest that this
	// build knows. Functions that came later are unknown then, so that a rule can move into a CRD of that cluster.
	// Versions before 1.28, whose CEL had no optional fields, count as 1.28.
	Version *version.Version
	// Self is the schema of the upstream; nil: unknown.
	Self *spec.Schema
	// SelfItem: self is no upstream, but an item of a list or map in one, which has no apiVersion, kind and metadata of its own.
	SelfItem bool
	// Downstreams has an entry for each downstream; a nil schema: unknown. In the scope Status other names are errors.
	Downstreams map[string]*spec.Schema
	// ForEach are the downstreams with several objects: in the scope Status each is a map of them by name.
	ForEach map[string]bool
	// Apart is as Downstreams, for objects that are no downstreams: the scope Status does not have them.
	Apart map[string]*spec.Schema
	// Lists has an entry for each input that is a list: the schema of its objects; nil: unknown.
	Lists map[string]*spec.Schema
}

// Env compiles expressions. Safe for concurrent use.
type Env struct {
	version     *version.Version
	self        *node
	downstreams map[string]*node
	apart       map[string]*node
	inputLists  map[string]*node
	lists       map[string]bool  // of downstreams: those with several objects
	items       map[string]*node // by downstream
	declared    []*variable

	mu     sync.Mutex // held while compiling: what compiles is shared, and it is not hot
	scopes map[scopeKey]*scope
}

type scopeKey struct {
	scope      Scope
	downstream string
}

// oldest is the first version whose CEL has optional fields (self.spec.?replicas).
var oldest = version.MajorMinor(1, 28)

// NewEnv returns an Env. The error tells that the schemas cannot be expressed as CEL types.
func NewEnv(o EnvOptions) (*Env, error) {
	e := &Env{
		version:     o.Version,
		self:        newNode(o.Self, !o.SelfItem),
		downstreams: make(map[string]*node, len(o.Downstreams)),
		apart:       make(map[string]*node, len(o.Apart)),
		inputLists:  make(map[string]*node, len(o.Lists)),
		items:       map[string]*node{},
		scopes:      map[scopeKey]*scope{},
	}
	if e.version == nil {
		e.version = version.MustParseGeneric(binaryversion.DefaultKubeBinaryVersion)
	}
	if e.version.LessThan(oldest) {
		e.version = oldest
	}
	for name, schema := range o.Downstreams {
		e.downstreams[name] = newNode(schema, true)
	}
	e.lists = o.ForEach
	for name, schema := range o.Apart {
		e.apart[name] = newNode(schema, true)
	}
	for name, schema := range o.Lists {
		e.inputLists[name] = newNode(schema, true)
	}
	_, err := e.scope(Upstream, "")
	return e, err
}

// Bool compiles an expression whose result is a bool. The downstream is the name that the variable downstream stands
// for in the scope Downstream, in the scope Matching the name of the input; one that EnvOptions lacks is of unknown schema. If items
// were declared for it, the expression reads item, too. The error is a *CompileError.
func (e *Env) Bool(expr string, s Scope, downstream string) (*Program, error) {
	return e.compile(expr, s, downstream, wantBool)
}

// String is like Bool for an expression whose result is a string.
func (e *Env) String(expr string, s Scope, downstream string) (*Program, error) {
	return e.compile(expr, s, downstream, wantString)
}

// Any is like Bool for an expression whose result may be any JSON value.
func (e *Env) Any(expr string, s Scope, downstream string) (*Program, error) {
	return e.compile(expr, s, downstream, wantAny)
}

// isBlank tells an expression that is not there.
func isBlank(expr string) bool { return strings.TrimSpace(expr) == "" }
