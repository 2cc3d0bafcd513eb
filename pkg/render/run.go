package render

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// run is one execution of a template: its data, the skeleton it prints and the values it records. Runs are pooled, because
// binding functions to a text/template takes longer than executing one.
type run struct {
	output
	budget *values.Budget
	own    values.Budget
	t      *Template
	tmpl   *template.Template
	data   Data
	depth  int
}

func (t *Template) newRun() *run {
	r := &run{t: t}
	funcs := template.FuncMap{}
	for _, name := range t.functions {
		if bind := runFunctions[name]; bind != nil {
			funcs[name] = bind(r)
		} else if f := functions.Bind(name, &r.budget); f != nil {
			funcs[name] = f
		}
	}
	for _, call := range t.siteCalls {
		funcs[call.name] = siteFunctions[call.function](r, call.site)
	}
	r.tmpl = template.New(parsing.Main).Funcs(funcs)
	for name, tree := range t.trees {
		// It cannot fail: Parse has refused duplicate names.
		template.Must(r.tmpl.AddParseTree(name, tree))
	}
	return r
}

// execute prints the skeleton into r.buf.
func (r *run) execute(d Data, tracing bool) error {
	r.data, r.depth = d, 0
	r.output = output{buf: r.buf[:0], recs: r.recs[:0], blank: true, tracing: tracing, trace: r.trace[:0]}
	upstream := d.Upstream
	if upstream == nil {
		upstream = map[string]any{}
	}
	if err := r.tmpl.Execute(r, upstream); err != nil {
		return r.t.executionError(err)
	}
	return nil
}

// start initializes the run for d.
func (r *run) start(d Data) {
	if r.budget = d.Budget; r.budget == nil {
		r.own.Reset(r.t.options.Limits, nil)
		r.budget = &r.own
	}
	r.budget.Begin()
}

// end returns the run to the pool without values of the upstream. It turns a panic into an error of the execution; that run is
// not used again.
func (r *run) end(err *error) {
	if p := recover(); p != nil {
		*err = &Error{Problem: fmt.Sprintf("internal error (recovered from a panic): %v", p),
			Fix: "this is a bug: please report it with the template"}
		return
	}
	var known *Error
	if errors.As(*err, &known) { // the error may quote a value of the upstream
		known.Problem, known.Lines = values.Short(known.Problem), r.t.lines
	}
	r.release()
}

func (r *run) release() {
	clear(r.recs[:cap(r.recs)])
	r.data, r.budget, r.own = Data{}, nil, values.Budget{}
	if cap(r.buf) <= 1<<18 && cap(r.recs) <= 1<<13 {
		r.t.runs.Put(r)
	}
}

// Write receives literal text from text/template.
func (r *run) Write(p []byte) (int, error) {
	if r.tracing && len(p) > 0 {
		if pos, ok := r.t.textPos[&p[0]]; ok {
			r.trace = append(r.trace, traced{offset: len(r.buf), pos: pos, site: -1})
		}
	}
	if err := r.budget.Text(values.Times(values.BufferFactor, len(p))); err != nil {
		return 0, err
	}
	r.buf = append(r.buf, p...)
	return len(p), nil
}

// read returns the value of a site below base.
func (r *run) read(s *site, base any) (any, error) {
	for i, name := range s.path {
		next, ok := values.Field(base, name)
		if !ok {
			return nil, s.at(values.Problemf("", "%s cannot be read: %s has no field %s", s.text, what(s, i, base), name))
		}
		base = next
	}
	return base, nil
}

// what returns a name for the value that the i-th field of a site is read from.
func what(s *site, i int, v any) string {
	text := strings.TrimSuffix(s.text, "."+strings.Join(s.path[i:], "."))
	if text == "" {
		text = "."
	}
	return text + ", " + values.TypeName(v) + ","
}

func (r *run) get(id int, base any) (any, error) {
	return r.read(&r.t.sites[id], base)
}

func (r *run) need(id int, base any) (any, error) {
	s := &r.t.sites[id]
	v, err := r.read(s, base)
	if err == nil && values.IsNil(v) {
		err = s.missing()
	}
	return v, err
}

// nothing is the result of functions that are called for their effect. text/template calls by reflection, where only a nil
// pointer costs no allocation; so these functions report errors by a panic, which text/template turns into an error of the
// call.
type nothing struct{}

func must(err error) *nothing {
	if err != nil {
		panic(err)
	}
	return nil
}

func (r *run) tick(id int) *nothing { return must(r.budget.Work(r.t.sites[id].weight)) }

// over takes what a range over v needs: text/template sorts the keys of a map.
func (r *run) over(v any) (any, error) {
	if m := reflect.ValueOf(v); m.Kind() == reflect.Map {
		return v, r.budget.Sort(m.Len(), values.Times(m.Len(), 64))
	}
	return v, nil
}

func (r *run) enter(id int) *nothing {
	r.depth++
	if most := r.t.options.Limits.Depth; r.depth > most {
		return must(values.Problemf("let the recursion end", "templates include each other more than %d deep", most))
	}
	return must(r.budget.Work(r.t.sites[id].weight))
}

func (r *run) exit() *nothing {
	r.depth--
	return nil
}

// call executes a defined template and returns what it printed. Its holes stay recorded.
func (r *run) call(name string, data any, blank bool) (string, error) {
	base, before, start, traced := r.base, r.blank, len(r.buf), len(r.trace)
	r.base, r.blank = start, blank
	err := r.tmpl.ExecuteTemplate(r, name, data)
	if err == nil {
		err = r.budget.Text(len(r.buf) - start)
	}
	text := ""
	if err == nil {
		text = string(r.buf[start:])
	}
	r.buf, r.base, r.blank, r.trace = r.buf[:start], base, before, r.trace[:traced]
	return text, err
}

// include returns the text of a template with the real values, for the rest of the pipeline.
func (r *run) include(name string, data any) (string, error) {
	first := len(r.recs)
	text, err := r.call(name, data, true)
	if err != nil {
		return "", err
	}
	f := filler{Budget: r.budget, sites: r.t.sites, records: r.recs}
	if err := splitting(r.budget, len(r.recs)-first); err != nil {
		return "", err
	}
	if parts := skeleton.SplitParts(text); parts != nil {
		text, err = f.join(parts)
	}
	r.recs = r.recs[:first]
	return text, err
}
