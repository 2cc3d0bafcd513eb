package render

import (
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Options are the options of Compile.
type Options struct {
	// Helpers are define blocks that the template can use. Their lines follow the last line of the template.
	Helpers string
	// Left and Right are the delimiters; both empty means {{ and }}.
	Left, Right string
	// Items means that the template is executed for each item of a list: `item` can be used.
	Items bool
	// Lists are the inputs that are lists, and the keys of downstreams with several objects: for these InputReads returns what
	// is read of their objects.
	Lists []string
	// Limits limit one execution; zero fields mean the default.
	Limits Limits
	// Probed, if not nil, is called for the document of each path through the conditions that Compile probes: those that reach
	// each block of the template, up to maxProbes.
	Probed func(*Probed)
}

// Limits limit an execution.
type Limits = values.Limits

// Budget is what is left of Limits.
type Budget = values.Budget

// Error is one problem in a template, or in rendering it for an upstream.
type Error = parsing.Error

// Errors are all problems of compiling a template.
type Errors = parsing.Errors //nolint:errname // the plural of Error

var (
	// ErrLimit is values.ErrLimit.
	ErrLimit = values.ErrLimit
	// ErrTime is values.ErrTime.
	ErrTime = values.ErrTime
)

// NewBudget is values.NewBudget.
func NewBudget(l Limits, larger func() error) *Budget { return values.NewBudget(l, larger) }

func (o Options) trees(text string) (trees map[string]*parse.Tree, isHelper map[string]bool, err error) {
	return parsing.Trees(text, o.Helpers, parsing.Delimiters{Left: o.Left, Right: o.Right})
}

func (o Options) withDefaults() Options {
	if o.Left == "" {
		o.Left = "{{"
	}
	if o.Right == "" {
		o.Right = "}}"
	}
	o.Limits = o.Limits.WithDefaults()
	return o
}

// Data is what a template can read. It is never changed, and the result shares no memory with it.
type Data struct {
	// Upstream is the dot of the template.
	Upstream map[string]any
	// Params are the values of `param NAME`.
	Params map[string]any
	// Inputs are the values of `input NAME` and, by DownstreamKey, of `downstream NAME`. A nil value is an optional input that
	// is missing, a []any is a list.
	Inputs map[string]any
	// Variables returns the value of `variable NAME`; nil if there are no variables.
	Variables func(name string) (any, error)
	// Item is the value of `item`.
	Item any
	// Budget limits the execution, together with others; nil means a new one with the template's limits.
	Budget *Budget
}
