package render

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestFunctionThatTakesLongCounts(t *testing.T) {
	tmpl, err := Compile("a: {{ range until 9 }}{{ derivePassword 1 \"long\" \"p\" \"u\" \"s\" }}{{ end }}",
		Options{Limits: Limits{Steps: 25_000}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Execute(Data{}); err == nil || !strings.Contains(err.Error(), "more than 25000 steps") {
		t.Errorf("nine passwords in 25,000 steps: %v", err)
	}
}

func TestLargeValuesPass(t *testing.T) {
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	for _, c := range []string{"a: {{ .v }}", "a: \"{{ .v }}\"", "a: |-\n  {{ .v }}", "a: |-\n{{ .v | indent 2 }}",
		"# {{ .v }}\na: {{ .v }}"} {
		doc, err := compiled(t, c).Execute(Data{Upstream: m{"v": text}})
		if err != nil || doc["a"] != text {
			t.Errorf("%q: a mebibyte does not arrive: %v", c, err)
		}
	}
}

func TestCacheIsBoundedByBytes(t *testing.T) {
	tmpl, err := Compile("a:{{ range .l }}\n  - {{ . }}{{ end }}\n", Options{Limits: Limits{CacheBytes: 20_000}})
	if err != nil {
		t.Fatal(err)
	}
	var all l
	for i := range 200 {
		all = append(all, int64(i))
		if _, err := tmpl.Execute(Data{Upstream: m{"l": all}}); err != nil {
			t.Fatal(err)
		}
		if tmpl.cache.size > 20_000 {
			t.Fatalf("the cache holds %d bytes", tmpl.cache.size)
		}
	}
	sum := 0
	for text, e := range tmpl.cache.entries {
		sum += len(text) + e.Value.(*cached).skeleton.size
	}
	if len(tmpl.cache.entries) == 0 || len(tmpl.cache.entries) != tmpl.cache.order.Len() || sum != tmpl.cache.size {
		t.Errorf("%d entries, %d in order, %d bytes of %d", len(tmpl.cache.entries), tmpl.cache.order.Len(), sum, tmpl.cache.size)
	}
}

func TestConcurrentExecutions(t *testing.T) {
	tmpl, err := Compile("{{ define \"n\" }}{{ .n }}{{ end }}a: {{ .n }}\nb: {{ include \"n\" . | quote }}\nc:{{ range .l }}\n  - {{ . "+
		"}}{{ else }} []{{ end }}\n", Options{Limits: Limits{CacheBytes: 8_000}})
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
				doc, err := tmpl.Execute(Data{Upstream: m{"n": n, "l": items}})
				if err != nil || doc["a"] != n || doc["b"] != fmt.Sprint(n) || len(doc["c"].(l)) != i%7 {
					t.Errorf("%d: %v, %v", n, doc, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestRunsKeepNothing(t *testing.T) {
	tmpl := compiled(t, "a: {{ .secret }}")
	r := tmpl.newRun()
	d := Data{Upstream: m{"secret": "s"}}
	r.start(d)
	if err := r.execute(d, false); err != nil {
		t.Fatal(err)
	}
	r.release()
	if r.data.Upstream != nil || r.recs[:1][0].value != nil {
		t.Error("a pooled run keeps the upstream")
	}
}
