// Package docs tests that the documents list what the code has.
package docs_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/cli"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path)).In(t)
	return string(data)
}

// sources parses the Go files of a package, tests aside.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no Go files: %v", dir, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0)).In(t)
		files = append(files, file)
	}
	return files
}

// constants returns the values of a package's string constants whose names match.
func constants(t *testing.T, dir string, name *regexp.Regexp) []string {
	t.Helper()
	var values []string
	for _, file := range sources(t, dir) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !name.MatchString(spec.Names[0].Name) {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if value, err := strconv.Unquote(lit.Value); err == nil {
					values = append(values, value)
				}
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Errorf("%s has no constants %s", dir, name)
	}
	return values
}

// section returns the text below a heading, down to the next heading of that depth.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	depth, _, _ := strings.Cut(heading, " ")
	if body, _, ok := strings.Cut(rest, "\n"+depth+" "); ok {
		return body
	}
	return rest
}

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// rows returns the words in the first column of a section's table.
func rows(text string) []string {
	var words []string
	for _, m := range firstCell.FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

// TestConditionsListEveryWord: a word that a person meets in a status, an event or a metric has a row that says what it
// means, and a row that nothing says any more is removed.
func TestConditionsListEveryWord(t *testing.T) {
	doc := read(t, "conditions.md")
	for _, test := range []struct {
		heading string
		names   string
		dirs    []string
	}{
		{"## States of a downstream", `^State[A-Z]`, []string{"../pkg/operator", "../pkg/status"}},
		{"## Reasons of a failed request", `^Reason[A-Z]`, []string{"../pkg/apply"}},
		{"## Reasons of the conditions", `^Reason[A-Z]`, []string{"../pkg/status"}},
		{"## Events", `^Event[A-Z]`, []string{"../pkg/engine", "../pkg/reconcile/events"}},
		{"## An operator as a whole", `^Reason[A-Z]`, []string{"../pkg/engine/state"}},
	} {
		t.Run(test.heading, func(t *testing.T) {
			listed := rows(section(t, doc, test.heading))
			var inCode []string
			for _, dir := range test.dirs {
				inCode = append(inCode, constants(t, dir, regexp.MustCompile(test.names))...)
			}
			for _, word := range inCode {
				if !slices.Contains(listed, word) {
					t.Errorf("%s is in %v and has no row", word, test.dirs)
				}
			}
			for _, word := range listed {
				if !slices.Contains(inCode, word) {
					t.Errorf("%s has a row and is not in %v", word, test.dirs)
				}
			}
		})
	}
}

// TestStatesAreAll: what filters by state takes every state that there is.
func TestStatesAreAll(t *testing.T) {
	want := constants(t, "../pkg/operator", regexp.MustCompile(`^State[A-Z]`))
	var have []string
	for _, s := range operator.States() {
		have = append(have, string(s))
	}
	if !slices.Equal(want, have) {
		t.Errorf("operator.States is %v, the constants are %v", have, want)
	}
}

// TestMetricsListEveryMetric compares names and labels.
func TestMetricsListEveryMetric(t *testing.T) {
	doc := read(t, "metrics.md")
	row := regexp.MustCompile("(?m)^\\| `(corollary_[a-z_]+)` \\| [a-z]+ \\| ([^|]*) \\|")
	listed := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(doc, -1) {
		listed[m[1]] = m[2]
	}
	found := 0
	packages := must.Get(filepath.Glob("../pkg/*")).In(t)
	for _, dir := range append(packages, "../pkg/engine/metrics", "../pkg/reconcile/counters") {
		for _, file := range sources(t, dir) {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				name, labels := metric(call)
				if name == "" {
					return true
				}
				found++
				if have, ok := listed[name]; !ok || have != labels {
					t.Errorf("metrics.md lists %s with the labels %q, the code has %q", name, have, labels)
				}
				delete(listed, name)
				return true
			})
		}
	}
	if found == 0 {
		t.Error("no metric was found in the code")
	}
	for name := range listed {
		t.Errorf("metrics.md lists %s, which the code does not have", name)
	}
}

// metric returns name and labels of prometheus.NewXVec(prometheus.XOpts{Name: …}, []string{…}).
func metric(call *ast.CallExpr) (name, labels string) {
	if len(call.Args) == 0 {
		return "", ""
	}
	opts, ok := call.Args[0].(*ast.CompositeLit)
	if !ok {
		return "", ""
	}
	for _, elt := range opts.Elts {
		kv, ok := elt.(*ast.KeyValueExpr)
		if !ok {
			return "", ""
		}
		if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Name" {
			name = literal(kv.Value)
		}
	}
	if !strings.HasPrefix(name, "corollary_") {
		return "", ""
	}
	var all []string
	if len(call.Args) == 2 {
		for _, elt := range call.Args[1].(*ast.CompositeLit).Elts {
			all = append(all, "`"+literal(elt)+"`")
		}
	}
	return name, strings.Join(all, ", ")
}

func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return value
}

// TestConfigListsEveryKey: the reference has every key of the config file.
func TestConfigListsEveryKey(t *testing.T) {
	doc := read(t, "config.md")
	var keys []string
	collect(reflect.TypeFor[config.Operator](), "", nil, &keys)
	if len(keys) < 50 {
		t.Fatalf("found %d keys only", len(keys))
	}
	for _, key := range keys {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("config.md does not list %s", key)
		}
	}
}

// collect lists the paths of the leaves below a type: watch.kind, downstreams[].name.
func collect(t reflect.Type, at string, above []reflect.Type, keys *[]string) {
	switch {
	case slices.Contains(above, t): // a type that holds itself
	case t.Kind() == reflect.Pointer:
		collect(t.Elem(), at, above, keys)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		collect(t.Elem(), at+"[]", above, keys)
	case t.Kind() == reflect.Struct && strings.HasPrefix(t.PkgPath(), reflect.TypeFor[config.Operator]().PkgPath()):
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" {
				collect(f.Type, strings.TrimPrefix(at+"."+name, "."), append(above, t), keys)
			}
		}
	default:
		*keys = append(*keys, at)
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestLinksLeadSomewhere follows the links between the project's documents.
func TestLinksLeadSomewhere(t *testing.T) {
	var names []string
	for _, pattern := range []string{"*.md", "../*.md", "../examples/configs/README.md", "../examples/*/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestCookbookCounts compares the lines of configs in the cookbook with the configs.
func TestCookbookCounts(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| \[([a-z-]+)\]\(\.\./examples/configs/([a-z-]+)\) \| (\d+) \| .*\d.* \| [\d,]+.* \|$`)
	rows := row.FindAllStringSubmatch(read(t, "cookbook.md"), -1)
	must.Same(t, 16, len(rows), "rows, want 16")
	ignored := regexp.MustCompile(`^ *(#|$)`)
	for _, row := range rows {
		n := 0
		for line := range strings.Lines(read(t, filepath.Join("../examples/configs", row[2], "operator.yaml"))) {
			if !ignored.MatchString(strings.TrimSuffix(line, "\n")) {
				n++
			}
		}
		if row[1] != row[2] || row[3] != strconv.Itoa(n) {
			t.Errorf("%s has %d lines; the row says %s has %s", row[2], n, row[1], row[3])
		}
	}
}

// TestCLIListsEveryCommand compares commands and flags that the document names with those that there are.
func TestCLIListsEveryCommand(t *testing.T) {
	doc := read(t, "cli.md")
	help := map[string]string{}
	var visit func(words ...string)
	visit = func(words ...string) {
		name := strings.Join(words, " ")
		text := output(t, append(words, "--help")...)
		help[name] = text
		_, below, parent := strings.Cut(text, " [command]\n")
		if len(words) > 0 && (!parent || name == "completion") && !strings.Contains(doc, "\n| `corollary "+name+"` |") {
			t.Errorf("cli.md does not list the command %s", name)
		}
		if name == "completion" {
			return // a command for each shell, all of a kind
		}
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`).FindAllStringSubmatch(below, -1) {
			if m[1] != "help" {
				visit(append(slices.Clone(words), m[1])...)
			}
		}
	}
	visit()
	if len(help) < 6 {
		t.Fatalf("found %d commands only", len(help))
	}
	for command, text := range help {
		for _, flag := range regexp.MustCompile("(?m)^ +(?:-[a-z], )?(--[a-z-]+)").FindAllStringSubmatch(text, -1) {
			if flag[1] != "--help" && !strings.Contains(doc, "`"+flag[1]+"`") {
				t.Errorf("cli.md does not list %s of %q", flag[1], command)
			}
		}
	}
	for _, flag := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(doc, -1) {
		if !slices.ContainsFunc(slices.Collect(maps.Values(help)), func(text string) bool { return strings.Contains(text, flag[1]+" ") }) {
			t.Errorf("cli.md names %s, which no command has", flag[1])
		}
	}
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("corollary %v exits %d: %s", args, code, &errs)
	}
	return out.String()
}

// TestReadmesConfigIsGood: the config that a newcomer copies first loads without an error.
func TestReadmesConfigIsGood(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "../README.md"), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("README.md shows no config")
	}
	if _, errs := load.Operators(load.Options{Files: []string{"-"}, Stdin: strings.NewReader(text)}); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestContributingListsDependencies: every module that the code imports has a line of reason.
func TestContributingListsDependencies(t *testing.T) {
	listed := regexp.MustCompile(`[a-z0-9.]+\.[a-z]+/[A-Za-z0-9./_-]+`).FindAllString(section(t, read(t, "../CONTRIBUTING.md"),
		"## Dependencies"), -1)
	used := map[string]bool{}
	must.Do(t, filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, module := os.Stat(filepath.Join(name, "go.mod")); entry.IsDir() && name != ".." &&
			(module == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			path := literal(spec.Path)
			domain, _, _ := strings.Cut(path, "/")
			if !strings.Contains(domain, ".") || strings.HasPrefix(path, "github.com/corollary-dev/") {
				continue
			}
			i := slices.IndexFunc(listed, func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") })
			if i < 0 {
				t.Errorf("%s imports %s, which CONTRIBUTING.md does not list", name, path)
				continue
			}
			used[listed[i]] = true
		}
		return nil
	}))
	for _, m := range listed {
		if !used[m] {
			t.Errorf("CONTRIBUTING.md lists %s, which nothing imports", m)
		}
	}
}

// TestContributingListsPackages: the layout names every package and every folder of hack, and no others.
func TestContributingListsPackages(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^(?:pkg|internal|hack)/\w+`).FindAllString(section(t, read(t, "../CONTRIBUTING.md"), "## Layout"), -1)
	var dirs []string
	for _, pattern := range []string{"pkg/*", "internal/*", "hack/*"} {
		names := must.Get(filepath.Glob(filepath.Join("..", pattern))).In(t)
		for _, name := range names {
			dirs = append(dirs, strings.TrimPrefix(filepath.ToSlash(name), "../"))
		}
	}
	slices.Sort(listed)
	slices.Sort(dirs)
	if !slices.Equal(listed, dirs) {
		t.Errorf("CONTRIBUTING.md lists %v, the packages are %v", listed, dirs)
	}
}

// TestReadmeIsShort: whoever comes new reads one screen or two.
func TestReadmeIsShort(t *testing.T) {
	if n := strings.Count(read(t, "../README.md"), "\n"); n > 80 {
		t.Errorf("README.md has %d lines, more than 80", n)
	}
}
