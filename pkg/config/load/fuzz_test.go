package load

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/corollary-dev/corollary/internal/must"
)

// FuzzLoad: no text and no override makes Load panic, every error says where, what and how to fix it, and
// every place that errors and later stages ask for can be asked for.
func FuzzLoad(f *testing.F) {
	var names []string
	for _, pattern := range caseFiles {
		found := must.Get(filepath.Glob(pattern)).In(f)
		names = append(names, found...)
	}
	for _, name := range names {
		a := must.Get(txtar.ParseFile(name)).In(f)
		set := ""
		for line := range strings.Lines(string(a.Comment)) {
			if s, ok := strings.CutPrefix(strings.TrimSpace(line), "set: "); ok {
				set = s
			}
		}
		f.Add(string(a.Files[0].Data), set)
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		o := Options{Files: []string{"-"}, Stdin: strings.NewReader(text), Env: []string{EnvPrefix + "X=" + set}}
		if set != "" {
			o.Set = []string{set}
		}
		files, errs := Operators(o)
		for _, e := range errs {
			if e.File == "" || e.Problem == "" || strings.Contains(e.Problem, "%!") {
				t.Errorf("bad error %#v", e)
			}
		}
		for _, file := range files {
			if !file.Valid() && len(errs) == 0 {
				t.Error("not valid, yet nothing is wrong")
			}
			for i := range file.Downstreams {
				if _, line := file.TemplatePos(i); line < 1 {
					t.Errorf("template %d stands at line %d", i, line)
				}
				file.Line(fmt.Sprintf("downstreams[%d].when", i))
			}
			if _, line := file.BeforeTemplatePos(); line < 1 {
				t.Errorf("the template of deletion.before stands at line %d", line)
			}
			if file.Digest() == "" || len(file.Sources()) > len(file.Downstreams)+3 {
				t.Errorf("digest %s, sources %v", file.Digest(), file.Sources())
			}
		}
	})
}
