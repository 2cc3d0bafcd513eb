//go:build controlplane

package charts

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/cli"
)

// TestGeneratedValues: the chart takes what `corollary generate chart-values` prints, and the pods find operators that
// are those of the files, wherever the files that these name lie.
func TestGeneratedValues(t *testing.T) {
	t.Parallel()
	const config = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: mine}
parameters: {large: 9007199254740993}
watch: {apiVersion: tools.example.com/v1, kind: Hello}
downstreams:
  - {name: beside, apiVersion: v1, kind: ConfigMap, templateFile: beside.yaml}
  - {name: above, apiVersion: v1, kind: ConfigMap, templateFile: ../above.yml}
  - {name: below, apiVersion: v1, kind: ConfigMap, templateFile: templates/below.yaml}
  - {name: text, apiVersion: v1, kind: ConfigMap, templateFile: text.tmpl}
conventionsFile: ../names.yaml
conventions: {fieldManager: mine}
status: {conditions: {ready: Ready}}
`
	dir := unpack(t, map[string]string{
		"apps/mine.yaml":            config,
		"apps/beside.yaml":          "metadata: {name: beside}\n",
		"apps/templates/below.yaml": "metadata: {name: below}\n",
		"apps/text.tmpl":            "metadata: {name: text}\n",
		"above.yml":                 "metadata: {name: above}\n",
		"names.yaml": "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions:\n" +
			"  labels: {tools.example.com/managed-by: mine}\n  hash: {annotation: tools.example.com/hash}\n",
	})
	configs := append(examples(t), filepath.Join(dir, "apps/mine.yaml"))
	args := []string{"generate", "chart-values"}
	for _, path := range configs {
		args = append(args, "-c", path)
	}
	var values, errs bytes.Buffer
	if code := cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &values, Err: &errs, Env: os.Environ()}); code != 0 {
		t.Fatalf("corollary %v exits %d:\n%s", args, code, &errs)
	}
	pod := unpack(t, mounted(t, render(t, image, "--values="+write(t, "values.yaml", values.String()))))
	for _, path := range configs {
		given := loaded(t, path)
		if got := loaded(t, filepath.Join(pod, given.Metadata.Name+".yaml")); got.Digest() != given.Digest() {
			t.Errorf("%s is another operator in the pods", given.Metadata.Name)
		}
	}
}
