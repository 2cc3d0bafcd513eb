package render

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestBombs(t *testing.T) {
	for _, c := range []struct{ template, err, reason string }{
		{"{{ range 1000000000000000 }}{{ end }}a: 1", "more than 500000 steps", "a range over an integer"},
		{"{{ range .n }}{{ end }}a: 1", "more than 500000 steps", "a number of the upstream"},
		{"{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}a: 1", "more than 500000 steps", "nested"},
		{"a: {{ until 100000000000 }}", "of text and values", "a list"},
		{"a: {{ untilStep 0 100000000000 1 }}", "of text and values", "a list"},
		{"a: {{ seq 1 100000000000 }}", "of text and values", "a text"},
		{"a: {{ repeat 100000000000 \"x\" }}", "of text and values", "a text"},
		{"a: {{ .n | int | until }}", "of text and values", "a number of the upstream"},
		{"a: {{ \"x\" | indent 100000000000 }}", "of text and values", "an indentation"},
		{"a: {{ toYaml .m | nindent .n }}", "of text and values", "an indentation of the upstream"},
		{"a: {{ indent 1000000000 \"x\" | len }}", "of text and values", "an indentation in the middle"},
		{"{{ $x := \"x\" }}{{ range until 100 }}{{ $x = printf \"%s%s\" $x $x }}{{ end }}a: {{ $x }}", "of text and values", "doubling"},
		{"{{ $x := \"x\" }}{{ range until 1000 }}{{ $x = b64enc $x }}{{ end }}a: {{ $x }}", "of text and values", "growth by encoding"},
		{"{{ $x := list 1 }}{{ range until 100 }}{{ $x = concat $x $x }}{{ end }}a: {{ $x }}", "of text and values", "doubling a list"},
		{"{{ $x := dict }}{{ range until 100 }}{{ $x = dict \"a\" $x \"b\" $x }}{{ end }}a: {{ $x }}", "more than 100000 values",
			"a value that is large only when written out"},
		{"{{ $x := dict }}{{ range until 100 }}{{ $x = dict \"a\" $x \"b\" $x }}{{ end }}a: {{ toJson $x | len }}", "of text and values",
			"the same, as text"},
		{"a:{{ range until 90000 }}\n  " + strings.Repeat("x", 300) + "{{ end }}", "of text and values", "the author's own text"},
		{"{{ define \"x\" }}{{ include \"x\" . }}{{ end }}a: {{ include \"x\" . }}", "deep", "recursion"},
		{"{{ define \"x\" }}{{ template \"x\" . }}{{ end }}a: {{ template \"x\" . }}", "deep", "recursion"},
		{"{{ define \"x\" }}{{ $a := include \"x\" . }}{{ $a }}{{ end }}a: {{ include \"x\" . | quote }}", "deep", "recursion"},
		{"{{ define \"x\" }}{{ if gt (len .) 0 }}{{ template \"x\" (rest .) }}{{ template \"x\" (rest .) }}{{ end }}{{ end }}{{ template " +
			"\"x\" (until 90) }}a: 1", "more than 500000 steps", "a tree of calls"},
		{"a: &a {b: 1}\n" + aliases(26), "more than 100000 values", "aliases of aliases"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			tmpl, err := Compile(c.template, Options{Limits: Limits{Time: time.Minute}})
			if err == nil {
				_, err = tmpl.Execute(Data{Upstream: m{"n": int64(1e15), "m": m{"a": "b"}}})
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("want %q, got %v", c.err, err)
			}
		})
	}
}

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

// aliases returns one mapping per letter, each containing the one before twice.
func aliases(n int) string {
	var b strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "%c: &%c {x: *%c, z: *%c}\n", 'a'+i, 'a'+i, 'a'+i-1, 'a'+i-1)
	}
	return b.String()
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
