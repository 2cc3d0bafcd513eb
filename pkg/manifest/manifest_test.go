package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/manifest"
)

// TestRead: a document begins at the line where a reader would expect it.
func TestRead(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		want         []string // line: value, without empty documents
	}{
		{"one document", "a: 1\n", []string{"1 map[a:1]"}},
		{"comments come before it", "# about a\n\na: 1\n", []string{"3 map[a:1]"}},
		{"a file may begin with a separator", "---\na: 1\n---\nb: 2\n", []string{"2 map[a:1]", "4 map[b:2]"}},
		{"a document may begin on the separator's line", "--- {a: 1}\n--- {b: 2}\n", []string{"1 map[a:1]", "2 map[b:2]"}},
		{"a text may have such a line", "a: |\n  ---\n  b\n---\nc: 3\n", []string{"1 map[a:---\nb\n]", "5 map[c:3]"}},
		{"nor is a longer line one", "a: 1\n---b: 2\n", []string{"1 map[---b:2 a:1]"}},
		{"line ends of Windows", "a: 1\r\n---\r\nb: 2\r\n", []string{"1 map[a:1]", "3 map[b:2]"}},
		{"JSON", `{"a": 9007199254740993}`, []string{"1 map[a:9007199254740993]"}},
		{"a key that is there twice", "a: 1\na: 2\n", []string{"1 error"}},
		{"no object", "- a\n", []string{"1 error"}},
		{"nothing", "# only a comment\n", nil},
	} {
		t.Run(row.reason, func(t *testing.T) {
			documents := must.Get(manifest.Read("-", strings.NewReader(row.text))).In(t)
			var got []string
			for _, d := range documents {
				value, err := d.Value()
				line := strings.TrimPrefix(d.String(), "<stdin>:")
				switch {
				case err != nil && strings.Contains(err.Error(), "\n"):
					t.Errorf("the error has several lines: %v", err)
				case err != nil:
					got = append(got, line+" error")
				case value != nil:
					got = append(got, line+" "+fmt.Sprint(value))
				}
			}
			if strings.Join(got, ";") != strings.Join(row.want, ";") {
				t.Errorf("read %q, not %q", got, row.want)
			}
		})
	}
}

func TestItems(t *testing.T) {
	for _, row := range []struct{ reason, text, want string }{
		{"an object is its own only item", "kind: A", "map[kind:A]"},
		{"a List has items", "kind: AList\nitems: [{kind: A}, {kind: B}]", "map[kind:A] map[kind:B]"},
		{"in Lists too", "kind: List\nitems: [{kind: BList, items: [{kind: B}]}]", "map[kind:B]"},
		{"other kinds may have a field of that name", "kind: Menu\nitems: [{kind: A}]", "map[items:[map[kind:A]] kind:Menu]"},
		{"an item that is no object", "kind: List\nitems: [{kind: BList, items: [1]}]", "items[0]: items[0] is not an object"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			value := must.Get(manifest.Document{Text: []byte(row.text)}.Value()).In(t)
			items, err := manifest.Items(value)
			var got []string
			for _, item := range items {
				got = append(got, fmt.Sprint(item))
			}
			if err != nil {
				got = []string{err.Error()}
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("got %q, not %q", got, row.want)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "d.txt", ".hidden.yaml", "below/e.yaml", "..data/f.yaml"} {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, nil, 0o600))
	}
	for _, row := range []struct {
		path  string
		below bool
		want  string
	}{
		{dir, false, "a.yml b.yaml c.json"},
		{dir, true, "a.yml b.yaml below/e.yaml c.json"},
		{filepath.Join(dir, "d.txt"), false, "d.txt"},
	} {
		names := must.Get(manifest.Files(row.path, row.below)).In(t)
		for i := range names {
			names[i], _ = filepath.Rel(dir, names[i])
		}
		must.Same(t, row.want, strings.Join(names, " "), row.path)
	}
	if _, err := manifest.Files(filepath.Join(dir, "none"), false); err == nil {
		t.Error("a path that does not exist is no error")
	}
}
