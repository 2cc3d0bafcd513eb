package kinds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestOfflineKinds looks up the kinds of each archive in testdata/lookups: every line is a kind, and why it is there.
func TestOfflineKinds(t *testing.T) {
	source := must.Get(Offline("testdata/crds")).In(t)
	golden.Cases(t, "testdata/lookups/*.txtar", func(t *testing.T, c *golden.Case) {
		var out strings.Builder
		for line := range strings.Lines(c.Section("kinds")) {
			name, reason, _ := strings.Cut(strings.TrimSpace(line), ": ")
			apiVersion, kind, _ := strings.Cut(name, " ")
			if reason == "" {
				t.Errorf("%s: there is no reason", name)
			}
			fmt.Fprintf(&out, "%s: %s\n", name, lookup(t, source, schema.FromAPIVersionAndKind(apiVersion, kind)))
		}
		c.Want(t, "want", out.String())
	})
}

// lookup describes a kind, or why there is none.
func lookup(t *testing.T, source Source, gvk schema.GroupVersionKind) string {
	t.Helper()
	k, err := source.Kind(gvk)
	if errors.Is(err, ErrUnknown) {
		return "unknown: " + err.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	if k.GVK != gvk || k.GVR.GroupVersion() != gvk.GroupVersion() || (k.SchemaErr == nil) != (k.Schema != nil) {
		t.Errorf("%v is the resource %v of %v, with the schema %v (%v)", gvk, k.GVR, k.GVK, k.Schema != nil, k.SchemaErr)
	}
	return fmt.Sprintf("%s, namespaced %t, status %t, schema %t", k.GVR.Resource, k.Namespaced, k.HasStatus, k.Schema != nil)
}

func TestOfflineSchema(t *testing.T) {
	source := must.Get(Offline("testdata/crds/appoperators.yaml")).In(t)
	k := must.Get(source.Kind(schema.GroupVersionKind{Group: "tools.example.com", Version: "v1beta1", Kind: "Appoperator"})).In(t)
	testkit.CheckAppoperatorSchema(t, k.Schema)
}

// TestOfflineFiles runs the archives in testdata/offline: Offline gets the files of an archive (as one directory), and
// the file "want" is the error, or the kinds that it adds.
func TestOfflineFiles(t *testing.T) {
	golden.Cases(t, "testdata/offline/*.txtar", func(t *testing.T, c *golden.Case) {
		dir := t.TempDir()
		for _, f := range c.Files {
			if f.Name != "want" {
				write(t, filepath.Join(dir, f.Name), f.Data)
			}
		}
		c.Want(t, "want", offlineText(dir))
	})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)))
}

// offlineText returns the result of Offline for a directory, without the path of the directory.
func offlineText(dir string) string {
	source, err := Offline(dir)
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "") + "\n"
	}
	var lines []string
	for gvk := range source.(*files).where {
		lines = append(lines, gvk.GroupVersion().String()+" "+gvk.Kind+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func TestOfflineMissingFile(t *testing.T) {
	if _, err := Offline("testdata/absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the path does not exist", err)
	}
}

// TestOfflineMountedConfigMap: the names in a mounted ConfigMap are links into a directory whose name begins with dots.
func TestOfflineMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	data := must.Get(os.ReadFile("testdata/crds/appoperators.yaml")).In(t)
	write(t, filepath.Join(dir, "..2026", "crd.yaml"), data)
	for link, target := range map[string]string{"..data": "..2026", "crd.yaml": filepath.Join("..data", "crd.yaml")} {
		must.Do(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	source := must.Get(Offline(dir)).In(t)
	must.Same(t, 2, len(source.(*files).where), "kinds found, want 2")
}
