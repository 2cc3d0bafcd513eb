package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

func TestManyPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(page, []byte(text), 0o644))
	}
	samples := []manySample{
		{Operators: 1, Kinds: 1, Ready: 1, Requests: map[string]int{"watch configmaps": 1}, Anonymous: 20e6, Goroutines: 50},
		{
			Operators: 201, Kinds: 50, Ready: 3, Requests: map[string]int{"watch configmaps": 201, "get discovery": 11},
			Anonymous: 80e6, Goroutines: 5050,
			Reload: &reloadSample{Active: 0.25, CPU: 0.5, Reloaded: 1, Requests: map[string]int{"patch configmaps": 1, "get version": 1}},
			Noise:  []noiseSample{{Noise: noNoise, P50: 0.005, P99: 0.02, Writes: 60}},
		},
	}
	write("# Title\n" + manyBegin + "no section after it\n")
	if err := replaceSection(page, manyBegin, sectionEnd, manyTables(samples)); err == nil {
		t.Error("a page without a section after the heading gives no error")
	}
	write("# Title\n" + manyBegin + "old\n" + sectionEnd + "Next\n")
	must.Do(t, replaceSection(page, manyBegin, sectionEnd, manyTables(samples)))
	text := must.Get(os.ReadFile(page)).In(t)
	for _, want := range []string{
		"# Title\n" + manyBegin, sectionEnd + "Next\n",
		"| | 1 operator, 1 kind | 201 operators, 50 kinds | each operator adds |",
		"| all operators work after | 1.00 s | 3.00 s | 10.00 ms |",
		"| requests of the start | 1 | 212 | 1.1 |",
		"| watches | 1 | 201 | 1.0 |",
		"| anonymous memory | 20 MB | 80 MB | 300 KB |",
		"| goroutines | 50 | 5,050 | 25.0 |",
		"| get discovery | 0 | 11 |",
		"| operators started again | 1 |", "| 1 get version, 1 patch configmaps |",
		"| " + noNoise + " | 5 ms | 20 ms | 60 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "old") {
		t.Errorf("the page has what was there before:\n%s", text)
	}
}

// The operators of one kind have configs of which two select equally, and names of their own.
func TestMembers(t *testing.T) {
	const kinds = 3
	names := map[string]bool{}
	for i := range kinds * len(tiers) {
		m := memberAt(i, kinds)
		if m.kind != i%kinds || names[m.name()] {
			t.Errorf("operator %d is %s, of kind %d", i, m.name(), m.kind)
		}
		names[m.name()] = true
		text := m.config("first")
		must.Same(t, (m == noisy), strings.Contains(text, "inputs:"), m.name(), "reads an input")
	}
}
