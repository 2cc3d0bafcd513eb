package examples_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// TestExamplesRights: rbac.yaml beside each example is what it takes to run it, and names nothing that the config does
// not.
func TestExamplesRights(t *testing.T) {
	for _, e := range withSources(t) {
		t.Run(e.name(), func(t *testing.T) {
			args := []string{"generate", "rbac", "-c", e.config(), "-n", "corollary", "--leader-election-id", "corollary"}
			for _, crd := range e.crds() {
				args = append(args, "--crds", crd)
			}
			var out, notes strings.Builder
			if code := cli.Main(args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &notes, Env: os.Environ()}); code != 0 {
				t.Fatalf("exit code %d: %s", code, &notes)
			}
			if strings.Contains(out.String(), "*") {
				t.Error("the rights have a wildcard")
			}
			configs := ""
			for _, f := range e.load(t) {
				configs += string(read(t, f.Path))
			}
			if strings.Contains(out.String(), "[secrets]") != strings.Contains(configs, "kind: Secret\n") {
				t.Error("the rights are about Secrets and the config is not, or the other way round")
			}
			if strings.Contains(notes.String(), "is unknown:") {
				t.Errorf("a kind was guessed: %s", &notes)
			}
			golden.File(t, e.path("rbac.yaml"), []byte(out.String()))
		})
	}
}
