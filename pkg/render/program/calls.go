package program

import "github.com/corollary-dev/corollary/pkg/render/parsing"

// Names of the functions that the compiler adds to the parse tree. A template cannot call them: they are unknown when
// its text is parsed.
const (
	// FnGet reads fields. The number of a site follows it and the next ones.
	FnGet = "_get"
	// FnNeed reads fields, which must exist.
	FnNeed = "_need"
	// FnPut records a hole and prints its placeholder.
	FnPut = "_put"
	// FnHole records a hole and returns its placeholder, for layout functions.
	FnHole = "_hole"
	// FnInclude returns the text of a template with its holes.
	FnInclude = "_include"
	// FnTick counts the steps of the body of a loop.
	FnTick = "_tick"
	// FnEnter counts the steps of a template.
	FnEnter = "_enter"

	// FnLeave ends a template that FnEnter began.
	FnLeave = "_leave"
	// FnOver counts the items of a loop.
	FnOver = "_over"
	// FnIndent indents laid out text, like indent.
	FnIndent = "_indent"
	// FnNindent is FnIndent on a new line.
	FnNindent = "_nindent"
	// FnTrim trims laid out text.
	FnTrim = "_trim"
	// FnEmit prints laid out text.
	FnEmit = "_emit"
)

// runFunctions are those that need the execution, and those without a site that the compiler adds.
var runFunctions = map[string]func(*run) any{
	FnIndent:  func(r *run) any { return r.indent },
	FnNindent: func(r *run) any { return r.nindent },
	FnTrim:    func(*run) any { return trim },
	FnEmit:    func(r *run) any { return r.emit },
	FnLeave:   func(r *run) any { return r.exit },
	FnOver:    func(r *run) any { return r.over },

	"param":      func(r *run) any { return func(name string) any { return r.data.Params[name] } },
	"variable":   func(r *run) any { return func(name string) (any, error) { return r.data.variable(name) } },
	"input":      func(r *run) any { return func(name string) any { return r.data.input(name) } },
	"downstream": func(r *run) any { return func(name string) any { return r.data.input(parsing.DownstreamKey(name)) } },
	"item":       func(r *run) any { return func() any { return r.data.Item } },
	"include":    func(r *run) any { return r.include },
}

// siteFunctions are the functions that the compiler binds to a site.
var siteFunctions = map[string]func(r *run, id int) any{
	FnGet:   func(r *run, id int) any { return func(base any) (any, error) { return r.get(id, base) } },
	FnNeed:  func(r *run, id int) any { return func(base any) (any, error) { return r.need(id, base) } },
	FnPut:   func(r *run, id int) any { return func(base any) *nothing { return r.put(id, base) } },
	FnTick:  func(r *run, id int) any { return func() *nothing { return r.tick(id) } },
	FnEnter: func(r *run, id int) any { return func() *nothing { return r.enter(id) } },
	FnHole:  func(r *run, id int) any { return func(base any) (layoutText, error) { return r.hole(id, base) } },
	FnInclude: func(r *run, id int) any {
		return func(name string, data any) (layoutText, error) { return r.includeHoles(id, name, data) }
	},
}
