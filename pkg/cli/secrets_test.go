package cli_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// written is all of the file that a command has written; empty for commands that write none.
func written(t *testing.T, command []string) string {
	t.Helper()
	if command[0] != "export" {
		return ""
	}
	text := read(t, command[len(command)-1])
	return text
}

// No command prints a label, an annotation or data of a Secret that is an upstream, whether its downstream can be made
// or not.
func TestCommandsPrintNothingOfWatchedSecrets(t *testing.T) {
	t.Parallel()
	ns, name := memory(t), testkit.Unique(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "operator.yaml")
	_, conventions, _ := strings.Cut(secretOperator(ns, name), "conventions:")
	conventions, _, _ = strings.Cut(conventions, "status:")
	operator := `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: ` + name + `}
watch: {apiVersion: v1, kind: Secret, namespaces: [` + ns + `], labelSelector: {matchExpressions: [{key: copy, operator: Exists}]}}
downstreams:
  - name: copy
    apiVersion: v1
    kind: ConfigMap
    template: "{metadata: {name: '{{ .metadata.name }}-copy'}, data: {a: '{{ .data.a }}', b: '{{ fromJson .metadata.annotations.note }}'}}"
conventions:` + conventions + "status: {enabled: false}\n"
	write(t, file, operator)
	const label, annotation, data = "LBLhunter2", "ANNhunter2", "REFUaHVudGVyMg=="
	for _, upstream := range []string{"good", "bad"} {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: Secret, metadata: {name: "+upstream+", labels: {copy: "+label+", "+label+": x}, "+
			"annotations: {note: '"+map[string]string{"good": `"` + annotation + `"`, "bad": "[" + annotation}[upstream]+"', "+annotation+": x}}, data: {a: "+data+"}}")
	}
	for _, command := range [][]string{{"plan", "-c", file}, {"plan", "-c", file, "-o", "json"}, {"plan", "-c", file, "-o", "markdown"}, {"get", "-c", file, "-o", "json"},
		{"why", "-c", file, "-n", ns, "secret", "good"}, {"why", "-c", file, "-n", ns, "-o", "json", "secret", "bad"},
		{"why", "-c", file, "-n", ns, "-o", "svg", "--file", "-", "secret", "bad"},
		{"export", "-c", file, "--sqlite", filepath.Join(dir, "state.db")}} {
		_, out := run(t, command...)
		out += written(t, command)
		if !strings.Contains(out, "good") && !strings.Contains(out, "bad") {
			t.Errorf("%v says nothing:\n%s", command, out)
		}
		for _, value := range []string{label, annotation, data, "DAThunter2"} {
			if strings.Contains(out, value) {
				t.Errorf("%v prints %s:\n%s", command, value, out)
			}
		}
	}
}

// No command prints a part of a value that was generated, nor of one that a dry run makes.
func TestCommandsPrintNothingGenerated(t *testing.T) {
	t.Parallel()
	ns, name := memory(t), testkit.Unique(t)
	dir := t.TempDir()
	file, upstream := filepath.Join(dir, "operator.yaml"), filepath.Join(dir, "cr.yaml")
	operator, _, _ := strings.Cut(secretOperator(ns, name), "inputs:")
	_, conventions, _ := strings.Cut(secretOperator(ns, name), "conventions:")
	operator += `downstreams:
  - name: login
    apiVersion: v1
    kind: Secret
    template: "{metadata: {name: {{ .metadata.name }}}, stringData: {size: '{{ .spec.size }}'}}"
    generated: [{path: .data.password}]
conventions:` + conventions
	widget := "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: a, namespace: " + ns + "}, spec: {size: 1}}"
	for path, text := range map[string]string{file: operator, upstream: widget} {
		write(t, path, text)
	}
	if _, out := run(t, "render", "-c", file, "-f", upstream); !strings.Contains(out, "password: (generated)") {
		t.Errorf("render prints no placeholder:\n%s", out)
	}
	testkit.Apply(t, ns, widget)
	random := regexp.MustCompile(`\b(?:[A-Za-z0-9]{32}|[A-Za-z0-9+/]{43}=)`) // the text, and its base64
	tellsNothing := func(value string) {
		t.Helper()
		for _, command := range [][]string{{"plan", "-c", file}, {"plan", "-c", file, "-o", "json"}, {"plan", "-c", file, "-o", "markdown"}, {"get", "-c", file, "-o", "json"},
			{"why", "-c", file, "-n", ns, "widget", "a"}, {"why", "-c", file, "-n", ns, "-o", "json", "widget", "a"},
			{"why", "-c", file, "-n", ns, "-o", "svg", "--file", "-", "widget", "a"},
			{"export", "-c", file, "--sqlite", filepath.Join(dir, "state.db")}} {
			_, out := run(t, command...)
			out += written(t, command)
			out = strings.NewReplacer(t.Name(), "", strings.ToLower(t.Name()), "").Replace(out) // as long as a value
			if value != "" && len(testkit.LeakedGenerated(out, []byte(value))) > 0 {
				t.Errorf("%v prints the value:\n%s", command, out)
			}
			if found := random.FindString(out); found != "" && value == "" && !strings.Contains(out, "v1-"+found) {
				t.Errorf("%v prints %s:\n%s", command, found, out)
			}
		}
	}
	tellsNothing("")
	p := start(t, testkit.Config(t), "run", "-c", file, "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	var value string
	testkit.Eventually(t, patience, func() (bool, string) {
		u := testkit.Find(t, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, ns, "a")
		if u == nil {
			return false, "there is no Secret"
		}
		encoded, _, _ := unstructured.NestedString(u.Object, "data", "password")
		plain, err := base64.StdEncoding.DecodeString(encoded)
		value = string(plain)
		return err == nil && value != "", "there is no password"
	})
	p.stop(t)
	testkit.Patch(t, widgets, ns, "a", "somebody", `{"spec":{"size":2}}`) // what plan shows is an update
	tellsNothing(value)
}
