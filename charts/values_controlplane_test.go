//go:build controlplane

package charts

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// image is what every set of values needs.
const image = "--set=image.repository=registry.example.com/corollary"

// mounted returns the files that the pods find in /etc/corollary, by their path there.
func mounted(t *testing.T, manifest string) map[string]string {
	t.Helper()
	configMaps := map[string]map[string]string{}
	for _, o := range objects(t, manifest) {
		if o.GetKind() == "ConfigMap" {
			configMaps[o.GetName()] = typed[corev1.ConfigMap](t, o).Data
		}
	}
	files := map[string]string{}
	volume := as[appsv1.Deployment](t, manifest, "Deployment").Spec.Template.Spec.Volumes[0]
	if volume.ConfigMap != nil {
		mount(t, configMaps, volume.ConfigMap.Name, volume.ConfigMap.Items, files)
		return files
	}
	for _, s := range volume.Projected.Sources {
		mount(t, configMaps, s.ConfigMap.Name, s.ConfigMap.Items, files)
	}
	return files
}

// mount adds the files of a ConfigMap as the kubelet does: those that are named, else all.
func mount(t *testing.T, configMaps map[string]map[string]string, name string, items []corev1.KeyToPath, files map[string]string) {
	t.Helper()
	data, ok := configMaps[name]
	if !ok {
		t.Fatalf("the volume names a ConfigMap %s, which is not rendered", name)
	}
	if items == nil {
		maps.Copy(files, data)
	}
	for _, item := range items {
		text, ok := data[item.Key]
		if !ok {
			t.Fatalf("ConfigMap %s has no %s, which the volume names", name, item.Key)
		}
		files[item.Path] = text
	}
}

// unpack writes the files into a new directory and returns it.
func unpack(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// TestExamplesAsValues: each example given as values, without its head, is mounted as a file that loads without an
// error and says the same as the example's own.
func TestExamplesAsValues(t *testing.T) {
	t.Parallel()
	operators := map[string]any{}
	digests := map[string]string{}
	for _, path := range examples(t) {
		file := loaded(t, path)
		var values map[string]any
		must.Do(t, kyaml.Unmarshal([]byte(text(t, path)), &values))
		for _, key := range []string{"apiVersion", "kind", "metadata"} {
			delete(values, key)
		}
		operators[file.Metadata.Name] = values
		digests[file.Metadata.Name] = file.Digest()
	}
	values := valuesOf(t, map[string]any{"operators": operators, "files": map[string]any{"conventions.yaml": text(t, conventions)}})
	dir := unpack(t, mounted(t, render(t, image, values)))
	for name, digest := range digests {
		if got := loaded(t, filepath.Join(dir, name+".yaml")); got.Digest() != digest {
			t.Errorf("%s is another operator where it is given as values", name)
		}
	}
}

// TestExamplesAsFiles: each example given by --set-file is mounted to the byte.
func TestExamplesAsFiles(t *testing.T) {
	t.Parallel()
	args := []string{image, `--set-file=files.conventions\.yaml=` + conventions}
	want := map[string]string{"conventions.yaml": text(t, conventions)}
	for _, path := range examples(t) {
		name := loaded(t, path).Metadata.Name
		want[name+".yaml"] = text(t, path)
		args = append(args, "--set-file=operatorFiles."+name+"="+path)
	}
	must.Same(t, want, mounted(t, render(t, args...)))
}

// TestFilesToTheByte: whatever a file holds, it is mounted as it is; Helm and YAML have ways of their own with ends of
// lines and blanks.
func TestFilesToTheByte(t *testing.T) {
	t.Parallel()
	config := "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: hello}\n" +
		"watch: {apiVersion: v1, kind: Secret}\ndownstreams: []\n"
	want := map[string]string{
		"hello.yaml":              "# {{ .Release.Name }} stays as it is\r\n" + config + "\n\n  \n",
		"a-last-line-without-end": "x",
		"begins-with-blanks":      "   x\n y\n",
		"ends-with-blank-lines":   "x\n\n\n",
		"is-only-an-end":          "\n",
		"tabs":                    "\tx\t\n",
		"other-ends-of-lines":     "a\r\nb\rc\n",
		"letters":                 "µ € 😀 \u2028 \" ' \\ \u00a0\n",
		"document":                "---\na\n...\n---\nb\n",
		"long-line":               strings.Repeat("word ", 500) + "\n",
		"markup":                  "<a href=\"x\">&amp;</a>\n",
		"zz/folder/template":      "  {{- range $x := .spec.x }}\n  x: {{ $x }}\n  {{- end }}\n\n",
		"zz/last":                 "x\n\n",
	}
	args := []string{image}
	for path, text := range want {
		key := "files." + strings.ReplaceAll(path, ".", `\.`)
		if path == "hello.yaml" {
			key = "operatorFiles.hello"
		}
		args = append(args, "--set-file="+key+"="+write(t, "text", text))
	}
	must.Same(t, want, mounted(t, render(t, args...)))
}

// TestNumbersInValues: Helm reads whole numbers of values as floating point ones, and prints the large ones in a form
// that is not a whole number any more, unless the chart takes care.
func TestNumbersInValues(t *testing.T) {
	t.Parallel()
	const parameters = "{million: 1000000, billion: 12345678901, most: 9007199254740991, least: -9007199254740991, half: 0.5, text: " +
		"'0123', none: false}"
	manifest := render(t, "--values=testdata/values/minimal.yaml",
		"--values="+write(t, "numbers.yaml", "operators: {hello: {parameters: "+parameters+"}}"))
	dir := unpack(t, mounted(t, manifest))
	file := loaded(t, filepath.Join(dir, "hello.yaml"))
	want := map[string]any{"million": int64(1000000), "billion": int64(12345678901), "most": int64(9007199254740991),
		"least": int64(-9007199254740991), "half": 0.5, "text": "0123", "none": false}
	must.Same(t, want, file.Parameters)
}

// conventions is the file of conventions that an example's operators share.
const conventions = "../examples/configs/chain/operators/conventions.yaml"

// valuesOf is the argument of helm for values.
func valuesOf(t *testing.T, values map[string]any) string {
	t.Helper()
	text := must.Get(kyaml.Marshal(values)).In(t)
	return "--values=" + write(t, "values.yaml", string(text))
}

// examples returns the operators' files of all examples.
func examples(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"operator.yaml", "operators/*.yaml"} {
		found, err := filepath.Glob("../examples/configs/*/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no example has %s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return filepath.Base(path) == "conventions.yaml" })
}

func loaded(t *testing.T, path string) *load.File {
	t.Helper()
	files, errs := load.Operators(load.Options{Files: []string{path}})
	if len(errs) > 0 || len(files) != 1 {
		t.Fatalf("%s: %d operators: %v", path, len(files), errs)
	}
	return files[0]
}
