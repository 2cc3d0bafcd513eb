package compile_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// What an expression may copy into a status or a condition is held to what is not a value of a Secret.
func TestSecretsAreNotCopied(t *testing.T) {
	const base = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: a}
watch: {apiVersion: test.example.com/v1, kind: Widget}
inputs: [{name: token, apiVersion: v1, kind: Secret, fixedName: t}]
VALIDATE
downstreams:
  - name: open
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: a, annotations: {sum: '{{ (input "token").data | toJson | sha256sum }}'}}
    READY
  - name: closed
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: b}
      data: {x: '{{ (input "token").data.x | b64dec }}'}
  - name: own
    apiVersion: v1
    kind: Secret
    template: |
      metadata: {name: c}
conventions: {fieldManager: a, labels: {example.com/a: "yes"}, hash: {annotation: example.com/hash}}
status: {conditions: {ready: Ready}, fields: [{path: .status.x, value: "VALUE"}]}
`
	for _, row := range []struct{ value, ready, validate, refused string }{
		{value: "inputs.token.data.x", refused: "status.fields[0].value"},
		{value: "inputs.?token.?data.?x.orValue('')", refused: "status.fields[0].value"},
		{value: "string(inputs.token)", refused: "status.fields[0].value"},
		{value: "inputs.map(k, string(inputs[k]))", refused: "status.fields[0].value"},
		{value: "inputs.token.metadata.annotations", refused: "status.fields[0].value"},
		{value: "inputs.token.metadata.name"},
		{value: "inputs.token.type"},
		{value: "inputs.token.data.x == 'y'"},
		{value: "downstreams.open.data"},
		{value: "downstreams.closed.data.x", refused: "status.fields[0].value"},
		{value: "downstreams.closed.metadata.name"},
		{value: "downstreams.own.data", refused: "status.fields[0].value"},
		{value: "has(downstreams.own.data)"},
		{value: "1", ready: "ready: {messageFrom: inputs.token.data.x}", refused: "downstreams[0].ready.messageFrom"},
		{value: "1", ready: "ready: {messageFrom: inputs.token.metadata.name}"},
		{value: "1", validate: "validate: [{rule: 'false', messageExpression: inputs.token.data.x, message: m}]", refused: "validate[0].messageExpression"},
		{value: "1", validate: "validate: [{rule: inputs.token.data.x == 'y', message: m}]"},
	} {
		text := strings.NewReplacer("VALUE", row.value, "READY", row.ready, "VALIDATE", row.validate).Replace(base)
		_, errs := compiledText(t, text, compile.Options{})
		switch {
		case row.refused == "" && errs != "":
			t.Errorf("%v: %s", row, errs)
		case row.refused != "" && !strings.Contains(errs, row.refused+": it reads data of a Secret"):
			t.Errorf("%v is not refused: %s", row, errs)
		}
	}
}
