//go:build controlplane

package cli_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// secretOperator has a downstream for each way to complain about a Secret that is an input, and rules that read it.
func secretOperator(ns, name string) string {
	var list strings.Builder
	sinks := testkit.SecretSinks()
	for _, sink := range slices.Sorted(maps.Keys(sinks)) {
		fmt.Fprintf(&list, "  - name: %s\n    %s\n", sink, sinks[sink])
	}
	return strings.NewReplacer("NS", ns, "NAME", name).Replace(`apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
inputs:
  - {name: settings, apiVersion: v1, kind: Secret, objectName: self.metadata.name, missing: Wait}
downstreams:
`) + list.String() + strings.ReplaceAll(`conventions:
  fieldManager: NAME
  labels: {NAME.example.com/managed: "yes"}
  hash: {annotation: NAME.example.com/hash}
  owner: {annotation: NAME.example.com/owner}
  finalizer: NAME.example.com/cleanup
status:
  conditions: {ready: Ready, valid: Valid}
  downstreams: .status.downstreams
`, "NAME", name)
}

// No command prints a part of a Secret that is an input, neither before anything is made of it, nor after an operator has failed
// because of it.
func TestCommandsPrintNoSecret(t *testing.T) {
	t.Setenv("KUBECONFIG", testkit.Kubeconfig(t))
	ns, name := testkit.Namespace(t), testkit.Unique(t)
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(secretOperator(ns, name)), 0o600); err != nil {
		t.Fatal(err)
	}
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
		for _, command := range commands {
			_, out := run(t, command...)
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
	p := start(t, testkit.Config(), "run", "-c", file, "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	testkit.Eventually(t, patience, func() (bool, string) {
		for _, w := range testkit.List(t, widgets, ns, "") {
			if conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions"); len(conditions) == 0 {
				return false, w.GetName() + " has no status"
			}
		}
		return true, ""
	})
	p.interrupt(t)
	p.wait(t)
	tellsNothing()
}
