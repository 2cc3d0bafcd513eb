package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/render"
)

func TestFields(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"scalars have values, maps none", "a: 1\nb: {c: x}", "1 a=1 always; 2 b always; 2 b.c=x always"},
		{"three levels and no deeper, and nothing in lists", "a: {b: {c: {d: 1}}}\nl: [{x: 1}]",
			"1 a always; 1 a.b always; 1 a.b.c always; 2 l always"},
		{"a hole has a part in it", "a: {{ .x }}\nb: \"{{ .x }}\"\nc: x-{{ .x }}", "1 a always; 2 b always; 3 c always"},
		{"a key with a hole is no field", "{{ .x }}: 1\nb: 2", "2 b=2 always"},
		{"what may be left out",
			"a: {{ .x | omitempty }}\nb: \"{{ .x | omitempty }}\"\nc:\n  {{- toYaml .x | omitempty | nindent 2 }}\nd:\n  {{- toYaml .l | " +
				"omitempty | nindent 2 }}",
			"1 a always optional; 2 b always optional; 3 c always optional; 5 d always optional"},
		{"a condition", "a: 1\n{{- if .x }}\nb: 2\n{{- end }}", "1 a=1 always; 3 b=2"},
		{"either way, in the line of the first", "a: 1\n{{- if .x }}\nb: 2\n{{- else }}\nb: 2\n{{- end }}", "1 a=1 always; 3 b=2 always"},
		{"one or the other", "{{- if .x }}\nb: 2\n{{- else }}\nb: \"2\"\n{{- end }}", "2 b=2; 4 b=2"},
		{"a loop may print nothing", "a: 1\n{{- range .x }}\nb: 2\n{{- end }}", "1 a=1 always; 3 b=2"},
		{"what an include prints stands where it is included", "{{- define \"t\" }}\nb: 1\n{{- end }}\na: {{- include \"t\" . | nindent 2 }}",
			"4 a always; 4 a.b=1 always"},
		{"null", "a:", "1 a=<nil> always"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tmpl, err := render.Compile(tc.text, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range tmpl.Fields() {
				text := fmt.Sprintf("%d %s", f.Line, strings.Join(f.Path, "."))
				if f.Constant {
					text += fmt.Sprintf("=%v", f.Value)
				}
				if f.Always {
					text += " always"
				}
				if f.Optional {
					text += " optional"
				}
				got = append(got, text)
			}
			if have := strings.Join(got, "; "); have != tc.want {
				t.Errorf("got  %s\nwant %s", have, tc.want)
			}
		})
	}
}
