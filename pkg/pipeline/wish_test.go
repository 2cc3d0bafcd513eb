package pipeline_test

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
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// Each case has a config, an upstream and what is wanted of both: the documents as they would be applied, or the errors.
func TestWish(t *testing.T) {
	golden.Cases(t, "testdata/wish/*.txtar", func(t *testing.T, c *golden.Case) {
		dir := t.TempDir()
		for _, f := range c.Files {
			if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.Want(t, "want", strings.ReplaceAll(wishOf(t, dir), dir+"/", ""))
	})
}

// wishOf says what comes of operator.yaml and upstream.yaml in dir, with crd.yaml where there is one.
func wishOf(t *testing.T, dir string) string {
	t.Helper()
	var crds []string
	if _, err := os.Stat(filepath.Join(dir, "crd.yaml")); err == nil {
		crds = append(crds, filepath.Join(dir, "crd.yaml"))
	}
	source, err := kinds.Offline(crds...)
	if err != nil {
		t.Fatal(err)
	}
	loaded, errs := config.Load(config.Options{Files: []string{filepath.Join(dir, "operator.yaml")}})
	if len(errs) > 0 {
		return "load: " + errs.Error() + "\n"
	}
	p, errs, err := pipeline.Compile(loaded[0], pipeline.Options{Kinds: source})
	if err != nil {
		t.Fatal(err)
	}
	if len(errs) > 0 {
		return errs.Error() + "\n"
	}
	return show(t, p, filepath.Join(dir, "upstream.yaml"))
}

func show(t *testing.T, p *pipeline.Pipeline, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	up := &unstructured.Unstructured{}
	text, err = yaml.YAMLToJSON(text)
	if err == nil {
		err = up.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	up.SetUID("00000000-0000-0000-0000-000000000001")
	w := p.Wish(context.Background(), up, pipeline.Inputs{})
	var out strings.Builder
	for _, f := range w.Invalid {
		fmt.Fprintf(&out, "invalid: %s\n", f)
	}
	for i, d := range w.Downstreams {
		switch {
		case d.Err != nil:
			fmt.Fprintf(&out, "error: %v\n", d.Err)
		case !d.Wanted:
			fmt.Fprintf(&out, "not wanted\n")
		default:
			doc, err := p.Document(w, i, up, pipeline.Inputs{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "# %s\n%s", d.Target, text)
		}
	}
	return out.String()
}
