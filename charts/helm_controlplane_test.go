//go:build controlplane

package charts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/tools"
)

// chart is the chart's directory.
const chart = "corollary"

// helm runs helm, which is the real one, in the directory of the tests, and returns what it prints on standard output
// and on standard error. Nothing of the user's is read or written: not a kubeconfig, not a repository's index, not what
// an API server at the same address served before.
func helm(t testing.TB, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return helmIn(t, ".", args...)
}

// helmIn runs helm in another directory.
func helmIn(t testing.TB, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	noteChart(t)
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), tools.Path(t, "helm"), args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home,
		"KUBECONFIG="+filepath.Join(home, "none"), "KUBECACHEDIR="+home)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	return out.String(), problems.String(), err
}

// noteChart reads the chart as helm is about to. Go keeps the result of a test until a file changes that the test
// itself has read.
func noteChart(t testing.TB) {
	t.Helper()
	must.Do(t, filepath.WalkDir(chart, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	}))
}

// render returns what helm template prints for a release called test in the namespace apps, and fails the test where
// that fails.
func render(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := helm(t, append([]string{"template", "test", chart, "--namespace=apps"}, args...)...)
	if err != nil {
		t.Fatalf("helm template %v: %v\n%s", args, err, stderr)
	}
	return stdout
}

// write puts a text into a new file and returns its path.
func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// objects returns the objects of a manifest.
func objects(t testing.TB, manifest string) []*unstructured.Unstructured {
	t.Helper()
	list, err := controlplane.Documents(manifest)
	if err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	return list
}

// as returns the only object of the kind, as that kind's type in Go, which has all the fields that it has.
func as[T any](t testing.TB, manifest, kind string) T {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, o := range objects(t, manifest) {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s instead of one", len(found), kind)
	}
	return typed[T](t, found[0])
}

func typed[T any](t testing.TB, o *unstructured.Unstructured) T {
	t.Helper()
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &out, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return out
}
