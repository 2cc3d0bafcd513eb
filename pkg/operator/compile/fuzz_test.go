package compile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Whatever a config file says, compiling it ends with a pipeline or with errors, never with a panic: a file in which
// the loader found errors is compiled for its further ones.
func FuzzCompile(f *testing.F) {
	cases, err := filepath.Glob("../../../examples/configs/*/operator.yaml")
	if err != nil || len(cases) == 0 {
		f.Fatal("no examples to begin with", err)
	}
	for _, file := range cases {
		text := must.Get(os.ReadFile(file)).In(f)
		f.Add(text)
	}
	f.Add([]byte("kind: Operator\ndownstreams: [{}]\nconventions: {labels: {a: \"{{ .x | foo }}\"}}\nstatus: {downstreams: x, fields: [{path: '.', value: '('}]}\n"))
	source := must.Get(kinds.Offline()).In(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		files, loadErrs := load.Operators(load.Options{Files: []string{"-"}, Stdin: bytes.NewReader(text)})
		for _, file := range files {
			p, errs, err := compile.One(file, compile.Options{Kinds: source})
			if err != nil {
				t.Fatal(err)
			}
			if (p == nil) != (len(errs) > 0) {
				t.Errorf("a pipeline or errors, not %v and %v (loading: %v)", p, errs, loadErrs)
			}
		}
	})
}
