package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// The files of one operator: what it is, its template, and the conventions that it shares.
const (
	mountedConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: mounted}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - {name: config, apiVersion: v1, kind: ConfigMap, templateFile: config.tmpl}
conventionsFile: conventions.yaml
conventions: {fieldManager: mounted, finalizer: tools.example.com/mounted}
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
`
	mountedTemplate = "metadata:\n  name: {{ .metadata.name }}\ndata:\n  color: {{ .spec.color }}\n"
	mountedShared   = `
apiVersion: corollary.dev/v1alpha1
kind: Conventions
conventions:
  labels: {tools.example.com/managed-by: mounted}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true}
`
)

// mount is a directory as the kubelet makes it of a ConfigMap: each version in a folder of its own, and links to one of
// them, which are turned to the next in one step.
type mount struct {
	t       *testing.T
	dir     string
	files   map[string]string
	current string
}

// set gives a file another text, and turns the links.
func (m *mount) set(name, text string) {
	m.t.Helper()
	m.files[name] = text
	next := filepath.Base(m.t.TempDir()) // a name that was not there before
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(m.dir, "..2026_"+next), 0o700))
	for name, text := range m.files {
		must(os.WriteFile(filepath.Join(m.dir, "..2026_"+next, name), []byte(text), 0o600))
	}
	must(os.Symlink("..2026_"+next, filepath.Join(m.dir, "..data_tmp")))
	must(os.Rename(filepath.Join(m.dir, "..data_tmp"), filepath.Join(m.dir, "..data")))
	for name := range m.files {
		if err := os.Symlink("..data/"+name, filepath.Join(m.dir, name)); !os.IsExist(err) {
			must(err)
		}
	}
	if m.current != "" {
		must(os.RemoveAll(filepath.Join(m.dir, m.current)))
	}
	m.current = "..2026_" + next
}

func answer(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text := must(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(text)
}

// eventuallyAnswers waits until an address answers so, with all of these texts.
func eventuallyAnswers(t *testing.T, url string, status int, texts ...string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		code, text := answer(t, "http://"+url)
		return code == status && !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) }),
			fmt.Sprintf("%s answers %d, not %d and %q: %s", url, code, status, texts, text)
	})
}

// TestRunFollowsItsConfigs as a mounted ConfigMap changes: the template, the shared conventions, for the worse and for
// the better. Only notices of the files report it.
func TestRunFollowsItsConfigs(t *testing.T) {
	t.Parallel()
	ns, health := memory(t), testkit.FreeAddress(t)
	m := &mount{t: t, dir: t.TempDir(), files: map[string]string{"config.tmpl": mountedTemplate, "conventions.yaml": mountedShared}}
	m.set("operator.yaml", strings.ReplaceAll(mountedConfig, "NS", ns))
	p := start(t, testkit.Config(t), "run", "-c", m.dir, "--reload-interval", "1h", "-n", ns, "--health-probe-bind-address", health)
	testkit.Apply(t, ns, blueWidget)
	eventuallyColor(t, ns, "blue")
	uid := testkit.Get(t, configMaps, ns, "one").GetUID()

	m.set("config.tmpl", strings.Replace(mountedTemplate, "{{ .spec.color }}", "dark-{{ .spec.color }}", 1))
	eventuallyColor(t, ns, "dark-blue")

	m.set("conventions.yaml", mountedShared+"  annotations: {tools.example.com/contact: somebody}\n")
	testkit.Eventually(t, patience, func() (bool, string) {
		value := testkit.Get(t, configMaps, ns, "one").GetAnnotations()["tools.example.com/contact"]
		return value == "somebody", "the annotation is " + value
	})

	m.set("config.tmpl", "metadata:\n  name: {{ .metadata.nam\n")
	eventuallyAnswers(t, health+"/readyz/reload", http.StatusInternalServerError, "config.tmpl:2")
	if code, text := answer(t, "http://"+health+"/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d: %s", code, text)
	}
	testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "blue", "red"))
	eventuallyColor(t, ns, "dark-red")

	m.set("config.tmpl", mountedTemplate)
	eventuallyColor(t, ns, "red")
	eventuallyAnswers(t, health+"/readyz/reload", http.StatusOK)
	have := testkit.Get(t, configMaps, ns, "one")
	if have.GetUID() != uid {
		t.Error("the downstream was made anew")
	}

	m.set("config.tmpl", mountedTemplate+"  port: 8080\n")
	testkit.Eventually(t, patience, func() (bool, string) {
		text := p.text(t)
		return strings.Contains(text, "config warning") && strings.Contains(text, ".data.port must be a string"), text
	})
	p.stop(t)
}
