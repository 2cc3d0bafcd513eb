package compile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Each case has a config, an upstream, and the desired objects of both as they would be applied, or the errors.
func TestDesired(t *testing.T) {
	golden.Cases(t, "testdata/desired/*.txtar", func(t *testing.T, c *golden.Case) {
		dir := t.TempDir()
		for _, f := range c.Files {
			must.Do(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600))
		}
		c.Want(t, "want", strings.ReplaceAll(desiredOf(t, dir), dir+"/", ""))
	})
}

// desiredOf says what comes of operator.yaml and upstream.yaml in dir, with crd.yaml where there is one.
func desiredOf(t *testing.T, dir string) string {
	t.Helper()
	var crds []string
	if exists(filepath.Join(dir, "crd.yaml")) {
		crds = append(crds, filepath.Join(dir, "crd.yaml"))
	}
	source := must.Get(kinds.Offline(crds...)).In(t)
	loaded, errs := load.Operators(load.Options{Files: []string{filepath.Join(dir, "operator.yaml")}})
	if len(errs) > 0 {
		return "load: " + errs.Error() + "\n"
	}
	p, errs, err := compile.One(loaded[0], compile.Options{Kinds: source})
	if err != nil {
		t.Fatal(err)
	}
	if len(errs) > 0 {
		return errs.Error() + "\n"
	}
	up := read(t, filepath.Join(dir, "upstream.yaml"))
	var inputs []*unstructured.Unstructured
	if file := filepath.Join(dir, "inputs.yaml"); exists(file) {
		inputs = readAll(t, file)
	}
	return show(t, p, up, inputs)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	return readAll(t, file)[0]
}

func readAll(t *testing.T, file string) (list []*unstructured.Unstructured) {
	t.Helper()
	text := must.Get(os.ReadFile(file)).In(t)
	for _, document := range strings.Split(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		text, err := yaml.YAMLToJSON([]byte(document))
		if err == nil {
			err = u.UnmarshalJSON(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, u)
	}
	return list
}

func show(t *testing.T, p *compile.Pipeline, up *unstructured.Unstructured, inputs []*unstructured.Unstructured) string {
	t.Helper()
	up.SetUID("00000000-0000-0000-0000-000000000001")
	ctx := context.Background()
	in := p.InputsAt(p.InputRefs(ctx, up), desired.WholeObjects(func(*desired.InputSource) []*unstructured.Unstructured {
		return inputs
	}))
	w := p.Render(ctx, up, in)
	var out strings.Builder
	for _, f := range w.Invalid {
		fmt.Fprintf(&out, "invalid: %s\n", f)
	}
	if len(w.Invalid) > 0 {
		return out.String()
	}
	for i, d := range w.Objects {
		switch {
		case d.Err != nil:
			fmt.Fprintf(&out, "error: %v\n", d.Err)
		case !d.Wanted:
			fmt.Fprintf(&out, "not wanted\n")
		default:
			doc := must.Get(p.Document(w, i, up, in, nil)).In(t)
			text := must.Get(yaml.Marshal(doc)).In(t)
			fmt.Fprintf(&out, "# %s\n%s", d.Target, text)
		}
	}
	return out.String()
}
