//go:build controlplane

package site

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"golang.org/x/net/html"
)

// TestEveryExampleIsAPage: each example has a page, which has every file of it, word for word, and is listed by the
// others.
func TestEveryExampleIsAPage(t *testing.T) {
	_, documents := site(t)
	readmes, err := filepath.Glob("../examples/configs/*/README.md")
	if err != nil || len(readmes) < 10 {
		t.Fatalf("found the examples %v (%v)", readmes, err)
	}
	for _, readme := range readmes {
		folder := filepath.Dir(readme)
		name := "examples/" + filepath.Base(folder) + ".html"
		page, ok := documents[name]
		if !ok {
			t.Errorf("%s has no page", folder)
			continue
		}
		var files []string
		for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
			found, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		for _, file := range files {
			if text := strings.TrimSpace(readFile(t, file)); !strings.Contains(page.text, text) {
				t.Errorf("%s does not show %s", name, file)
			}
		}
		for _, from := range []string{"examples/index.html", "examples/hello.html"} {
			if !contains(documents[from].links, filepath.Base(name)) {
				t.Errorf("%s has no link to %s", from, name)
			}
		}
	}
}

func contains(links []string, name string) bool {
	for _, address := range links {
		if filepath.Base(address) == name {
			return true
		}
	}
	return false
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFrontPageSaysWhatThePagesSay: a command or a figure on the front page that its page no longer has ends the build.
func TestFrontPageSaysWhatThePagesSay(t *testing.T) {
	_, documents := site(t)
	front := documents["index.html"]
	for _, want := range []string{
		"image: {{ .spec.image }}", "image: registry.example.com/hello:1.0", "corollary run -c operator.yaml", "helm install",
	} {
		if !strings.Contains(front.text, want) {
			t.Errorf("the front page does not show %q", want)
		}
	}
	for _, page := range []string{"faq.html", "glossary.html", "comparison.html", "performance.html", "examples/index.html"} {
		if !contains(front.links, filepath.Base(page)) {
			t.Errorf("the front page has no link to %s", page)
		}
	}
	for _, test := range []struct{ page, old, new, want string }{
		{"performance.md", "| 10.1 KB | 2.7 KB |", "| 10.1 KB | 99.9 KB |", `the figure "2.7 KB of heap" is taken from`},
		{"operations.md", "helm install corollary charts", "helm install operators charts", "does not have the command"},
	} {
		root := t.TempDir()
		copyFolders(t, root)
		path := filepath.Join(root, "docs", test.page)
		changed := strings.ReplaceAll(readFile(t, path), test.old, test.new)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, said, err := build(t, root); err == nil || !strings.Contains(said, test.want) {
			t.Errorf("with another %s hugo ended with %v and said:\n%s", test.page, err, said)
		}
	}
}

// TestNothingIsWiderThanAPhone: every table and every block of code is in a frame of its own, which can be moved
// sideways. A table that compares Corollary with others has a choice for each of them, and the style sheet has a rule
// for each choice.
func TestNothingIsWiderThanAPhone(t *testing.T) {
	dir, documents := site(t)
	style := readFile(t, filepath.Join(dir, "site.css"))
	for _, rule := range []string{".table {", "pre { ", "overflow-x: auto"} {
		if !strings.Contains(style, rule) {
			t.Errorf("the style sheet has no %q", rule)
		}
	}
	compared := 0
	for name, d := range documents {
		for _, table := range d.tables {
			frame := table.Parent
			if !strings.HasPrefix(attribute(frame, "class"), "table") && attribute(frame, "class") != "lntd" {
				t.Errorf("%s: a table stands in no frame, but in <%s class=%q>", name, frame.Data, attribute(frame, "class"))
			}
			columns, own, choices := countColumns(table), false, map[string]bool{}
			for n := range frame.Descendants() {
				own = own || n.Data == "th" && attribute(n, "class") == "own"
				if n.Data == "input" {
					choices[attribute(n, "value")] = true
				}
			}
			if !own {
				continue
			}
			compared++
			if len(choices) != columns-2 {
				t.Errorf("%s: a comparison of %d columns has the choices %v", name, columns, choices)
			}
			for value := range choices {
				if !strings.Contains(style, fmt.Sprintf(`[value="%s"]:checked) :is(td, th):nth-child(%[1]s)`, value)) {
					t.Errorf("the style sheet has no rule for column %s of %s", value, name)
				}
			}
		}
	}
	if compared < 4 {
		t.Errorf("found %d comparisons only", compared)
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func countColumns(table *html.Node) int {
	count := 0
	for n := range table.Descendants() {
		if n.Data == "th" {
			count++
		}
	}
	return count
}

// TestSearchRanks runs the search's own code: a title goes before a heading, a heading before a text, and what was
// found is marked.
func TestSearchRanks(t *testing.T) {
	dir, _ := site(t)
	vm := goja.New()
	for _, script := range []string{"sections.js", "rank.js"} {
		if _, err := vm.RunString(readFile(t, filepath.Join(dir, script))); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
	}
	for _, test := range []struct{ query, sections, want, reason string }{
		{"drift", `[{page:"A",heading:"B",text:"drift and "+"drift ".repeat(9)},
			{page:"A",heading:"Of drift",text:""}, {page:"Of drift",heading:"Of drift",text:""}]`,
			"Of drift/Of drift, A/Of drift, A/B", "title, heading, text"},
		{"drift", `[{page:"A",heading:"B",text:"a drift"}, {page:"A",heading:"C",text:"drift and drift"}]`, "A/C, A/B", "how often"},
		{"hash key", `[{page:"A",heading:"Hash",text:""}, {page:"A",heading:"B",text:"key of a hash"}]`, "A/B", "all words"},
		{"guard", `[{page:"A",heading:"Safeguards",text:""}, {page:"A",heading:"The guard",text:""}]`, "A/The guard, A/Safeguards", "beginnings of words"},
		{"a.b(", `[{page:"A",heading:"a-b",text:""}, {page:"A",heading:"B",text:"call a.b(c)"}]`, "A/B", "no pattern"},
		{" ", `[{page:"A",heading:"B",text:""}]`, "", "nothing asked"},
		{"performance", "sections", "Performance/Performance", "a page of the site"},
		{"adoption", "sections", "Glossary/Adoption", "a heading of the site"},
		{"whose object", "sections", "Conditions, states and reasons/Whose object is it", "two words"},
	} {
		found := run(t, vm, fmt.Sprintf(`ranking.find(%s, %q).map(s => s.page + "/" + s.heading).join(", ")`, test.sections, test.query))
		if found != test.want && (test.sections != "sections" || !strings.HasPrefix(found, test.want+", ")) {
			t.Errorf("%s: %q finds %.200s, want %s", test.reason, test.query, found, test.want)
		}
	}
	for _, test := range []struct{ text, query, want string }{
		{"The Drift of a driftwood", "drift", "The [Drift] of a [drift]wood"},
		{"<b> a.b axb", "A.B", "<b> [a.b] axb"},
		{"nothing", "", "nothing"},
	} {
		text, err := json.Marshal(test.text)
		if err != nil {
			t.Fatal(err)
		}
		marked := run(t, vm, fmt.Sprintf(`ranking.marked(%s, %q).map(([p, found]) => found ? "["+p+"]" : p).join("")`, text, test.query))
		if marked != test.want {
			t.Errorf("%q in %q: %s, want %s", test.query, test.text, marked, test.want)
		}
	}
}

func run(t *testing.T, vm *goja.Runtime, script string) string {
	t.Helper()
	value, err := vm.RunString(script)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return value.String()
}
