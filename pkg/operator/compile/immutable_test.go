package compile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

const immutableConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch:
  apiVersion: example.com/v1
  kind: App
  schema:
    spec:
      size: string | required=true
      fixed: string | required=true immutable=true
      name: string
      list: "[]Part"
      version: string
    types:
      Part: {size: string}
parameters: {class: fast}
variables:
  - {name: size, expression: self.spec.size}
  - {name: fixed, expression: self.spec.fixed}
downstreams:
  - name: it
    apiVersion: API
    kind: KIND
    MORE
    template: |
      metadata: {name: "NAME"}
      TEMPLATE
conventions:
  fieldManager: app
  labels: {example.com/app: app}
  hash: {annotation: example.com/hash}
status: {conditions: {ready: Ready}}
`

// TestImmutable: a field that may change and is in one that cannot.
func TestImmutable(t *testing.T) {
	claim := func(hole string) string {
		return "spec: {serviceName: x, selector: {matchLabels: {a: b}}, template: {}, volumeClaimTemplates: [{spec: {resources: {requests: {storage: " + hole + "}}}}]}"
	}
	for _, row := range []struct{ reason, kind, more, template, want string }{
		{"a size of a claim", "apps/v1 StatefulSet", "", claim("{{ .spec.size }}"), ".spec.size may change, and .spec.volumeClaimTemplates of a StatefulSet cannot"},
		{"in text", "apps/v1 StatefulSet", "", claim(`"{{ .spec.size }}Gi"`), ".spec.size may change"},
		{"by a function", "apps/v1 StatefulSet", "", claim(`{{ printf "%sGi" .spec.size }}`), ".spec.size may change"},
		{"by a default", "apps/v1 StatefulSet", "", claim(`{{ .spec.fixed | default .spec.size }}`), ".spec.size may change"},
		{"by a variable of the config", "apps/v1 StatefulSet", "", claim(`{{ variable "size" }}`), ".spec.size may change"},
		{"by a variable of the template", "apps/v1 StatefulSet", "", claim(`{{ $s := .spec.size }}{{ $s }}`), ".spec.size may change"},
		{"of an item", "apps/v1 StatefulSet", "", claim(`{{ range .spec.list }}{{ .size }}{{ end }}`), ".spec.list.size may change"},
		{"by a helper", "apps/v1 StatefulSet", "", claim(`{{ define "s" }}{{ .spec.size }}{{ end }}{{ include "s" . }}`), ".spec.size may change"},
		{"a rule of the schema forbids it", "apps/v1 StatefulSet", "", claim("{{ .spec.fixed }}"), ""},
		{"so of a variable", "apps/v1 StatefulSet", "", claim(`{{ variable "fixed" }}`), ""},
		{"a constant", "apps/v1 StatefulSet", "", claim(`{{ param "class" }}`), ""},
		{"a name never changes", "apps/v1 StatefulSet", "", claim("{{ .metadata.name }}"), ""},
		{"a label may", "apps/v1 StatefulSet", "", claim("{{ .metadata.labels.size }}"), ".metadata.labels.size may change"},
		{"it is recreated", "apps/v1 StatefulSet", "updatePolicy: Recreate", claim("{{ .spec.size }}"), ""},
		{"it is never updated", "apps/v1 StatefulSet", "updatePolicy: CreateOnly", claim("{{ .spec.size }}"), ""},
		{"a part that can be changed", "apps/v1 StatefulSet", "", "spec: {serviceName: x, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {v: {{ .spec.version }}}}}}", ""},
		{"a selector", "apps/v1 Deployment", "", "spec: {selector: {matchLabels: {v: {{ .spec.version }}}}, template: {}}", ".spec.version may change, and .spec.selector of a Deployment cannot"},
		{"a key of a selector", "apps/v1 Deployment", "", "spec: {selector: {matchLabels: { {{ .spec.version }}: x}}, template: {}}", ".spec.version may change, and .spec.selector of a Deployment cannot"},
		{"what is in the name", "apps/v1 Deployment", "", "spec: {selector: {matchLabels: {v: {{ .spec.name }}}}, template: {}}", ""},
		{"a role", "rbac.authorization.k8s.io/v1 RoleBinding", "", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .spec.name }}}", ".spec.name may change, and .roleRef of a RoleBinding cannot"},
		{"the pods of a Job", "batch/v1 Job", "", "spec: {template: {metadata: {labels: {v: {{ .spec.version }}}}}}", ".spec.version may change, and .spec.template of a Job cannot"},
		{"a class of a claim", "v1 PersistentVolumeClaim", "", "spec: {storageClassName: {{ .spec.name }}}", ".spec.name may change, and .spec of a PersistentVolumeClaim cannot"},
		{"advice that loses data says so", "v1 PersistentVolumeClaim", "", "spec: {storageClassName: {{ .spec.name }}}", "creates it again: with the data of its volume"},
		{"data beside immutable", "v1 ConfigMap", "", "immutable: true\n      data: {v: {{ .spec.version }}}", ".spec.version may change, and .data with immutable: true of a ConfigMap cannot"},
		{"texts of a Secret beside immutable", "v1 Secret", "", "immutable: true\n      stringData: {v: {{ .spec.version }}}", ".stringData with immutable: true of a Secret cannot"},
		{"data that may change", "v1 ConfigMap", "", "immutable: false\n      data: {v: {{ .spec.version }}}", ""},
		{"but its size", "v1 PersistentVolumeClaim", "", "spec: {resources: {requests: {storage: {{ .spec.size }}}}}", ""},
		{"an address", "v1 Service", "", "spec: {clusterIP: {{ .spec.name }}, ports: [{port: 80}]}", ".spec.name may change, and .spec.clusterIP of a Service cannot"},
		{"rules beside an aggregationRule", "rbac.authorization.k8s.io/v1 ClusterRole", "", "rules: []\n      aggregationRule: {clusterRoleSelectors: []}", "both would write them in turn: leave rules out"},
		{"rules alone", "rbac.authorization.k8s.io/v1 ClusterRole", "", "rules: []", ""},
		{"a key of YAML 1.1", "v1 ConfigMap", "", "data: {n: x}", `app.yaml:27: downstreams[0].template: YAML 1.1 reads the key n as "false": quote it: "n"`},
		{"a number with zeros", "v1 ConfigMap", "", "data: {a: x, 010: x}", `YAML 1.1 reads the key 010 as "8": quote it: "010"`},
		{"in quotes", "v1 ConfigMap", "", `data: {"n": x, true: x, 1: x}`, ""},
	} {
		api, kind, _ := strings.Cut(row.kind, " ")
		name := "it"
		if row.reason == "what is in the name" {
			name = "it-{{ .spec.name }}"
		}
		t.Chdir(t.TempDir())
		text := strings.NewReplacer("API", api, "KIND", kind, "MORE", row.more, "TEMPLATE", row.template, "NAME", name).Replace(immutableConfig)
		if kind == "ClusterRole" {
			text = strings.Replace(text, "  hash:", "  owner: {annotation: example.com/owner}\n  finalizer: example.com/cleanup\n  hash:", 1)
		}
		must.Do(t, os.WriteFile("app.yaml", []byte(text), 0o600))
		files, errs := load.Operators(load.Options{Files: []string{"app.yaml"}})
		if len(errs) > 0 {
			t.Fatalf("%s: %v", row.reason, errs)
		}
		source := must.Get(kinds.Offline()).In(t)
		list, errs, err := compile.All(files, nil, compile.Options{Kinds: source})
		if err != nil || len(errs) > 0 {
			t.Fatalf("%s: %v %v", row.reason, errs, err)
		}
		got := ""
		for _, w := range list[0].Pipeline.Warnings {
			if strings.Contains(w.Error(), "may change") || strings.Contains(w.Error(), "in turn") || strings.Contains(w.Error(), "YAML") {
				got += w.Error() + "\n"
			}
		}
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}
