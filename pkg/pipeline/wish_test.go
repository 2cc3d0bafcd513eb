package pipeline_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

var update = flag.Bool("update", false, "write what came out as what is wanted")

// Each case has a config, an upstream and what is wanted of both: the documents as they would be applied, or the errors.
func TestWish(t *testing.T) {
	files, err := filepath.Glob("testdata/wish/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, f := range archive.Files {
				if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := []byte(strings.ReplaceAll(wishOf(t, dir), dir+"/", ""))
			for i := range archive.Files {
				f := &archive.Files[i]
				if f.Name != "want" {
					continue
				}
				if *update {
					f.Data = got
					if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(f.Data, got) {
					t.Errorf("%s\ngot:\n%swant:\n%s", archive.Comment, got, f.Data)
				}
				return
			}
			t.Fatal("the case has no file named want")
		})
	}
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
	w := p.Wish(context.Background(), up)
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
			doc, err := p.Document(w, i, up, nil)
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
