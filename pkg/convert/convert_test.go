package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// compile compiles the conversion of a case against its CRD.
func compile(t testing.TB, crd, text []byte) (*convert.Converter, []*convert.Problem) {
	t.Helper()
	definition, versions := define(t, crd)
	var conf conversion.Conversion
	must.Do(t, yaml.UnmarshalStrict(text, &conf))
	return convert.Compile(&conf, convert.Options{
		Kind: schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}, Versions: versions,
		Namespaced: kinds.IsNamespaced(definition),
	})
}

func define(t testing.TB, crd []byte) (*apiextensionsv1.CustomResourceDefinition, []*kinds.Version) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	must.Do(t, yaml.UnmarshalStrict(crd, definition))
	versions := must.Get(kinds.Versions(definition)).In(t)
	return definition, versions
}

func object(t *testing.T, text []byte) map[string]any {
	t.Helper()
	data := must.Get(yaml.YAMLToJSON(text)).In(t)
	var obj map[string]any
	must.Do(t, kjson.UnmarshalCaseSensitivePreserveInts(data, &obj))
	return obj
}

// TestCases runs the cases in testdata: a CRD, a conversion, and either its problems or objects that are converted in
// order.
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runCase(t, file)
		})
	}
}

func runCase(t *testing.T, file string) {
	archive := must.Get(txtar.ParseFile(file)).In(t)
	files := map[string][]byte{}
	for _, f := range archive.Files {
		files[f.Name] = f.Data
	}
	c, problems := compile(t, files["crd.yaml"], files["conversion.yaml"])
	var told strings.Builder
	for _, p := range problems {
		told.WriteString(p.Path + ": " + p.Message + "\n")
	}
	if want := string(files["problems.txt"]); told.String() != want {
		if os.Getenv("UPDATE") != "" {
			t.Logf("%s", told.String())
		}
		t.Fatalf("problems (-want +got):\n%s", cmp.Diff(want, told.String()))
	}
	for _, f := range archive.Files {
		name, to, ok := strings.Cut(strings.TrimSuffix(f.Name, ".yaml"), " to ")
		if !ok {
			continue
		}
		obj := object(t, files[name+".yaml"])
		if err := c.Convert(t.Context(), obj, strings.Fields(to)[0]); err != nil {
			if got := err.Error() + "\n"; got != string(f.Data) {
				t.Errorf("%s: error (-want +got):\n%s", f.Name, cmp.Diff(string(f.Data), got))
			}
			continue
		}
		got := must.Get(yaml.Marshal(obj)).In(t)
		must.Same(t, string(f.Data), string(got), f.Name)
	}
}
