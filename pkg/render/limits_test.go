package render

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/corollary-dev/corollary/pkg/render/program"
)

func TestLargeValuesPass(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	for _, c := range []string{"a: {{ .v }}", "a: \"{{ .v }}\"", "a: |-\n  {{ .v }}", "a: |-\n{{ .v | indent 2 }}",
		"# {{ .v }}\na: {{ .v }}"} {
		doc, err := compiled(t, c).Execute(program.Data{Upstream: m{"v": text}, Budget: patient()})
		if err != nil || doc["a"] != text {
			t.Errorf("%q: a mebibyte does not arrive: %v", c, err)
		}
	}
}

func TestConcurrentExecutions(t *testing.T) {
	tmpl, err := Compile("{{ define \"n\" }}{{ .n }}{{ end }}a: {{ .n }}\nb: {{ include \"n\" . | quote }}\nc:{{ range .l }}\n  - {{ . "+
		"}}{{ else }} []{{ end }}\n", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				n := int64(g*1000 + i)
				items := l{}
				for j := range i % 7 {
					items = append(items, n+int64(j))
				}
				doc, err := tmpl.Execute(program.Data{Upstream: m{"n": n, "l": items}})
				if err != nil || doc["a"] != n || doc["b"] != fmt.Sprint(n) || len(doc["c"].(l)) != i%7 {
					t.Errorf("%d: %v, %v", n, doc, err)
				}
			}
		})
	}
	wg.Wait()
}
