// Package examples tests the example configs: that they load, compile against their CRDs, satisfy the published JSON
// Schema, render what is beside them and, on a real API server, do what their READMEs say. It holds no code of the
// product.
package examples_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/cli"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/config/schema"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// published are the schemas that the first lines of the examples name, by the kind of file.
var published = map[string]struct {
	path   string
	schema func() []byte
}{
	config.Kind:               {"../docs/schema/operator.v1alpha1.json", schema.Operator},
	config.ConventionsKind:    {"../docs/schema/conventions.v1alpha1.json", schema.Conventions},
	lock.ActivationKind:       {"../docs/schema/activation.v1alpha1.json", schema.Activation},
	conversion.ConversionKind: {"../docs/schema/conversion.v1alpha1.json", schema.Conversion},
}

// example is one folder of configs.
type example struct{ dir string }

// examples are those whose upstreams are objects.
func examples(t *testing.T) []example {
	t.Helper()
	return foundIn(t, "configs", 10)
}

// withSources are the examples, and those whose upstreams are rows.
func withSources(t *testing.T) []example {
	t.Helper()
	return append(examples(t), foundIn(t, "sources", 1)...)
}

func foundIn(t *testing.T, folder string, atLeast int) []example {
	t.Helper()
	readmes, err := filepath.Glob(folder + "/*/README.md")
	if err != nil || len(readmes) < atLeast {
		t.Fatalf("found %d examples in %s, want %d or more: %v", len(readmes), folder, atLeast, err)
	}
	var list []example
	for _, readme := range readmes {
		list = append(list, example{filepath.Dir(readme)})
	}
	return list
}

func (e example) name() string { return filepath.Base(e.dir) }

func (e example) path(name string) string { return filepath.Join(e.dir, name) }

// config is the operator's file, or the directory of several.
func (e example) config() string {
	if _, err := os.Stat(e.path("operators")); err == nil {
		return e.path("operators")
	}
	return e.path("operator.yaml")
}

// crds are the example's own CRDs; none where all its kinds are built in.
func (e example) crds() []string {
	if e.name() == "apps" {
		return []string{"configs/hello/crd.yaml"}
	}
	if _, err := os.Stat(e.path("crd.yaml")); err != nil {
		return nil
	}
	return []string{e.path("crd.yaml")}
}

func (e example) load(t *testing.T) []*load.File {
	t.Helper()
	files, errs := load.Operators(load.Options{Files: []string{e.config()}})
	if len(errs) > 0 {
		t.Fatalf("loading:\n%v", errs)
	}
	return files
}

func (e example) compile(t *testing.T) []*compile.Pipeline {
	t.Helper()
	source := must.Get(kinds.Offline(e.crds()...)).In(t)
	var list []*compile.Pipeline
	for _, f := range e.load(t) {
		p, problems, err := compile.One(f, compile.Options{Kinds: source})
		if err != nil || len(problems) > 0 {
			t.Fatalf("compiling: %v\n%v", err, problems)
		}
		for _, w := range p.Warnings {
			t.Errorf("an example is without warnings, but: %v", &w)
		}
		ours := strings.HasSuffix(p.Upstream.GVK.Group, ".example.com")
		if p.Upstream.GVR.Empty() || (ours && p.Upstream.Schema == nil) {
			t.Errorf("%s was compiled without a schema of %s", p.Name, p.Upstream.GVK.Kind)
		}
		list = append(list, p)
	}
	return list
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(path)).In(t)
	return data
}

func TestExamplesCompile(t *testing.T) {
	for _, e := range withSources(t) {
		t.Run(e.name(), func(t *testing.T) { e.compile(t) })
	}
}

// TestReadmesCommands runs the commands that an example's README shows, as they stand. What they render, one after the
// other, is rendered.yaml; what generate crd prints is crd.yaml.
func TestReadmesCommands(t *testing.T) {
	for _, e := range withSources(t) {
		t.Run(e.name(), func(t *testing.T) {
			_, rest, _ := strings.Cut(string(read(t, e.path("README.md"))), "```sh\n")
			script, _, ok := strings.Cut(rest, "```\n")
			if !ok {
				t.Fatal("the README shows no commands")
			}
			t.Chdir(e.dir)
			var rendered []string
			for line := range strings.Lines(script) {
				line, _, _ = strings.Cut(line, "#")
				out := run(t, line)
				if strings.Contains(line, " generate crd ") {
					golden.File(t, "crd.yaml", []byte(out))
				}
				if strings.Contains(line, " render ") {
					rendered = append(rendered, out)
				}
			}
			if len(rendered) == 0 {
				t.Fatal("the README renders nothing")
			}
			golden.File(t, "rendered.yaml", []byte(strings.Join(rendered, "---\n")))
		})
	}
}

// run runs a line of commands joined by pipes and returns what the last one prints.
func run(t *testing.T, line string) string {
	t.Helper()
	var in string
	for command := range strings.SplitSeq(line, "|") {
		args := strings.Fields(command)
		if len(args) == 0 || args[0] != "corollary" {
			t.Fatalf("this is no command of corollary: %s", command)
		}
		var out, errs bytes.Buffer
		if code := cli.Main(args[1:], cli.IO{In: strings.NewReader(in), Out: &out, Err: &errs}); code != 0 {
			t.Fatalf("%s exits %d:\n%s", command, code, &errs)
		}
		in = out.String()
	}
	return in
}

// TestSchema holds the published JSON Schemas to what `corollary schema` prints, and the examples to them, by a library
// that shares no code with the one that made them.
func TestSchema(t *testing.T) {
	for kind, p := range published {
		golden.File(t, p.path, p.schema())
		compiled := must.Get(jsonschema.NewCompiler().Compile(p.path)).In(t)
		files := filesOf(t, kind)
		if len(files) == 0 {
			t.Errorf("no example has a file of kind %s", kind)
		}
		for _, path := range files {
			text := read(t, path)
			first, _, _ := bytes.Cut(text, []byte("\n"))
			named, ok := bytes.CutPrefix(first, []byte("# yaml-language-server: $schema="))
			if at := filepath.Join(filepath.Dir(path), string(named)); !ok || at != p.path {
				t.Errorf("%s does not name the schema in its first line: %s is not %s", path, at, p.path)
			}
			if err := compiled.Validate(instance(t, text)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if compiled.Validate(instance(t, slices.Concat(text, []byte("\nunknown: 1\n")))) == nil {
				t.Errorf("the schema accepts an unknown field in %s", path)
			}
		}
	}
}

// filesOf lists the config files of a kind.
func filesOf(t *testing.T, kind string) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"configs/*/*.yaml", "configs/*/operators/*.yaml", "conversions/*/*.yaml", "sources/*/*.yaml",
		"activations/*.yaml"} {
		paths := must.Get(filepath.Glob(pattern)).In(t)
		for _, path := range paths {
			if bytes.Contains(read(t, path), []byte("apiVersion: "+config.APIVersion+"\nkind: "+kind+"\n")) {
				list = append(list, path)
			}
		}
	}
	return list
}

func instance(t *testing.T, text []byte) any {
	t.Helper()
	data := must.Get(yaml.YAMLToJSON(text)).In(t)
	v := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(data))).In(t)
	return v
}
