package program

import (
	"sync"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Template is a compiled template. Once compiled, it is immutable and safe for concurrent use.
type Template struct {
	*parsing.Position
	// Trees are the parse trees by name, rewritten so that actions that print record their values; parsing.Main is the
	// template.
	Trees map[string]*parse.Tree
	// Functions are the functions that the trees call, except Calls.
	Functions []string
	Calls     []Call
	Sites     []Site
	// TextLines are the lines of the text nodes, by their first byte.
	TextLines map[*byte]int
	// Lines is the number of lines of the template, without the helpers.
	Lines int

	cache *skeleton.Cache
	runs  sync.Pool
}

// cacheBytes limits the parsed skeletons that a template keeps between executions.
const cacheBytes = 1 << 20

// Call is a function added by the compiler that is bound to a site: Name is what the trees call, Function one of those
// with a site.
type Call struct {
	Name, Function string
	Site           int
}

// New returns the Template of a text with helpers, without the fields that the compiler sets.
func New(text, helpers string, d parsing.Delimiters) *Template {
	t := &Template{Position: parsing.NewPosition(parsing.Joined(text, helpers), d), TextLines: map[*byte]int{},
		Lines: parsing.Lines(text), cache: skeleton.NewCache(cacheBytes)}
	t.runs.New = func() any { return t.newRun() }
	return t
}

// Data is what a template can read. It is never changed, and the result shares no memory with it.
type Data struct {
	// Upstream is the dot of the template.
	Upstream map[string]any
	// Params are the values of `param NAME`.
	Params map[string]any
	// Inputs are the values of `input NAME` and, by parsing.DownstreamKey, of `downstream NAME`. A nil value is an
	// optional input that is missing, a []any is a list.
	Inputs map[string]any
	// Variables returns the value of `variable NAME`; nil if there are no variables.
	Variables func(name string) (any, error)
	// Item is the value of `item`.
	Item any
	// Budget limits the execution, together with others; nil means a new one with the default limits.
	Budget *values.Budget
}

func (d *Data) variable(name string) (any, error) {
	if d.Variables == nil {
		return nil, values.Problemf("add it to variables", "there is no variable %q", name)
	}
	return d.Variables(name)
}

func (d *Data) input(name string) any {
	if m, ok := d.Inputs[name].(map[string]any); ok && m == nil {
		return nil
	}
	return d.Inputs[name]
}
