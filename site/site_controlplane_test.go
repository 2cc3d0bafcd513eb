//go:build controlplane

// Package site tests the web site that is built from docs.
package site

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/corollary-dev/corollary/internal/tools"
)

// folders are what the site is made of.
var folders = []string{"site", "docs", "examples/configs"}

// build builds the site below root (the folders) into a new directory and returns that, or what hugo said. There is no
// network: whatever asked for one would be refused.
func build(t *testing.T, root string) (string, string, error) {
	t.Helper()
	out := t.TempDir()
	cmd := exec.Command(tools.Path(t, "hugo"), "build", "--noBuildLock", "--panicOnWarning", "--source", filepath.Join(root, "site"),
		"--destination", out)
	cmd.Env = []string{"HOME=" + t.TempDir(), "HUGO_CACHEDIR=" + t.TempDir(), "PATH=" + t.TempDir(),
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "GOPROXY=off"}
	said, err := cmd.CombinedOutput()
	return out, string(said), err
}

// document is a page of the site.
type document struct {
	title      string
	headings   int      // of the first level
	headingIDs []string // of all levels
	text       string   // what is read, by any reader
	tables     []*html.Node
	ids        map[string]bool // what can be linked to
	links      []string        // what can be clicked
	resources  []string        // what is loaded with the page
	nameless   int             // pictures that say nothing to who cannot see them
}

// read parses a page.
func read(t *testing.T, path string) document {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	root, err := html.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	d := document{ids: map[string]bool{}}
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			d.element(n)
		case html.TextNode:
			d.text += n.Data
		}
	}
	return d
}

func (d *document) element(n *html.Node) {
	attributes := map[string]string{}
	for _, a := range n.Attr {
		attributes[a.Key] = a.Val
	}
	if id := attributes["id"]; id != "" {
		d.ids[id] = true
	}
	if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data != "hr" {
		d.headingIDs = append(d.headingIDs, attributes["id"])
	}
	switch n.Data {
	case "title":
		d.title = n.FirstChild.Data
	case "h1":
		d.headings++
	case "table":
		d.tables = append(d.tables, n)
	case "a":
		d.links = append(d.links, attributes["href"])
	case "img":
		if attributes["alt"] == "" {
			d.nameless++
		}
	}
	for _, key := range []string{"src", "srcset", "data", "poster"} {
		if address := attributes[key]; address != "" {
			d.resources = append(d.resources, address)
		}
	}
	if address := attributes["href"]; n.Data == "link" && address != "" {
		d.resources = append(d.resources, address)
	}
}

// site builds the site and returns its directory and its pages by their paths in it.
func site(t *testing.T) (string, map[string]document) {
	t.Helper()
	dir, said, err := build(t, "..")
	if err != nil {
		t.Fatalf("the site cannot be built: %v\n%s", err, said)
	}
	documents := map[string]document{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".html" {
			documents[strings.TrimPrefix(path, dir+"/")] = read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, documents
}

// TestSite builds the site without a network and walks it: every page is there, every link leads somewhere, and nothing
// is loaded from elsewhere.
func TestSite(t *testing.T) {
	dir, documents := site(t)
	titles := map[string]string{}
	for name, d := range documents {
		if other := titles[d.title]; other != "" || d.title == "" {
			t.Errorf("%s and %s have the title %q", name, other, d.title)
		}
		titles[d.title] = name
		if d.headings != 1 {
			t.Errorf("%s has %d headings of the first level", name, d.headings)
		}
		if d.nameless > 0 {
			t.Errorf("%s has %d pictures without a text in their place", name, d.nameless)
		}
		for _, address := range d.links {
			if problem := follow(dir, documents, name, address); problem != "" {
				t.Errorf("%s: the link to %q %s", name, address, problem)
			}
		}
		for _, address := range d.resources {
			if strings.HasPrefix(address, "data:") {
				continue
			}
			if u, err := url.Parse(address); err != nil || u.IsAbs() || u.Host != "" {
				t.Errorf("%s loads %q, which is not of this site", name, address)
			} else if problem := follow(dir, documents, name, address); problem != "" {
				t.Errorf("%s: loading %q %s", name, address, problem)
			}
		}
	}
}

// follow returns what is wrong with an address on a page, "" where it leads somewhere. Other sites are not asked.
func follow(dir string, documents map[string]document, from, address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err.Error()
	case u.IsAbs():
		return ""
	case u.Host != "" || strings.HasPrefix(u.Path, "/"):
		return "works only where the site stands at the root of its host"
	}
	target := from
	if u.Path != "" {
		target = filepath.ToSlash(filepath.Join(filepath.Dir(from), u.Path))
	}
	if _, err := os.Stat(filepath.Join(dir, target)); err != nil {
		return "leads to no file"
	}
	if d, ok := documents[target]; u.Fragment != "" && (!ok || !d.ids[u.Fragment]) {
		return "leads to no heading of " + target
	}
	return ""
}

// TestEveryDocumentIsAPage: all that is in docs can be reached from the first page.
func TestEveryDocumentIsAPage(t *testing.T) {
	dir, documents := site(t)
	reached := map[string]bool{}
	for next := []string{"index.html"}; len(next) > 0; next = next[1:] {
		if reached[next[0]] {
			continue
		}
		reached[next[0]] = true
		for _, address := range documents[next[0]].links {
			if u, err := url.Parse(address); err == nil && !u.IsAbs() && filepath.Ext(u.Path) == ".html" {
				next = append(next, filepath.ToSlash(filepath.Join(filepath.Dir(next[0]), u.Path)))
			}
		}
	}
	err := filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		page, ok := strings.CutSuffix(strings.TrimPrefix(path, "../docs/"), ".md")
		if ok && !reached[strings.Replace(page, "README", "index", 1)+".html"] {
			t.Errorf("no link leads to the page of %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "schema/operator.v1alpha1.json")); err != nil {
		t.Error(err)
	}
}

// TestSearchLooksEverywhere: each heading of each page can be found, below it its text, and what is found can be
// opened.
func TestSearchLooksEverywhere(t *testing.T) {
	dir, documents := site(t)
	script, err := os.ReadFile(filepath.Join(dir, "sections.js"))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(string(script), "const sections = ")
	var sections []struct{ Page, Heading, Address, Text string }
	if err := json.Unmarshal([]byte(text), &sections); err != nil || !ok {
		t.Fatalf("what is searched is no list: %v\n%.200s", err, script)
	}
	found := map[string]string{}
	for _, s := range sections {
		if problem := follow(dir, documents, "index.html", s.Address); problem != "" {
			t.Errorf("%s of %s: %q %s", s.Heading, s.Page, s.Address, problem)
		}
		if s.Page == "" || s.Heading == "" {
			t.Errorf("%s has no page or heading to show: %q, %q", s.Address, s.Page, s.Heading)
		}
		found[s.Address] = s.Text
	}
	for name, d := range documents {
		for _, id := range d.headingIDs {
			if _, ok := found[name+"#"+id]; !ok {
				t.Errorf("the search does not know #%s of %s", id, name)
			}
		}
	}
	for address, want := range map[string]string{
		"operations.html#corollarypanic":   "The log has the stack",
		"templates.html#what-a-hole-gives": `image: "{{ .spec.image }}:{{ .spec.tag }}"`,
	} {
		if !strings.Contains(found[address], want) {
			t.Errorf("%s does not hold %q, but %q", address, want, found[address])
		}
	}
}

// copyFolders copies what the site is made of to below root.
func copyFolders(t *testing.T, root string) {
	t.Helper()
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join("..", folder))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadLinksEndTheBuild: whoever writes a link that leads nowhere learns it before a reader does.
func TestBadLinksEndTheBuild(t *testing.T) {
	for _, test := range []struct{ link, want, reason string }{
		{"[x](nowhere.md)", "the link to nowhere.md leads to no page", "a page that is not there"},
		{"![x](pictures/none.svg)", "leads to nothing that the site has", "a picture that is not there"},
		{"[x](../examples/configs/nowhere/operator.yaml)", "leads to no page", "an example that is not there"},
		{"[x](../../elsewhere.md)", "leads out of the repository", "a file that no reader has"},
	} {
		root := t.TempDir()
		copyFolders(t, root)
		if err := os.WriteFile(filepath.Join(root, "docs/bad.md"), []byte("# Bad\n\n"+test.link+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, said, err := build(t, root); err == nil || !strings.Contains(said, test.want) || !strings.Contains(said, "bad.md:3") {
			t.Errorf("%s: hugo ended with %v and said:\n%s", test.reason, err, said)
		}
	}
}

// TestFollow: what walks the site sees what is wrong.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b.html"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	documents := map[string]document{"b.html": {ids: map[string]bool{"there": true}}}
	good := []string{"b.html", "./b.html#there", "https://elsewhere.example.com/x"}
	for _, address := range append(good, "c.html", "b.html#here", "/b.html", "//elsewhere.example.com/x.css") {
		if problem := follow(dir, documents, "b.html", address); (problem == "") != slices.Contains(good, address) {
			t.Errorf("%s: %q", address, problem)
		}
	}
}
