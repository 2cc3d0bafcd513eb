package render

import (
	"fmt"
	"strings"
	"testing"
)

func TestItem(t *testing.T) {
	for _, row := range []struct {
		reason, template, want, problem string
		item                            any
	}{
		{reason: "a field of the item", template: `name: "{{ .metadata.name }}-{{ item.name }}"`, item: map[string]any{"name": "a"}, want: `map[name:up-a]`},
		{reason: "the item itself is a whole hole", template: `spec: {{ item }}`, item: map[string]any{"name": "a"}, want: `map[spec:map[name:a]]`},
		{reason: "an item that is text", template: `name: {{ item }}`, item: "7", want: `map[name:7]`},
		{reason: "a missing field falls back", template: `name: {{ item.x | default "d" }}`, item: map[string]any{}, want: `map[name:d]`},
		{reason: "a missing field is an error", template: `name: {{ item.x }}`, item: map[string]any{}, problem: "x"},
		{reason: "a field of a field", template: `name: {{ item.a.b }}`, item: map[string]any{"a": map[string]any{"b": int64(1)}}, want: `map[name:1]`},
		{reason: "a missing field of a missing field falls back", template: `name: {{ item.a.b | default 3 }}`, item: map[string]any{}, want: `map[name:3]`},
		{reason: "with and range over the item", template: `names:{{ range item.ports }}
- {{ . }}{{ end }}`, item: map[string]any{"ports": []any{"x", "y"}}, want: `map[names:[x y]]`},
		{reason: "a field piped", template: `name: {{ item.a | upper }}`, item: map[string]any{"a": "x"}, want: `map[name:X]`},
		{reason: "in a condition", template: `a: 1{{ if item.on }}
b: 2{{ end }}`, item: map[string]any{"on": true}, want: `map[a:1 b:2]`},
		{reason: "hostile text stays text", template: `name: {{ item }}`, item: "a\nb: c", want: "map[name:a\nb: c]"},
	} {
		tmpl, err := Compile(row.template, Options{Items: true})
		if err != nil {
			t.Errorf("%s: %v", row.reason, err)
			continue
		}
		doc, err := tmpl.Execute(Data{Upstream: map[string]any{"metadata": map[string]any{"name": "up"}}, Item: row.item})
		switch {
		case row.problem != "":
			if err == nil || !strings.Contains(err.Error(), row.problem) {
				t.Errorf("%s: %v", row.reason, err)
			}
		case err != nil:
			t.Errorf("%s: %v", row.reason, err)
		default:
			if got := strings.TrimSpace(fmt.Sprint(doc)); got != row.want {
				t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
			}
		}
	}
	if _, err := Compile("a: {{ item.x }}", Options{}); err == nil || !strings.Contains(err.Error(), "forEach") {
		t.Errorf("without items: %v", err)
	}
}
