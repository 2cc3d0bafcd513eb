package load

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const digestApp = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch: {apiVersion: tools.example.com/v1, kind: App}
conventionsFile: conv
helpersFile: h.tmpl
parameters: {a: 1, b: {c: [x, y]}}
downstreams:
  - name: web
    apiVersion: v1
    kind: ConfigMap
    templateFile: web.tmpl
    drift: {initialFields: [.a], exclusiveFields: [.b]}
  - name: inline
    apiVersion: v1
    kind: ConfigMap
    template: "a: b\n"
conventions:
  fieldManager: app
  hash: {annotation: tools.example.com/hash}
  finalizer: tools.example.com/cleanup
deletion:
  before:
    apiVersion: batch/v1
    kind: Job
    templateFile: job.tmpl
    doneWhen: "true"
guard: {confirmed: abc}
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
`

// digestFiles are the files of an operator, by name.
var digestFiles = map[string]string{
	"app.yaml": digestApp,
	"conv": "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {labels: {tools.example.com/by: x, " +
		"tools.example.com/a: b}}\n",
	"web.tmpl": "metadata: {}\n",
	"h.tmpl":   `{{ define "x" }}{{ end }}`,
	"job.tmpl": "metadata: {name: x}\n",
}

func digest(t *testing.T, files map[string]string, set ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	loaded, errs := Operators(Options{Files: []string{filepath.Join(dir, "app.yaml")}, Set: set})
	if err := errs.Err(); err != nil {
		t.Fatal(err)
	}
	return loaded[0].Digest()
}

func TestDigest(t *testing.T) {
	base := digest(t, digestFiles)
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(base) {
		t.Errorf("digest %q", base)
	}
	for _, tc := range []struct {
		reason, file, old, new string
		set                    string
		inline, same           bool // inline: the operator has the shared labels itself
	}{
		{reason: "the same text", same: true},
		{reason: "a comment", file: "app.yaml", old: "metadata:", new: "# note\nmetadata:", same: true},
		{reason: "the order of keys", file: "app.yaml", old: "a: 1, b: {c: [x, y]}", new: "b: {c: [x, y]}, a: 1", same: true},
		{reason: "a default that is written out", file: "app.yaml", old: "kind: ConfigMap\n", new: "kind: ConfigMap\n    when: \"true\"\n",
			same: true},
		{reason: "a confirmation", file: "app.yaml", old: "confirmed: abc", new: "confirmed: def", same: true},
		{reason: "an inline template instead of a file of that text", file: "app.yaml", old: "templateFile: web.tmpl",
			new: `template: "metadata: {}\n"`, same: true},
		{reason: "inline helpers instead of a file of that text", file: "app.yaml", old: "helpersFile: h.tmpl",
			new: "helpers: '{{ define \"x\" }}{{ end }}'", same: true},
		{reason: "the text of the helpers", file: "h.tmpl", old: `"x"`, new: `"y"`},
		{reason: "the template of deletion.before inline", file: "app.yaml", old: "templateFile: job.tmpl", new: `template: "metadata: {name: x}\n"`,
			same: true},
		{reason: "shared conventions written out", file: "app.yaml", old: "conventionsFile: conv\n", new: "", inline: true, same: true},
		{reason: "a label's value that an override repeats", set: "app:.conventions.labels['tools.example.com/a']=b", same: true},
		{reason: "the order of keys in the shared file", file: "conv", old: "tools.example.com/by: x, tools.example.com/a: b",
			new: "tools.example.com/a: b, tools.example.com/by: x", same: true},
		{reason: "a value that moves to the shared file", file: "conv", old: "{labels", new: "{finalizer: tools.example.com/cleanup, labels",
			same: true},
		{reason: "a parameter", file: "app.yaml", old: "a: 1", new: "a: 2"},
		{reason: "the order of a list", file: "app.yaml", old: "[x, y]", new: "[y, x]"},
		{reason: "the type of a value", file: "app.yaml", old: "a: 1", new: `a: "1"`},
		{reason: "the guard", file: "app.yaml", old: "confirmed: abc", new: "confirmed: abc, minimum: 3"},
		{reason: "an inline template", file: "app.yaml", old: `"a: b\n"`, new: `"a: c\n"`},
		{reason: "a templateFile's text", file: "web.tmpl", old: "{}", new: "{name: y}"},
		{reason: "the text of deletion.before", file: "job.tmpl", old: "x", new: "y"},
		{reason: "a shared value", file: "conv", old: "a: b", new: "a: c"},
		{reason: "an override", set: "app:.downstreams[name=web].when=self.a"},
		{reason: "an override of a shared value", set: "app:.conventions.labels['tools.example.com/a']=c"},
		{reason: "who it acts as", file: "app.yaml", old: "parameters:", new: "serviceAccount: {namespace: a, name: b}\nparameters:"},
		{reason: "the mode", file: "app.yaml", old: "parameters:", new: "mode: Observe\nparameters:"},
	} {
		files := maps.Clone(digestFiles)
		if tc.file != "" {
			if !strings.Contains(files[tc.file], tc.old) {
				t.Fatalf("%s: %s does not hold %q", tc.reason, tc.file, tc.old)
			}
			files[tc.file] = strings.Replace(files[tc.file], tc.old, tc.new, 1)
		}
		if tc.inline {
			files["app.yaml"] = strings.Replace(files["app.yaml"], "conventions:\n",
				"conventions:\n  labels: {tools.example.com/by: x, tools.example.com/a: b}\n", 1)
		}
		var set []string
		if tc.set != "" {
			set = []string{tc.set}
		}
		if got := digest(t, files, set...); (got == base) != tc.same {
			t.Errorf("%s: same is %v, want %v", tc.reason, got == base, tc.same)
		}
	}
}

// Digest leaves the operator as it is.
func TestDigestChangesNothing(t *testing.T) {
	f, _ := loadText(t, digestApp)
	f.Digest()
	if f.Downstreams[0].TemplateFile == "" || f.Deletion.Before.TemplateFile == "" || f.Guard.Confirmed == "" || f.ConventionsFile == "" {
		t.Errorf("the operator was changed: %+v", f.Operator)
	}
}
