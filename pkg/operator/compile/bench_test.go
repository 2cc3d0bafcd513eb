package compile_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// example compiles examples/configs/appoperator and reads its custom resource.
func example(b *testing.B) (*compile.Pipeline, *unstructured.Unstructured) {
	b.Helper()
	dir := filepath.Join("..", "..", "..", "examples", "configs", "appoperator")
	source := must.Get(kinds.Offline(filepath.Join(dir, "crd.yaml"))).In(b)
	files, errs := load.Operators(load.Options{Files: []string{filepath.Join(dir, "operator.yaml")}})
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	p, errs, err := compile.One(files[0], compile.Options{Kinds: source})
	if err != nil || len(errs) > 0 {
		b.Fatal(err, errs)
	}
	text := must.Get(os.ReadFile(filepath.Join(dir, "cr.yaml"))).In(b)
	up := &unstructured.Unstructured{}
	text, err = yaml.YAMLToJSON(text)
	if err == nil {
		err = up.UnmarshalJSON(text)
	}
	if err != nil {
		b.Fatal(err)
	}
	up.SetUID("00000000-0000-0000-0000-000000000001")
	return p, up
}

// BenchmarkDesired is what a changed upstream costs besides requests: it evaluates rules, when, template, conventions,
// hash and digest of the Appoperator example: a Deployment.
func BenchmarkDesired(b *testing.B) {
	p, up := example(b)
	b.ReportAllocs()
	for b.Loop() {
		w := p.Render(context.Background(), up, desired.Inputs{})
		if len(w.Invalid) > 0 {
			b.Fatal(w.Invalid)
		}
		if err := w.Objects[0].Err; err != nil {
			b.Fatal(err)
		}
	}
}
