package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

const rowUpstream = `
metadata: {name: shop, namespace: apps}
zero: 0
flag: false
empty: ""
none: null
emptyMap: {}
emptyList: []
replicas: 3
big: 9007199254740993
float: 2.5
version: "1.10"
text: "a\nb\n"
word: w
tag: "'\"<&>"
map: {b: "1.10", a: 2}
list: [x, 2]
items: [{n: 1}, {n: 2}]
port: 8080
tagged: [{image: web, tag: "1.10"}]
hostile: [{image: {privileged: true}}]
`

func rowData(t testing.TB) program.Data {
	return program.Data{
		Upstream: parseObject(t, rowUpstream),
		Params:   map[string]any{"registry": "r.example.com"},
		Inputs:   map[string]any{"settings": map[string]any{"data": map[string]any{"k": "v"}}, "absent": nil},
	}
}

type m = map[string]any
type l = []any

// results are what a file of rows shows of its templates, where that is not what they render.
var results = map[string]func(t *testing.T, template string, o Options) string{
	"fields": ofTemplate(showFields), "holes": ofTemplate(showHoles), "reads": ofTemplate(showReads), "text": renderedText,
	"helpers_reads": ofTemplate(showReads), "hostile": ofHostile,
}

// TestRows: each section of testdata/rows/*.txtar is a row. Its name is what it is about, and why; its text is a
// template and, below =>, its result for the upstream above. The sections define and helpers belong to all rows of
// their file. A first line `# item: YAML` is the item.
func TestRows(t *testing.T) {
	golden.Cases(t, "testdata/rows/*.txtar", func(t *testing.T, c *golden.Case) {
		result, seen := results[strings.TrimPrefix(t.Name(), "TestRows/")], map[string]bool{"define": true, "helpers": true}
		if result == nil {
			result = rendered
		}
		for _, f := range c.Files {
			if f.Name == "define" || f.Name == "helpers" {
				continue
			}
			if seen[f.Name] {
				t.Errorf("there are two rows %s", f.Name)
			}
			seen[f.Name] = true
			template, _, ok := strings.Cut(string(f.Data), "\n=>\n")
			if !ok {
				template = strings.TrimSuffix(template, "\n")
			}
			got := result(t, c.Section("define")+template, Options{Helpers: c.Section("helpers"), Lists: []string{"l"}})
			c.Want(t, f.Name, template+"\n=>\n"+got+"\n")
		}
	})
}

// rendered is the document of a template, or its error.
func rendered(t *testing.T, template string, o Options) string {
	data := rowData(t)
	if line, ok := strings.CutPrefix(template, "# item: "); ok {
		line, _, _ = strings.Cut(line, "\n")
		data.Item, o.Items = parseObject(t, "item: "+line)["item"], true
	}
	tmpl, err := Compile(template, o)
	if err != nil {
		return problems(t, err)
	}
	doc, err := tmpl.Execute(data)
	if err != nil {
		return problems(t, err)
	}
	return shown(t, doc)
}

func renderedText(t *testing.T, template string, o Options) string {
	text, err := CompileText(template, o)
	if err != nil {
		return problems(t, err)
	}
	if constant, ok := text.Constant(); ok {
		return fmt.Sprintf("%q, constant", constant)
	}
	got, err := text.ExecuteText(rowData(t))
	if err != nil {
		return problems(t, err)
	}
	return strconv.Quote(got)
}

// problems is the text of an error, which must be one for users.
func problems(t *testing.T, err error) string {
	t.Helper()
	var e *parsing.Error
	if !errors.As(err, &e) || e.Problem == "" || !strings.HasPrefix(err.Error(), e.Error()) {
		t.Errorf("%T is no *parsing.Error, or has not the first: %v", err, e)
	}
	return err.Error()
}

// shown is a value as JSON in which 2 is an integer, and 2.0 a fraction.
func shown(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(typed(t, v)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func typed(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		out := m{}
		for key, value := range v {
			out[key] = typed(t, value)
		}
		return out
	case []any:
		out := l{}
		for _, item := range v {
			out = append(out, typed(t, item))
		}
		return out
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return json.Number(text)
	case nil, bool, string, int64:
	default:
		t.Errorf("a value is a %T", v)
	}
	return v
}

// ofTemplate shows something of a template.
func ofTemplate(show func(*Template) []string) func(*testing.T, string, Options) string {
	return func(t *testing.T, template string, o Options) string {
		tmpl, err := Compile(template, o)
		if err != nil {
			return problems(t, err)
		}
		return strings.Join(show(tmpl), "\n")
	}
}

func showFields(tmpl *Template) (list []string) {
	for _, f := range tmpl.Fields {
		text := fmt.Sprintf("%d %s", f.Line, strings.Join(f.Path, "."))
		if f.Constant {
			text += fmt.Sprintf("=%v", f.Value)
		}
		list = append(list, text+flags(map[string]bool{" always": f.Always, " optional": f.Optional}))
	}
	return list
}

func showHoles(tmpl *Template) (list []string) {
	for _, h := range tmpl.Holes {
		list = append(list, fmt.Sprintf("%d:%d %s at %s:%s", h.Line, h.Column, h.Text, h.Path,
			flags(map[string]bool{" structure": h.Structure, " key": h.Key, " string": h.String})))
	}
	return list
}

// showReads shows what a template reads; of the inputs i, m and l, which is a list, their fields.
func showReads(tmpl *Template) []string {
	list := []string{fmt.Sprintf("params %v, inputs %v%s", tmpl.Params(), tmpl.Inputs(),
		flags(map[string]bool{", reads status": tmpl.ReadsStatus(), ", computes input": tmpl.ComputesInput()}))}
	for _, input := range []string{"i", "l", "m"} {
		if paths, whole := tmpl.InputReads(input); len(paths) > 0 || whole {
			list = append(list, fmt.Sprintf("%s: %q%s", input, paths, flags(map[string]bool{" whole": whole})))
		}
	}
	return list
}

func flags(on map[string]bool) (text string) {
	for _, name := range values.SortedKeys(on) {
		if on[name] {
			text += name
		}
	}
	return text
}

// parseObject parses an upstream as the API server's clients do: integers as int64.
func parseObject(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	budget := values.NewBudget(values.Limits{}, nil)
	v, err := functions.Bind("fromJson", &budget).(func(string) (any, error))(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.Fatalf("%q is no object", text)
	}
	return m
}
