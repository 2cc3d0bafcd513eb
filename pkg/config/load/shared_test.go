package load

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// What a conventionsFile gives keeps its place there for the stages after Load.
func TestSharedPlaces(t *testing.T) {
	dir := t.TempDir()
	app, conv := filepath.Join(dir, "conf", "app.yaml"), filepath.Join(dir, "conventions.yaml")
	write(t, app, fmt.Sprintf(minimal, "conventionsFile: ../conventions.yaml\n", "    template: x\n"))
	write(t, conv, `apiVersion: corollary.dev/v1alpha1
kind: Conventions
conventions:
  annotations:
    tools.example.com/name: |
      {{ .metadata.name }}
  labels:
    tools.example.com/by: shared
  finalizer: tools.example.com/cleanup
`)
	files, errs := Operators(Options{Files: []string{filepath.Dir(app)}})
	must.Do(t, errs.Err())
	f := files[0]
	if f.Conventions.Finalizer != "tools.example.com/cleanup" || f.Conventions.Labels["tools.example.com/by"] != "app" {
		t.Errorf("conventions %+v", f.Conventions)
	}
	for _, tc := range []struct {
		reason, path, file string
		line, text         int
	}{
		{"a value of the shared file", "conventions.finalizer", conv, 9, 9},
		{"a block scalar of it begins a line below", "conventions.annotations['tools.example.com/name']", conv, 5, 6},
		{"a map of it", "conventions.annotations", conv, 4, 4},
		{"an own value", "conventions.fieldManager", app, 12, 12},
		{"an own value that hides a shared one", "conventions.labels['tools.example.com/by']", app, 13, 13},
		{"what neither gives belongs in the own file", "conventions.pause", app, 11, 11},
	} {
		e := f.Errorf(tc.path, "", "x")
		if e.File != tc.file || e.Line != tc.line {
			t.Errorf("%s: Errorf says %s:%d, want %s:%d", tc.reason, e.File, e.Line, tc.file, tc.line)
		}
		if file, line := f.TextPos(tc.path); file != tc.file || line != tc.text {
			t.Errorf("%s: TextPos says %s:%d, want line %d", tc.reason, file, line, tc.text)
		}
		if line := f.Line(tc.path); tc.file == conv && line != 0 || tc.file == app && line != tc.line {
			t.Errorf("%s: Line says %d", tc.reason, line)
		}
	}
}

// An error in a file of conventions makes the operators that name it invalid, and no others; and what one operator
// changes of it by an override is not changed for the other.
func TestSharedBySeveral(t *testing.T) {
	dir := t.TempDir()
	other := func(name string) string {
		return strings.NewReplacer("name: app}", "name: "+name+"}", "fieldManager: app", "fieldManager: "+name, "kind: App", "kind: "+name).
			Replace(fmt.Sprintf(minimal, "", "    template: x\n"))
	}
	write(t, filepath.Join(dir, "a.yaml"), other("a")+"conventionsFile: conv\n")
	write(t, filepath.Join(dir, "b.yaml"), other("b")+"conventionsFile: conv\n")
	write(t, filepath.Join(dir, "c.yaml"), other("c"))
	text := "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {labels: {tools.example.com/x: shared}}\n"
	write(t, filepath.Join(dir, "conv"), text)

	set := []string{"a:.conventions.labels['tools.example.com/x']=own"}
	files, errs := Operators(Options{Files: []string{dir}, Set: set})
	must.Do(t, errs.Err())
	const key = "tools.example.com/x"
	if a, b := files[0].Conventions.Labels[key], files[1].Conventions.Labels[key]; a != "own" || b != "shared" {
		t.Errorf("labels %q and %q", a, b)
	}

	if files[0].shared != files[1].shared {
		t.Error("the file was read twice, and may have changed in between")
	}

	write(t, filepath.Join(dir, "conv"), text+"extra: 1\n")
	files, errs = Operators(Options{Files: []string{dir}, Set: set})
	if len(errs) != 1 || files[0].Valid() || files[1].Valid() || !files[2].Valid() {
		t.Errorf("%v: valid are %v, %v, %v", errs, files[0].Valid(), files[1].Valid(), files[2].Valid())
	}
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	app := filepath.Join(dir, "conf", "app.yaml")
	write(t, app, fmt.Sprintf(minimal, "conventionsFile: ../conv.yaml\nhelpersFile: h.tmpl\n", "    templateFile: t/web.tmpl\n")+
		"deletion: {before: {templateFile: t/job.tmpl}}\n")
	files, _ := Operators(Options{Files: []string{app}})
	want := []string{app, filepath.Join(dir, "conv.yaml"), filepath.Join(dir, "conf/h.tmpl"), filepath.Join(dir, "conf/t/web.tmpl"),
		filepath.Join(dir, "conf/t/job.tmpl")}
	must.Same(t, want, files[0].Sources(), "files that are not there count too")
	if file, line := files[0].BeforeTemplatePos(); file != want[4] || line != 1 {
		t.Errorf("the template of deletion.before stands at %s:%d", file, line)
	}

	f, _ := loadText(t, fmt.Sprintf(minimal, "deletion:\n  before:\n    template: |\n      x\n", "    templateFile: web.tmpl\n"))
	must.Same(t, []string{"web.tmpl"}, f.Sources(), "standard input is no file")
	if file, line := f.BeforeTemplatePos(); file != document.StdinName || line != 8 {
		t.Errorf("the template of deletion.before stands at %s:%d", file, line)
	}
}
