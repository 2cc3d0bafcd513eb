package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestHoleNextToOthersIsText: a hole that is next to other text on one path through the template is text on every path.
func TestHoleNextToOthersIsText(t *testing.T) {
	image := "spec:\n  containers:\n  {{- range .containers }}\n  - image: {{ .image }}{{ with .tag }}:{{ . }}{{ end }}{{ with .digest " +
		"}}@{{ . }}{{ end }}\n  {{- end }}\n"
	for _, test := range []struct {
		template string
		data     map[string]any
		want     string // as JSON, or a part of the error
		reason   string
	}{
		{image, map[string]any{"containers": []any{map[string]any{"image": map[string]any{"privileged": true}}}},
			"a map cannot be used inside text", "no tag and no digest leave the first hole alone in its scalar"},
		{image, map[string]any{"containers": []any{map[string]any{"image": "web", "tag": "1.10"}}}, `"image":"web:1.10"`, "the ordinary case"},
		{"a: {{ .x }}{{ if .y }}-{{ .y }}{{ end }}", map[string]any{"x": int64(5), "y": ""}, `"a":"5"`,
			"a number that stands alone on this path"},
		{"a: {{ .x }}{{ if .y }}-{{ .y }}{{ end }}", map[string]any{"x": []any{"b"}, "y": ""}, "a list cannot be used inside text", "a list"},
		{"a: {{ .x | toJson }}{{ if .y }}-{{ .y }}{{ end }}", map[string]any{"x": []any{"b"}, "y": ""}, `"a":"[\"b\"]"`, "toJson gives its text"},
		{"a: {{ if .y }}{{ .y }}{{ end }}{{ if not .y }}{{ .x }}{{ end }}", map[string]any{"x": int64(5), "y": ""}, `"a":5`,
			"conditions that exclude each other leave each hole alone"},
		{"a: {{ if .y }}{{ .y }}{{ else }}{{ .x }}{{ end }}", map[string]any{"x": int64(5), "y": ""}, `"a":5`, "as if and else do"},
		{"a: {{ if .y }}{{ .y }}{{ else if .z }}{{ .z }}{{ else }}{{ .x }}{{ end }}", map[string]any{"x": int64(5), "y": "", "z": ""}, `"a":5`,
			"as else if does"},
		{`{{ define "p" }}{{ .x }}{{ end }}a: {{ template "p" . }}` + "\n" + `b: "--p={{ template "p" . }}"`, map[string]any{"x": int64(5)},
			`"a":5,"b":"--p=5"`, "a template that is printed at two places has two places"},
		{`{{ define "p" }}{{ .x }}{{ end }}a: {{ template "p" . }}{{ with .y }}-{{ . }}{{ end }}`, map[string]any{"x": map[string]any{"a": "b"},
			"y": ""}, "a map cannot be used inside text", "one that is printed at one place has one"},
	} {
		tpl, err := Compile(test.template, Options{})
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		doc, err := tpl.Execute(Data{Upstream: test.data})
		got := fmt.Sprint(err)
		if err == nil {
			got = mustJSON(t, doc)
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: %s: got %s, want %s", test.reason, test.template, got, test.want)
		}
	}
}

// TestStructureEntersOnlyAtListedHoles makes templates with random branches around random holes and executes them for upstreams
// with maps and lists everywhere: none may get through a hole that is listed as text.
func TestStructureEntersOnlyAtListedHoles(t *testing.T) {
	const rounds = 4000
	compiled, entered, refused := 0, 0, 0
	for seed := range uint64(rounds) {
		g := &templateMaker{Rand: rand.New(rand.NewPCG(seed, 1))}
		text := g.document()
		tpl, err := Compile(text, Options{})
		if err != nil {
			continue
		}
		compiled++
		open := map[string]bool{}
		for _, h := range tpl.Holes() {
			if name := holeName.FindString(h.Text); h.Structure && name != "" {
				open[name] = true
			}
		}
		for range 6 {
			doc, err := tpl.Execute(Data{Upstream: g.upstream()})
			var e *Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("seed %d: %s: %v", seed, text, err)
			}
			if err != nil {
				refused++
				continue
			}
			for _, name := range structures(doc, nil) {
				entered++
				if !open[name] {
					t.Fatalf("seed %d: a map or list came through the hole .%s, which lets none in:\n%s\n%v", seed, name, text, doc)
				}
			}
		}
	}
	if compiled < rounds/4 || entered < 100 || refused < 100 {
		t.Errorf("%d templates compiled, %d structures entered, %d renderings were refused: the test has lost its grip", compiled,
			entered, refused)
	}
}

var mark = regexp.MustCompile(`^mark-h[0-9]+$`)

var holeName = regexp.MustCompile(`h[0-9]+`)

// templateMaker makes templates with the holes .h0, .h1 and so on.
type templateMaker struct {
	*rand.Rand
	holes int
	names []string
}

func (g *templateMaker) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *templateMaker) document() string {
	var b strings.Builder
	for i := range 1 + g.IntN(2) {
		if i == 0 && g.IntN(4) == 0 {
			g.names = append(g.names, "t")
			fmt.Fprintf(&b, `{{ define "t" }}%s{{ end }}`, g.pieces(1))
		}
		switch key := "k" + strconv.Itoa(i); g.IntN(6) {
		case 0:
			fmt.Fprintf(&b, "%s:\n{{- range $.list }}\n- a: %s\n{{- end }}\n", key, g.pieces(2))
		case 1:
			fmt.Fprintf(&b, "%s: [%s, %s]\n", key, g.pieces(2), g.pieces(1))
		case 2:
			fmt.Fprintf(&b, "%s: |\n  %s\n", key, g.pieces(1))
		case 3:
			fmt.Fprintf(&b, "%s: \"%s\"\n", key, g.pieces(1))
		default:
			fmt.Fprintf(&b, "%s: %s\n", key, g.pieces(2))
		}
	}
	return b.String()
}

// pieces returns what may be in one scalar: holes, text, and branches with more of them.
func (g *templateMaker) pieces(depth int) string {
	var b strings.Builder
	for range 1 + g.IntN(3) {
		switch n := g.IntN(10); {
		case n < 4 || depth == 0:
			b.WriteString(g.hole())
		case n == 4:
			b.WriteString(g.pick("-", ":", "@", "x", " # "))
		case n == 5 && len(g.names) > 0:
			b.WriteString(g.pick(`{{ template "t" $ }}`, `{{ include "t" $ }}`, `{{ include "t" $ | trunc 5 }}`))
		case n == 6:
			fmt.Fprintf(&b, "{{ with $.c%d }}%s{{ end }}", g.IntN(3), g.pieces(depth-1))
		case n == 7:
			fmt.Fprintf(&b, "{{ range $.list }}%s{{ end }}", g.pieces(depth-1))
		case n == 8:
			fmt.Fprintf(&b, "{{ if not $.c%d }}%s{{ end }}", g.IntN(3), g.pieces(depth-1))
		default:
			fmt.Fprintf(&b, "{{ if $.c%d }}%s{{ else }}%s{{ end }}", g.IntN(3), g.pieces(depth-1), g.pieces(depth-1))
		}
	}
	return b.String()
}

func (g *templateMaker) hole() string {
	g.holes++
	return fmt.Sprintf("{{ $.h%d%s }}", g.holes-1, g.pick("", "", "", " | omitempty", " | toJson", " | quote", " | default \"d\"", " | toYaml",
		" | toYaml | nindent 4"))
}

// upstream has a marked map or list, or sometimes text, in each field, and random conditions.
func (g *templateMaker) upstream() map[string]any {
	up := map[string]any{"list": []any{"one", "two"}[:g.IntN(3)]}
	for i := range 3 {
		up["c"+strconv.Itoa(i)] = g.pick("", "yes")
	}
	for i := range g.holes {
		name := "h" + strconv.Itoa(i)
		switch up[name] = any("text"); g.IntN(4) {
		case 0, 1:
			up[name] = map[string]any{"mark-" + name: "x"}
		case 2:
			up[name] = []any{"mark-" + name}
		}
	}
	return up
}

// structures lists the holes that have a map or list in a document.
func structures(v any, found []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if mark.MatchString(key) { // otherwise it is part of a text
				found = append(found, strings.TrimPrefix(key, "mark-"))
			}
			found = structures(value, found)
		}
	case []any:
		for _, item := range v {
			if text, _ := item.(string); mark.MatchString(text) {
				found = append(found, strings.TrimPrefix(text, "mark-"))
			}
			found = structures(item, found)
		}
	}
	return found
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
