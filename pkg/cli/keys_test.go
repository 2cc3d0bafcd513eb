package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// everyKey uses each key by which objects are more than one document for each upstream.
const everyKey = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: every}
watch:
  apiVersion: tools.example.com/v1
  kind: Widget
  namespaces: [NS]
  matchConditions: [{name: is-blue, expression: self.spec.color == 'blue'}]
variables: [{name: title, expression: self.metadata.name + '-title'}]
helpers: '{{ define "line" }}from a helper {{ .metadata.name }}{{ end }}'
inputs:
  - {name: monitors, apiVersion: v1, kind: ConfigMap, list: {
      labelSelector: {matchLabels: {monitor: NS}}, matching: object.data.of == self.metadata.name}}
  - {name: price, sql: {sqlite: {path: prices.db}, query: "SELECT color, price FROM prices", key: color}, objectName: self.spec.color}
downstreams:
  - name: page
    apiVersion: v1
    kind: ConfigMap
    after: [login]
    template: |
      metadata: {name: "{{ .metadata.name }}-page"}
      data:
        title: {{ variable "title" }}
        line: {{ include "line" . }}
        users: "{{ range $name, $one := downstream "worker" }}{{ $name }} {{ end }}"
        price: "{{ (input "price").row.price }}"
        urls: "{{ range input "monitors" }}{{ .data.url }} {{ end }}"
  - name: login
    apiVersion: v1
    kind: Secret
    template: "metadata: {name: '{{ .metadata.name }}-login'}"
    generated: [{path: .data.password}]
  - name: worker
    apiVersion: v1
    kind: ConfigMap
    forEach: {items: "['a', 'b']"}
    when: item != self.metadata.name
    template: "{metadata: {name: '{{ .metadata.name }}-{{ item }}'}, data: {item: '{{ item }}'}}"
  - name: pull
    apiVersion: v1
    kind: ServiceAccount
    ownership: Fields
    template: "{metadata: {name: builder, labels: {team: blue}}}"
` + ownConventions + `  finalizer: NS.example.com/cleanup
status:
  conditions: {ready: Ready}
`

const everyCase = `apiVersion: corollary.dev/v1alpha1
kind: Case
config: operator.yaml
upstream: {apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one, namespace: NS}, spec: {color: blue}}
inputs:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: NS, labels: {monitor: NS}}, data: {of: one, url: x}}
  - {apiVersion: corollary.dev/v1alpha1, kind: Row, metadata: {namespace: price, name: blue}, row: {color: blue, price: 7}}
live:
  - applied: worker
    objectName: one-a
  - applied: worker
    objectName: one-b
  - applied: login
  - object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: builder, namespace: NS}}
expect:
  downstreams:
    page: {state: Create, fields: {.data.title: one-title, .data.line: from a helper one, .data.users: "one-a one-b ", .data.urls: "x ",
      .data.price: "7"}}
    login: {state: InSync}
    pull: {state: Update, fields: {.metadata.labels.team: blue}}
`

// TestEveryKeyInEveryCommand checks that each command knows each key: what is made of it is shown where the command
// shows such things.
func TestEveryKeyInEveryCommand(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	dir := inDirectory(t)
	here := func(text string) string { return strings.ReplaceAll(text, "NS", ns) }
	const widget = "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one, namespace: NS}, spec: {color: blue}}"
	const monitor = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: NS, labels: {monitor: NS}}, data: {of: one, url: x}}"
	const builder = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: builder, namespace: NS}}"
	const row = "{apiVersion: corollary.dev/v1alpha1, kind: Row, metadata: {namespace: price, name: blue}, row: {color: blue, price: 7}}"
	for file, text := range map[string]string{"operator.yaml": everyKey, "cr.yaml": widget,
		"inputs.yaml": monitor + "\n---\n" + builder + "\n---\n" + row, "case.yaml": everyCase} {
		write(t, filepath.Join(dir, file), here(text))
	}
	_, exec := database(t, dir+"/prices.db")
	exec("CREATE TABLE prices (color TEXT PRIMARY KEY, price INTEGER); INSERT INTO prices VALUES ('blue', 7)")
	expect := func(command string, want ...string) {
		t.Helper()
		_, out := run(t, strings.Fields(here(command))...)
		for _, text := range want {
			absent := strings.HasPrefix(text, "!")
			if text = here(strings.TrimPrefix(text, "!")); strings.Contains(out, text) == absent {
				t.Errorf("%s: %q is wanted %t:\n%s", command, text, !absent, out)
			}
		}
	}
	expect("check -c operator.yaml", "downstream pull: ServiceAccount", "input monitors: ConfigMap", "downstream login: Secret", "no errors")
	expect("render -c operator.yaml -f cr.yaml --inputs inputs.yaml", "(generated)", "name: one-a", "name: one-b", "name: builder",
		"team: blue")
	expect("generate rbac -c operator.yaml --namespace system", "serviceaccounts", "secrets", "configmaps", "get", "watch")
	expect("generate policy -c operator.yaml", "!page")
	applyAll(t, ns, here(widget+"\n---\n"+monitor+"\n---\n"+builder))
	expect("plan -c operator.yaml", "ConfigMap NS/one-a", "ConfigMap NS/one-b", "Secret NS/one-login", "ServiceAccount NS/builder")
	runUntilIdle(t, ns, "operator.yaml")
	testkit.Apply(t, ns, "{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: red}, spec: {color: red}}")
	expect("plan -c operator.yaml", "!one-", "!red")
	expect("get -c operator.yaml", "one", "!red")
	expect("why -c operator.yaml -n NS widget one", "downstream page: ConfigMap NS/one-page: InSync",
		"downstream worker: ConfigMap NS/one-a: InSync",
		"downstream worker: ConfigMap NS/one-b: InSync", "downstream login: Secret NS/one-login: InSync",
		"downstream pull: ServiceAccount NS/builder: InSync")
	expect("why -c operator.yaml -n NS cm/m", "is input monitors of Widget NS/one")
	expect("why -c operator.yaml -n NS widget red", "is-blue")
	expect("test case.yaml", "1 case: 1 ok")
	exec("UPDATE prices SET price = 8")
	expect("plan -c operator.yaml", `.data.price: "7" -> "8"`)
	expect("why -c operator.yaml -n NS widget one", ".data.price")
	exec("DROP TABLE prices")
	expect("plan -c operator.yaml", "executing inputs[1].sql.query: SQL logic error: no such table: prices", "!ConfigMap")
}
