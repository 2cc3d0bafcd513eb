//go:build controlplane

package charts

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
)

// own are the templates of the process and its surroundings; others have tests of their own.
var own = []string{"certificate", "configmap", "deployment", "networkpolicy", "pdb", "service", "serviceaccount"}

// TestTemplates renders a set of values: to what is applied and what is said afterwards, or to an error. Files of a
// case other than values.yaml are given by --set-file, each as the value that its name says.
func TestTemplates(t *testing.T) {
	golden.Cases(t, "testdata/template/*.txtar", func(t *testing.T, c *golden.Case) {
		args := []string{"install", "test", chart, "--namespace=apps", "--dry-run=client", "--hide-secret"}
		for _, file := range c.Files {
			switch path := write(t, "given", string(file.Data)); file.Name {
			case "rendered", "notes", "error":
			case "values.yaml":
				args = append(args, "--values="+path)
			default:
				args = append(args, "--set-file="+file.Name+"="+path)
			}
		}
		stdout, stderr, err := helm(t, args...)
		if err != nil {
			c.Want(t, "error", stderr)
			c.WantNone(t, "rendered")
			c.WantNone(t, "notes")
			return
		}
		manifest, notes, _ := strings.Cut(stdout, "NOTES:\n")
		c.Want(t, "rendered", only(own, manifest))
		c.Want(t, "notes", notes)
		c.WantNone(t, "error")
	})
}

// only returns the documents that come from the templates of these names.
func only(templates []string, manifest string) string {
	var kept strings.Builder
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		for _, name := range templates {
			if strings.HasPrefix(document, "# Source: corollary/templates/"+name+".yaml\n") {
				kept.WriteString("---\n" + strings.TrimRight(document, "\n") + "\n")
			}
		}
	}
	return kept.String()
}

// TestLint: a chart that lint refuses is refused by repositories and reviewers too.
func TestLint(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"as it comes":       nil,
		"with little":       {"--values=testdata/values/minimal.yaml"},
		"with all there is": {"--values=testdata/values/full.yaml"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, err := helm(t, append([]string{"lint", "--strict", chart}, args...)...)
			if err != nil || strings.Contains(stdout, "[WARNING]") {
				t.Errorf("%v\n%s%s", err, stdout, stderr)
			}
		})
	}
}
