package render

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// runFunctions need the execution: they read its data, or execute a template. Those whose name begins with _ are added by the rewrite.
var runFunctions = map[string]func(*run) any{
	fnIndent:  func(r *run) any { return r.indent },
	fnNindent: func(r *run) any { return r.nindent },
	fnTrim:    func(*run) any { return trim },
	fnEmit:    func(r *run) any { return r.emit },
	fnLeave:   func(r *run) any { return r.exit },
	fnOver:    func(r *run) any { return r.over },

	"param":      func(r *run) any { return func(name string) any { return r.data.Params[name] } },
	"variable":   func(r *run) any { return func(name string) (any, error) { return r.data.variable(name) } },
	"input":      func(r *run) any { return func(name string) any { return r.data.input(name) } },
	"downstream": func(r *run) any { return func(name string) any { return r.data.input(DownstreamKey(name)) } },
	"item":       func(r *run) any { return func() any { return r.data.Item } },
	"include":    func(r *run) any { return r.include },
}

// ofExecution are the names in runFunctions that a template can call.
var ofExecution = []string{"param", "variable", "input", "downstream", "item", "include"}

// siteFunctions are the functions that the rewrite binds to a site.
var siteFunctions = map[string]func(r *run, id int) any{
	fnGet:   func(r *run, id int) any { return func(base any) (any, error) { return r.get(id, base) } },
	fnNeed:  func(r *run, id int) any { return func(base any) (any, error) { return r.need(id, base) } },
	fnPut:   func(r *run, id int) any { return func(base any) *nothing { return r.put(id, base) } },
	fnTick:  func(r *run, id int) any { return func() *nothing { return r.tick(id) } },
	fnEnter: func(r *run, id int) any { return func() *nothing { return r.enter(id) } },
	fnHole:  func(r *run, id int) any { return func(base any) (layoutText, error) { return r.hole(id, base) } },
	fnInclude: func(r *run, id int) any {
		return func(name string, data any) (layoutText, error) { return r.includeHoles(id, name, data) }
	},
}

// canCall reports whether an author can call a function.
func canCall(name string) bool { return slices.Contains(ofExecution, name) || functions.Exists(name) }

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
