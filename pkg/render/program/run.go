package program

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

// run is one execution of a template: its data, the skeleton it prints and the values it records. Runs are pooled,
// because binding functions to a text/template takes longer than executing one.
type run struct {
	skeleton.Output
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
	for _, name := range t.Functions {
		if bind := runFunctions[name]; bind != nil {
			funcs[name] = bind(r)
		} else if f := functions.Bind(name, &r.budget); f != nil {
			funcs[name] = f
		}
	}
	for _, call := range t.Calls {
		funcs[call.Name] = siteFunctions[call.Function](r, call.Site)
	}
	r.tmpl = template.New(parsing.Main).Funcs(funcs)
	for name, tree := range t.Trees {
		// It cannot fail: Parse has refused duplicate names.
		template.Must(r.tmpl.AddParseTree(name, tree))
	}
	return r
}

// execute prints the skeleton into r.Buf.
func (r *run) execute(d Data, tracing bool) error {
	r.data, r.depth = d, 0
	r.Reset(tracing)
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
		r.own.Reset(values.Limits{}, nil)
		r.budget = &r.own
	}
	r.budget.Begin()
}

// end returns the run to the pool without values of the upstream. It turns a panic into an error of the execution; that
// run is not used again.
func (r *run) end(err *error) {
	if p := recover(); p != nil {
		*err = &parsing.Error{Problem: fmt.Sprintf("internal error (recovered from a panic): %v", p),
			Fix: "this is a bug: please report it with the template"}
		return
	}
	var known *parsing.Error
	if errors.As(*err, &known) { // the error may quote a value of the upstream
		known.Problem, known.Lines = values.Short(known.Problem), r.t.Lines
	}
	r.release()
}

func (r *run) release() {
	clear(r.Records[:cap(r.Records)])
	r.data, r.budget, r.own = Data{}, nil, values.Budget{}
	if cap(r.Buf) <= 1<<18 && cap(r.Records) <= 1<<13 {
		r.t.runs.Put(r)
	}
}

// Write receives literal text from text/template.
func (r *run) Write(p []byte) (int, error) {
	if r.Tracing && len(p) > 0 {
		if line, ok := r.t.TextLines[&p[0]]; ok {
			r.Mark(line, true)
		}
	}
	if err := r.budget.Text(values.Times(values.BufferFactor, len(p))); err != nil {
		return 0, err
	}
	r.Buf = append(r.Buf, p...)
	return len(p), nil
}

// read returns the value of a site below base.
func (r *run) read(s *Site, base any) (any, error) {
	for i, name := range s.Path {
		next, ok := values.Field(base, name)
		if !ok {
			return nil, s.at(values.Problemf("", "%s cannot be read: %s has no field %s", s.Text, what(s, i, base), name))
		}
		base = next
	}
	return base, nil
}

// what returns a name for the value that the i-th field of a site is read from.
func what(s *Site, i int, v any) string {
	text := strings.TrimSuffix(s.Text, "."+strings.Join(s.Path[i:], "."))
	if text == "" {
		text = "."
	}
	return text + ", " + values.TypeName(v) + ","
}

func (r *run) get(id int, base any) (any, error) {
	return r.read(&r.t.Sites[id], base)
}

func (r *run) need(id int, base any) (any, error) {
	s := &r.t.Sites[id]
	v, err := r.read(s, base)
	if err == nil && values.IsNil(v) {
		err = s.missing()
	}
	return v, err
}

// nothing is the result of functions that are called for their effect. text/template calls by reflection, where only a
// nil pointer costs no allocation; so these functions report errors by a panic, which text/template turns into an error
// of the call.
type nothing struct{}

func must(err error) *nothing {
	if err != nil {
		panic(err)
	}
	return nil
}

func (r *run) tick(id int) *nothing { return must(r.budget.Work(r.t.Sites[id].Weight)) }

// over takes what a range over v needs: text/template sorts the keys of a map.
func (r *run) over(v any) (any, error) {
	if m := reflect.ValueOf(v); m.Kind() == reflect.Map {
		return v, r.budget.Sort(m.Len(), values.Times(m.Len(), 64))
	}
	return v, nil
}

// maxDepth is how deep include and template may nest.
const maxDepth = 100

func (r *run) enter(id int) *nothing {
	r.depth++
	if r.depth > maxDepth {
		return must(values.Problemf("let the recursion end", "templates include each other more than %d deep", maxDepth))
	}
	return must(r.budget.Work(r.t.Sites[id].Weight))
}

func (r *run) exit() *nothing {
	r.depth--
	return nil
}

// call executes a defined template and returns what it printed. Its holes stay recorded.
func (r *run) call(name string, data any, blank bool) (string, error) {
	in := r.Include(blank)
	err := r.tmpl.ExecuteTemplate(r, name, data)
	if err == nil {
		err = r.budget.Text(len(r.Buf) - in.At)
	}
	text := ""
	if err == nil {
		text = string(r.Buf[in.At:])
	}
	r.Remove(in)
	return text, err
}

// include returns the text of a template with the real values, for the rest of the pipeline.
func (r *run) include(name string, data any) (string, error) {
	first := len(r.Records)
	text, err := r.call(name, data, true)
	if err != nil {
		return "", err
	}
	if parts := skeleton.SplitParts(text); parts != nil {
		text, err = r.joined(parts, len(r.Records)-first)
	}
	r.Records = r.Records[:first]
	return text, err
}
