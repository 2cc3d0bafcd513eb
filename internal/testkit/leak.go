package testkit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// The number of consecutive bytes of a Secret's value, or of an encoding of it, that count as a leak. Four random
// letters are in a long text by chance: of a value that was generated it takes more.
const (
	leakWindow          = 4
	leakWindowGenerated = 8
)

// Leaked returns the pieces of one of the values of Secrets in a text, plain or encoded: in base64 (at any offset),
// JSON or Go quotes, in upper or lower case.
func Leaked(text string, secret []byte) []string { return leaked(text, secret, leakWindow) }

// LeakedGenerated is Leaked for a value of random letters.
func LeakedGenerated(text string, secret []byte) []string {
	return leaked(text, secret, leakWindowGenerated)
}

func leaked(text string, secret []byte, size int) []string {
	var found []string
	seen := map[string]bool{}
	for _, encoded := range encodings(secret) {
		for i := 0; i+size <= len(encoded); i++ {
			window := string(encoded[i : i+size])
			if !seen[window] && distinctive(window) && strings.Contains(text, window) {
				found = append(found, window)
			}
			seen[window] = true
		}
	}
	return found
}

func encodings(secret []byte) [][]byte {
	quoted, _ := json.Marshal(string(secret))
	list := [][]byte{secret, bytes.ToUpper(secret), bytes.ToLower(secret), quoted, []byte(fmt.Sprintf("%q", secret))}
	for i := range min(3, len(secret)) {
		list = append(list, []byte(base64.StdEncoding.EncodeToString(secret[i:])),
			[]byte(base64.URLEncoding.EncodeToString(secret[i:])))
	}
	return list
}

// distinctive reports whether a piece cannot be in a text by chance, unlike hexadecimal digits, which are in uids and
// event names.
func distinctive(window string) bool {
	if strings.Trim(window, "0123456789abcdefABCDEF") == "" {
		return false
	}
	n := 0
	for _, r := range window {
		if r > ' ' && !strings.ContainsRune(`"\{}:=-,AB0123456789`, r) {
			n++
		}
	}
	return n >= leakWindow-1
}

// Secrets returns values of Secrets by their special feature. No piece of one is in other texts by chance.
func Secrets() map[string][]byte {
	token := "qzXW7vkJQp4ZjwKx9"
	return map[string][]byte{
		"token": []byte(strings.Repeat(token, 20)),
		"lines": []byte("qzXW 7vkJ\n  Qp4Zjw\n\nKx9 qkZj: [vQ\n"),
		"json":  []byte(`{"qzXW7vkJ":"Qp4ZjwKx9","vQkz":["wJxq"]}`),
		"bytes": append([]byte{0, 255, 1, 254, '\n'}, []byte(token)...),
		"short": []byte("qzXW7"),
	}
}

// SecretSinks returns templates and rules of a downstream that each fail in another way because of the value of a
// Secret: by failure, the fields of a downstream in a config. The Secret is the input "settings", its key "color".
func SecretSinks() map[string]string {
	const head = "metadata:\n        name: {{ .metadata.name }}-SINK\n"
	config := func(template string) string {
		return "apiVersion: v1\n    kind: ConfigMap\n    template: |\n      " + template
	}
	data := func(hole string) string { return config(head + "      data: {x: " + hole + "}") }
	const plain = `(input "settings").data.color | b64dec`
	sinks := map[string]string{
		"label": config("metadata:\n        name: {{ .metadata.name }}-SINK\n        labels: {secret: {{ " +
			plain + " | quote }}}"),
		"labelKey": config("metadata:\n        name: {{ .metadata.name }}-SINK\n        labels: {{ dict (" +
			plain + ") \"x\" | toJson }}"),
		"name": config("metadata:\n        name: a_{{ " + plain + " }}"),
		"ns": config("metadata:\n        name: {{ .metadata.name }}-SINK\n        namespace: {{ " +
			plain + " | quote }}"),
		"metaKey": config("metadata:\n        name: {{ .metadata.name }}-SINK\n        {{ " + plain + " | quote }}: x"),
		"kind":    config("kind: {{ " + plain + " | quote }}\n      metadata: {name: {{ .metadata.name }}-SINK}"),
		"dataKey": config(head + "      data: {{ dict (printf \"%s ~\" (" + plain + ")) \"x\" | toJson }}"),
		"twice": config(head + "      data:\n        {{ " + plain +
			" | quote }}: a\n        {{ " + plain + " | quote }}: b"),
		"svcType": "apiVersion: v1\n    kind: Service\n    template: |\n      " + head + "      spec: {type: {{ " + plain +
			" | quote }}, ports: [{port: 80}]}",
		"port": "apiVersion: v1\n    kind: Service\n    template: |\n      " + head +
			"      spec: {ports: [{port: 80, name: {{ " + plain + " | quote }}}]}",
		"denied": config("metadata:\n        name: {{ .metadata.name }}-SINK\n        annotations: {denied: \"yes\"}\n    " +
			"  data: {x: {{ " + plain + " | toJson }}}"),
		"when":  data("a") + "\n    when: int(inputs.settings.data.color) > 3",
		"ready": data("a") + "\n    ready: {rules: [{rule: int(inputs.settings.data.color) > 3, message: not yet}]}",
		"live": data("{{ "+plain+" | toJson }}") +
			"\n    ready: {rules: [{rule: int(downstream.data.x) > 3, message: not yet}]}",
		"failed": data("{{ "+plain+" | toJson }}") +
			"\n    ready: {failed: [{rule: downstream.data.x == inputs.settings.data.color, message: it failed}]}",
		"secret": "apiVersion: v1\n    kind: Secret\n    template: |\n      " + head +
			"      type: kubernetes.io/dockerconfigjson\n      stringData: {.dockerconfigjson: {{ printf \"{%s\" (" +
			plain + ") | quote }}}",
	}
	maps.Copy(sinks, deploymentSinks(head, plain))
	// printf has a format that is made: check refuses a constant one that the value never fits.
	for name, hole := range map[string]string{"semver": plain + " | semver | toJson",
		"fromJson": plain + " | printf \"{%s\" | fromJson | toJson", "fail": "fail (printf \"no %s\" (" + plain + "))",
		"required": "required (" + plain + ") .spec.nothing", "index": "index .spec (" + plain + ")",
		"dig": "dig (" + plain + ") (list) .metadata", "field": "(" + plain + ").color",
		"printf": "printf (print \"%d\") (" + plain + ")", "atoi": "add 1 (" + plain + " | toDecimal)",
		"b64": plain + " | printf \"~%s\" | b64dec", "regex": "regexFind (printf \"(%s\" (" + plain + ")) \"x\"",
		"slice": "slice (" + plain + ") 1 2", "text": "\"{{ dict (" + plain + ") 1 }}\"",
		"repeat": "repeat 1000000000 (" + plain + ")", "missing": "index (dict) (" + plain + ")"} {
		if !strings.Contains(hole, "{{") {
			hole = "{{ " + hole + " }}"
		}
		sinks[name] = data(hole)
	}
	for name, text := range sinks {
		sinks[name] = strings.ReplaceAll(text, "SINK", strings.ToLower(name))
	}
	return sinks
}

// deploymentSinks are the sinks in a Deployment.
func deploymentSinks(head, plain string) map[string]string {
	deployment := "apiVersion: apps/v1\n    kind: Deployment\n    template: |\n      " + head
	return map[string]string{
		"replicas": deployment + "      spec: {replicas: " +
			"{{ " + plain + " | quote }}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: " +
			"{containers: [{name: a, image: b}]}}}",
		"image": deployment + "      spec: {selector: " +
			"{matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: {{ " + plain +
			" | quote }}, image: b}]}}}",
		"unknown": deployment +
			"      spec: {selector: {matchLabels: {a: b}}, {{ " + plain +
			" | quote }}: x, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}",
		"envTwice": deployment + "      spec: {selector: " +
			"{matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b, env: " +
			"[{name: {{ " + plain + " | quote }}, value: a}, {name: {{ " + plain + " | quote }}, value: b}]}]}}}",
	}
}
