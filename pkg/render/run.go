package render

import (
	"strings"
	"text/template"
	"text/template/parse"
)

// run is one execution of a template: its data, the skeleton it prints and the values it records. Runs are pooled,
// because binding functions to a text/template costs more than executing one.
type run struct {
	budget
	t     *Template
	tmpl  *template.Template
	data  Data
	buf   []byte
	recs  []record
	steps int // left
	depth int

	// base is where the text of the template that is being included begins in buf; blank says whether that text
	// begins a line.
	base  int
	blank bool

	tracing bool
	trace   []traced
}

// traced says where a piece of a skeleton comes from.
type traced struct {
	offset int
	pos    parse.Pos // a text node's place; -1: line and column hold a hole's
	site   int
}

func (t *Template) newRun() *run {
	r := &run{t: t}
	funcs := template.FuncMap{}
	for _, name := range t.functions {
		if bind, ok := runFunctions[name]; ok {
			funcs[name] = bind(r)
		} else if f, ok := functions[name]; ok {
			funcs[name] = f
		}
	}
	for _, call := range t.siteCalls {
		funcs[call.name] = siteFunctions[call.function](r, call.site)
	}
	r.tmpl = template.New(t.name).Funcs(funcs)
	for name, tree := range t.trees {
		// It cannot fail: parsing has refused a name that is defined twice.
		template.Must(r.tmpl.AddParseTree(name, tree))
	}
	return r
}

// execute prints the skeleton into r.buf.
func (r *run) execute(d Data, tracing bool) error {
	l := &r.t.options.Limits
	r.data, r.tracing, r.trace = d, tracing, r.trace[:0]
	r.buf, r.recs, r.base, r.blank = r.buf[:0], r.recs[:0], 0, true
	r.steps, r.depth, r.left = l.Steps, 0, l.Bytes
	upstream := d.Upstream
	if upstream == nil {
		upstream = map[string]any{}
	}
	if err := r.tmpl.Execute(r, upstream); err != nil {
		return r.t.executionError(err)
	}
	return nil
}

// release gives the run back. It keeps no value of the upstream.
func (r *run) release() {
	clear(r.recs[:cap(r.recs)])
	r.data = Data{}
	if cap(r.buf) <= 1<<20 {
		r.t.runs.Put(r)
	}
}

// Write takes the author's text from text/template.
func (r *run) Write(p []byte) (int, error) {
	if r.tracing && len(p) > 0 {
		if pos, ok := r.t.textPos[&p[0]]; ok {
			r.trace = append(r.trace, traced{offset: len(r.buf), pos: pos, site: -1})
		}
	}
	r.buf = append(r.buf, p...)
	return len(p), r.spend(len(p))
}

// read gives what a site stands for below base.
func (r *run) read(s *site, base any) (any, error) {
	for i, name := range s.path {
		next, ok := field(base, name)
		if !ok {
			return nil, s.at(problemf("", "%s cannot be read: %s has no field %s", s.text, what(s, i, base), name))
		}
		base = next
	}
	return base, nil
}

// what names the value that the i-th field of a site is read from.
func what(s *site, i int, v any) string {
	text := strings.TrimSuffix(s.text, "."+strings.Join(s.path[i:], "."))
	if text == "" {
		text = "."
	}
	return text + ", " + typeName(v) + ","
}

func (r *run) get(id int, base any) (any, error) {
	return r.read(&r.t.sites[id], base)
}

func (r *run) need(id int, base any) (any, error) {
	s := &r.t.sites[id]
	v, err := r.read(s, base)
	if err == nil && isNil(v) {
		err = s.missing()
	}
	return v, err
}

func (r *run) param(name string) any { return r.data.Params[name] }

func (r *run) input(name string) any {
	if m, ok := r.data.Inputs[name].(map[string]any); ok && m == nil {
		return nil
	}
	return r.data.Inputs[name]
}

var errSteps = problemf("make the loop or the recursion smaller", "the template takes too many steps")

func (r *run) step(n int) error {
	r.steps -= n
	if r.steps < 0 {
		return errSteps
	}
	return nil
}

// exhaust is the error for something too large to be begun.
func (r *run) exhaust() error { return r.spend(r.left + 1) }

// nothing is what functions return that are called for their effect. text/template calls by reflection, where a nil
// pointer is the one result that costs no allocation; so they report an error by a panic, which text/template turns
// back into an error of the call.
type nothing struct{}

func must(err error) *nothing {
	if err != nil {
		panic(err)
	}
	return nil
}

func (r *run) tick() *nothing { return must(r.step(1)) }

func (r *run) enter() *nothing {
	r.depth++
	if most := r.t.options.Limits.Depth; r.depth > most {
		return must(problemf("let the recursion end", "templates include each other more than %d deep", most))
	}
	return must(r.step(1))
}

func (r *run) leave() *nothing {
	r.depth--
	return nil
}

func (r *run) charge(text string) (string, error) { return r.spent(text, nil) }

// call executes a defined template and gives what it printed. Its holes stay recorded.
func (r *run) call(name string, data any, blank bool) (string, error) {
	base, before, start, traced := r.base, r.blank, len(r.buf), len(r.trace)
	r.base, r.blank = start, blank
	err := r.tmpl.ExecuteTemplate(r, name, data)
	text := string(r.buf[start:])
	r.buf, r.base, r.blank, r.trace = r.buf[:start], base, before, r.trace[:traced]
	return text, err
}

// include gives a template's text with the real values, for a pipeline that goes on with it.
func (r *run) include(name string, data any) (string, error) {
	first := len(r.recs)
	text, err := r.call(name, data, true)
	if err != nil {
		return "", err
	}
	f := filler{budget: &r.budget, sites: r.t.sites, records: r.recs}
	if parts := splitParts(text); parts != nil {
		text, err = f.join(parts)
	}
	r.recs = r.recs[:first]
	return text, err
}
