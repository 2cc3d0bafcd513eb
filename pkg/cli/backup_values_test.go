package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// A backup with Secrets brings random values back, and the operator keeps them; one without says what is lost. Objects of others are in
// neither.
func TestBackupOfRandomValues(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := inDirectory(t)
	conf := `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: logins}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - name: login
    apiVersion: v1
    kind: Secret
    template: "metadata: {name: '{{ .metadata.name }}'}"
    generated: [{path: .data.password}]
  - name: shared
    apiVersion: v1
    kind: ConfigMap
    ownership: Fields
    template: "{metadata: {name: shared}, data: {color: {{ .spec.color }}}}"
` + ownConventions + `  finalizer: NS.example.com/cleanup
  pause: {annotation: NS.example.com/paused}
status: {conditions: {ready: Ready}, downstreams: .status.downstreams}
events: None
`
	identity := must(age.GenerateX25519Identity())(t)
	for file, text := range map[string]string{"operator.yaml": strings.ReplaceAll(conf, "NS", ns), "key": identity.String() + "\n"} {
		write(t, filepath.Join(dir, file), text)
	}
	password := func() string {
		value, _, _ := unstructured.NestedString(testkit.Get(t, secrets, ns, "one").Object, "data", "password")
		return value
	}
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {theirs: x}}")
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one}, spec: {color: blue}}")
	runUntilIdle(t, ns, dir+"/operator.yaml")
	made := password()
	if made == "" {
		t.Fatal("there is no password")
	}
	expect(t, 0, "note: Secrets are left out, with values that a restored operator would make anew (generated: logins/login): add --secrets",
		"backup", "-c", "operator.yaml", "--downstreams", "-o", dir+"/plain")
	code, out := run(t, "backup", "-c", "operator.yaml", "--downstreams", "--secrets",
		"--age-recipient", identity.Recipient().String(), "-o", dir+"/all")
	if code != 0 || !strings.Contains(out, "secrets: 1 object") || strings.Contains(out, "configmaps") || strings.Contains(out, made) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	before, after, _ := strings.Cut(strings.ReplaceAll(conf, "NS", ns), "  - name: login")
	_, after, _ = strings.Cut(after, "  - name: shared")
	later := before + "  - name: shared" + after
	write(t, dir+"/later.yaml", later)
	expect(t, 0, "secrets: 1 object", "backup", "-c", "later.yaml", "--downstreams", "--secrets",
		"--age-recipient", identity.Recipient().String(), "-o", dir+"/left-over")
	expect(t, 0, "note: Secrets are left out: add --secrets", "backup", "-c", "later.yaml", "--downstreams", "-o", dir+"/plain")
	testkit.Patch(t, widgets, ns, "one", "test", `{"metadata": {"finalizers": null}}`)
	testkit.Delete(t, widgets, ns, "one")
	testkit.Delete(t, secrets, ns, "one")
	expect(t, 0, "", "restore", "all", "--age-identity", "key")
	runUntilIdle(t, ns, dir+"/operator.yaml")
	if password() != made {
		t.Error("the password is another one")
	}
}
