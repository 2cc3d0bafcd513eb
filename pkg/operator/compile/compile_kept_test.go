package compile_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

const keptConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: x}
watch: {apiVersion: tools.example.com/v1, kind: Thing}
helpers: '{{ define "ns" }}t-{{ .metadata.name }}{{ end }}'
downstreams:
  - name: holder
    apiVersion: v1
    kind: Namespace
    HOLDER
    template: |
      metadata: {name: NAME}
  - name: kept
    apiVersion: v1
    kind: Secret
    deletionPolicy: POLICY
    targetNamespaces: {from: Any}
    template: |
      metadata:
        name: s
        namespace: SPACE
conventions: {fieldManager: x, labels: {a.example.com/x: x}, hash: {annotation: a.example.com/hash}, owner: {reference: true, annotation: a.example.com/owner},
  finalizer: a.example.com/x}
status: {enabled: false}
`

// Of a Namespace that is kept with what is in it, check warns.
func TestKeptWithContents(t *testing.T) {
	const inIt = "downstreams[1].deletionPolicy: it is Orphan, and Namespace of holder is Delete: since this is in it, both are kept"
	for _, row := range []struct{ reason, holder, name, policy, space, want string }{
		{"the same text", "", `"t-{{ .metadata.name }}"`, "Orphan", `"t-{{ .metadata.name }}"`, inIt},
		{"without quotes and spaces", "", `"t-{{ .metadata.name }}"`, "Orphan", "t-{{.metadata.name}}", inIt},
		{"by a helper", "", `{{ template "ns" . }}`, "Orphan", `'{{ template "ns" . }}'`, inIt},
		{"a constant", "", "shared", "Orphan", "shared", inIt},
		{"in another one", "", `"t-{{ .metadata.name }}"`, "Orphan", `"o-{{ .metadata.name }}"`, ""},
		{"it is deleted", "", "shared", "Delete", "shared", ""},
		{"both are kept", "deletionPolicy: Orphan", "shared", "Orphan", "shared", ""},
		{"the Namespace is of others", "ownership: Fields", "shared", "Orphan", "shared", ""},
		{"a definition", "apiextensions.k8s.io/v1 CustomResourceDefinition", "secrets", "Orphan", "x",
			"it is Orphan, and CustomResourceDefinition of holder is Delete: since this is of that kind, both are kept"},
		{"of another kind", "apiextensions.k8s.io/v1 CustomResourceDefinition", "widgets.example.com", "Orphan", "x", ""},
	} {
		conf := strings.NewReplacer("NAME", row.name, "POLICY", row.policy, "SPACE", row.space).Replace(keptConfig)
		if version, kind, ok := strings.Cut(row.holder, " Custom"); ok {
			conf = strings.NewReplacer("apiVersion: v1\n    kind: Namespace\n    HOLDER", "apiVersion: "+version+"\n    kind: Custom"+kind).Replace(conf)
		}
		var got []string
		for _, w := range compileConfig(t, strings.Replace(conf, "HOLDER", row.holder, 1)).Warnings {
			if strings.Contains(w.Error(), "deletionPolicy") {
				got = append(got, w.Error())
			}
		}
		if text := strings.Join(got, "\n"); !strings.Contains(text, row.want) || (text == "") != (row.want == "") {
			t.Errorf("%s: %q", row.reason, text)
		}
	}
}

// Each case is a config, and what Compile says of the fields of its templates.
func TestFieldsOfTemplates(t *testing.T) {
	golden.Cases(t, "testdata/fields/*.txtar", func(t *testing.T, c *golden.Case) {
		p, out := compiledText(t, string(c.Files[0].Data), compile.Options{})
		if p == nil {
			out += "\n"
		}
		for i := 0; p != nil && i < len(p.Warnings); i++ {
			out += "warning: " + p.Warnings[i].Error() + "\n"
		}
		c.Want(t, "want", out)
	})
}
