package load

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// The first line of downstreams is line 5 of minimal, so web's fields begin in line 7 and its template in line 9.
func TestTemplatePos(t *testing.T) {
	for _, tc := range []struct {
		reason, template string
		line             int
		text             string
	}{
		{"a block scalar begins below its |", "    template: |\n      a: b\n", 10, "a: b\n"},
		{"with chomping and indentation", "    template: |2-\n        a: b\n", 10, "  a: b"},
		{"with a comment behind it", "    template: | # note\n      a: b\n", 10, "a: b\n"},
		{"empty lines at its head are part of it", "    template: |\n\n      a: b\n", 10, "\na: b\n"},
		{"a folded one too", "    template: >\n      a: b\n      c: d\n", 10, "a: b c: d\n"},
		{"behind an anchor", "    template: &t |\n      a: b\n", 10, "a: b\n"},
		{"behind a tag", "    template: !!str |\n      a: b\n", 10, "a: b\n"},
		{"on the line below an anchor", "    template: &t\n      # note\n      |\n      a: b\n", 12, "a: b\n"},
		{"a plain line", "    template: text\n", 9, "text"},
		{"a quoted line", "    template: \"a: b\"\n", 9, "a: b"},
		{"on the line below the key", "    template:\n      'a: b'\n", 10, "a: b"},
		{"further down in the item", "    when: |\n      true\n    template: |\n      a: b\n", 12, "a: b\n"},
		{"an alias stands where it points to", "    ready: {messageFrom: \"''\", rules: [{rule: &t \"x\"}]}\n    template: *t\n", 9, "x"},
		{"Windows' line ends", "    template: |\r\n      a: b\r\n", 10, "a: b\n"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f, errs := loadText(t, fmt.Sprintf(minimal, "", tc.template))
			must.Do(t, errs.Err())
			must.Same(t, tc.text, f.Downstreams[0].Template, "template")
			if file, line := f.TemplatePos(0); file != document.StdinName || line != tc.line {
				t.Errorf("%s:%d, want line %d", file, line, tc.line)
			}
		})
	}
}

func TestTemplatePosElsewhere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.yaml"), fmt.Sprintf(minimal, "", "    templateFile: sub/web.tmpl\n"))
	write(t, filepath.Join(dir, "sub/web.tmpl"), "a: b\n")
	files, errs := Operators(Options{Files: []string{dir}})
	must.Do(t, errs.Err())
	if file, line := files[0].TemplatePos(0); file != filepath.Join(dir, "sub/web.tmpl") || line != 1 {
		t.Errorf("templateFile: %s:%d", file, line)
	}
	if file, line := files[0].TemplatePos(7); file != files[0].Path || line < 1 {
		t.Errorf("no such downstream: %s:%d", file, line)
	}

	f, errs := loadText(t, fmt.Sprintf(minimal, "", "    template: |\n      a: b\n"), "app:.downstreams[name=web].template=c")
	must.Do(t, errs.Err())
	if file, line := f.TemplatePos(0); file != "--set app:.downstreams[name=web].template=c" || line != 1 {
		t.Errorf("override: %s:%d", file, line)
	}
	must.Same(t, 0, f.Line("downstreams[0].template"), "an override has line")
}

func TestLinesAndErrorf(t *testing.T) {
	f, errs := loadText(t, fmt.Sprintf(minimal, "validate:\n  - rule: >-\n      self.a\n    message: m\n", "    template: x\n"),
		"app:.watch.labelSelector={matchLabels: {a: b}}")
	must.Do(t, errs.Err())
	for _, tc := range []struct {
		reason, path, want string
	}{
		{"the whole file", "", "<stdin>:1: bad: fix"},
		{"a list stands where its key does", "validate", "<stdin>:5: validate: bad: fix"},
		{"an item where it begins", "validate[0]", "<stdin>:6: validate[0]: bad: fix"},
		{"a value", "validate[0].message", "<stdin>:8: validate[0].message: bad: fix"},
		{"a key with dots", "conventions.labels['tools.example.com/by']", "<stdin>:16: conventions.labels['tools.example.com/by']: bad: fix"},
		{"what is missing is put where it belongs", "downstreams[0].drift.policy", "<stdin>:10: downstreams[0].drift.policy: bad: fix"},
		{"an override has no lines", "watch.labelSelector.matchLabels.a",
			"--set app:.watch.labelSelector={matchLabels: {a: b}}: watch.labelSelector.matchLabels.a: bad: fix"},
		{"what is no path stands at the top", "a b", "<stdin>:1: a b: bad: fix"},
	} {
		must.Same(t, tc.want, f.Errorf(tc.path, "fix", "%s", "bad").Error(), tc.reason)
	}
	if file, line := f.TextPos("validate[0].rule"); file != document.StdinName || line != 7 {
		t.Errorf("TextPos %s:%d", file, line)
	}
	must.Same(t, "p", (&config.Error{Problem: "p"}).Error(), "an error of no file")
}
