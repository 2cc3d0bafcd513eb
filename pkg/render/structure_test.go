package render

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
)

// TestStructureEntersOnlyAtListedHoles makes templates with random branches around random holes and executes them for
// upstreams with maps and lists everywhere: none may get through a hole that is listed as text.
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
		for _, h := range tpl.Holes {
			if name := holeName.FindString(h.Text); h.Structure && name != "" {
				open[name] = true
			}
		}
		for range 6 {
			doc, err := tpl.Execute(program.Data{Upstream: g.upstream()})
			var e *parsing.Error
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
