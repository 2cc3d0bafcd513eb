//go:build controlplane

package cli_test

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// No command prints a part of a Secret that is an input, neither before anything is made of it, nor after an operator
// has failed because of it.
func TestCommandsPrintNoSecret(t *testing.T) {
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	connected(t)
	file := filepath.Join(t.TempDir(), "operator.yaml")
	write(t, file, secretOperator(ns, name))
	secrets := testkit.Secrets()
	for upstream, value := range secrets {
		testkit.Apply(t, ns,
			"{apiVersion: v1, kind: Secret, metadata: {name: "+upstream+"}, data: {color: '"+base64.StdEncoding.EncodeToString(value)+"'}}")
		testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: "+upstream+"}, spec: {size: 1}}")
	}
	tellsNothing := func() {
		t.Helper()
		commands := [][]string{{"plan", "-c", file}, {"plan", "-c", file, "-o", "json"}, {"get", "-c", file}, {"get", "-c", file, "-o", "json"}}
		for upstream := range secrets {
			for _, format := range []string{"text", "json"} {
				commands = append(commands, []string{"why", "-c", file, "-n", ns, "-o", format, "widget", upstream})
			}
		}
		commands = append(commands, []string{"export", "-c", file, "--sqlite", filepath.Join(filepath.Dir(file), "state.db")})
		for _, command := range commands {
			_, out := run(t, command...)
			out += written(t, command)
			for upstream, value := range secrets {
				if !strings.Contains(out, upstream) && command[0] != "why" {
					t.Errorf("%v says nothing about %s:\n%s", command, upstream, out)
				}
				if leaked := testkit.Leaked(out, value); len(leaked) > 0 {
					at := strings.Index(out, leaked[0])
					t.Errorf("%v tells %d pieces of %s, such as %q: …%s", command, len(leaked), upstream, leaked[0],
						out[max(0, at-300):min(len(out), at+100)])
				}
			}
		}
	}
	tellsNothing()
	p := start(t, testkit.Config(t), "run", "-c", file, "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	eventuallyReported(t, ns)
	p.stop(t)
	tellsNothing()
}
