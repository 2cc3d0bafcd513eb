package archive

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/must"
)

const (
	widgetDefinition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}}`
	widgetA          = `{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "n", "uid": "1"}}`
)

// Whoever can write a backup can give it right checksums, too. Nothing is read from it but what its manifest says it
// has.
func TestForgedArchive(t *testing.T) {
	t.Parallel()
	replaced := func(old, other string) string { return strings.Replace(widgetA, old, other, 1) }
	for _, row := range []struct {
		name                string
		definition, objects string // of the files; empty: right
		path                string // of the definition in the manifest
		want                string // part of the error; empty: it is read
	}{
		{name: "as it was written"},
		{name: "two objects", objects: widgetA + "\n" + replaced(`"a"`, `"b"`)},
		{name: "an object twice", objects: widgetA + "\n" + replaced(`"1"`, `"2"`), want: "objects/a.json was altered: it has a twice"},
		{name: "another namespace", objects: replaced(`"n"`, `"kube-system"`), want: `of namespace "kube-system", and the manifest says "n"`},
		{name: "no namespace", objects: replaced(`, "namespace": "n"`, ``), want: `of namespace "", and`},
		{name: "another kind", objects: replaced(`"Widget"`, `"Gadget"`), want: `of "example.com/v1" "Gadget", and the manifest says example.com/v1 Widget`},
		{name: "another version", objects: replaced(`/v1"`, `/v2"`), want: `of "example.com/v2"`},
		{name: "a name that is made up each time", objects: replaced(`"name"`, `"generateName"`), want: `"" is not the name of an object`},
		{name: "a name that is a path", objects: replaced(`"a"`, `"../a"`), want: `"../a" is not the name`},
		{name: "a name that a terminal obeys", objects: replaced(`"a"`, `"\u001b[2J"`), want: `"\x1b[2J" is not the name`},
		{name: "no uid, by which objects are told apart", objects: replaced(`, "uid": "1"`, ``), want: "a has no uid"},
		{name: "a list", objects: `{"apiVersion": "v1", "kind": "List", "items": [` + widgetA + `]}`, want: `of "v1" "List"`},
		{name: "more white space than an object has", objects: strings.Repeat("\n", maxObject+1) + widgetA, want: "more than 64 MiB"},
		{name: "a definition outside", path: "../outside.json", want: "is not in the list of files"},
		{name: "a definition that is something else", path: "objects/a.json", want: "is not in the list of files"},
		{name: "the definition of another kind", definition: strings.Replace(widgetDefinition, "widgets", "gadgets", 1),
			want: "is not CustomResourceDefinition widgets.example.com"},
		{name: "no definition", definition: " ", want: "is not CustomResourceDefinition widgets.example.com"},
		{name: "an object in its place", definition: widgetA, want: `of "example.com/v1" "Widget"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if row.definition == "" {
				row.definition = widgetDefinition
			}
			if row.objects == "" {
				row.objects = widgetA
			}
			if row.path == "" {
				row.path = "definitions/a.json"
			}
			dir := filepath.Join(t.TempDir(), "backup")
			m := &Manifest{Format: Format, Kinds: []Kind{
				{APIVersion: "example.com/v1", Kind: "Widget", Resource: "widgets", Namespaced: true, Definition: row.path},
			}}
			for name, text := range map[string]string{
				"definitions/a.json": row.definition, "objects/a.json": row.objects, "../outside.json": widgetDefinition,
			} {
				full := filepath.Join(dir, name)
				must.Do(t, os.MkdirAll(filepath.Dir(full), 0o700))
				must.Do(t, os.WriteFile(full, []byte(text), 0o600))
			}
			for _, f := range []File{{Path: "definitions/a.json"}, {Path: "objects/a.json", Kind: "widgets.example.com", Namespace: "n"}} {
				var err error
				if f.SHA256, err = checksum(filepath.Join(dir, f.Path)); err != nil {
					t.Fatal(err)
				}
				m.Files = append(m.Files, f)
			}
			must.Do(t, m.Write(dir))
			a, err := Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = a.Definition(&m.Kinds[0]); err == nil {
				err = a.Each(&m.Files[1], func(*unstructured.Unstructured) error { return nil })
			}
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, want %q", err, row.want)
			}
		})
	}
}

// What a manifest lists twice would be restored twice: the second time is an error of the API server that nobody
// understands.
func TestListedTwice(t *testing.T) {
	t.Parallel()
	widget := Kind{APIVersion: "example.com/v1", Kind: "Widget", Resource: "widgets"}
	gadget := Kind{APIVersion: "example.com/v1", Kind: "Gadget", Resource: "gadgets"}
	older := widget
	older.APIVersion = "example.com/v1beta1"
	for _, row := range []struct {
		name  string
		kinds []Kind
		files []File
		want  string
	}{
		{"different ones", []Kind{widget, gadget}, []File{{Path: "a", Kind: "w", Namespace: "n"},
			{Path: "b", Kind: "w", Namespace: "o"}, {Path: "c"}, {Path: "d"}}, ""},
		{"a kind", []Kind{widget, gadget, widget}, nil, `manifest.json was altered: it lists kind "widgets.example.com" twice`},
		{"a kind in two versions", []Kind{widget, older}, nil, `it lists kind "widgets.example.com" twice`},
		{"a file", nil, []File{{Path: "a"}, {Path: "a"}}, `it lists file "a" twice`},
		{"a namespace of a kind", nil, []File{{Path: "a", Kind: "w", Namespace: "n"}, {Path: "b", Kind: "w", Namespace: "n"}},
			`it lists "w" of namespace "n" twice`},
	} {
		m := Manifest{Kinds: row.kinds, Files: row.files}
		if err := m.checkTwice(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}
