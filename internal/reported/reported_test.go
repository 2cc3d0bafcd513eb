package reported_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
)

const operatorConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: scene}
watch: {apiVersion: test.example.com/v1, kind: Widget}
validate: []
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: {{ .spec.name | default .metadata.name }}
      data: {{ .spec.data }}
conventions:
  fieldManager: scene
  labels: {scene.example.com/managed: "yes"}
  annotations: {scene.example.com/docs: one}
  hash: {annotation: scene.example.com/hash}
  owner: {reference: true, annotation: scene.example.com/owner}
  finalizer: scene.example.com/cleanup
  pause: {annotation: scene.example.com/paused}
status:
  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}
  downstreams: .status.downstreams
events: All
retry: {minDelay: 1s, maxDelay: 10s}
`

const widget = `{apiVersion: test.example.com/v1, kind: Widget, metadata: {name: a, namespace: ns, labels: {served: "yes"}}, spec: {data: {key: value}}}`

// causes are changes and what the operator must say of them.
var causes = []struct {
	name, reason string
	config       []string // changes of operatorConfig, before the start
	do           func(s *scene)
}{
	{name: "create", reason: "nothing exists", do: func(s *scene) {}},
	{name: "spec", reason: "the upstream changes", do: func(s *scene) { s.patch(widgets, "a", `{"spec":{"data":{"key":"new"}}}`) }},
	{name: "template", reason: "the config changes", do: func(s *scene) {
		s.config(operatorConfig, "data: {{", "immutable: false\n      data: {{")
		s.reload()
	}},
	{name: "annotation", reason: "a convention changes", do: func(s *scene) {
		s.config(operatorConfig, "docs: one", "docs: two")
		s.reload()
	}},
	{name: "annotation at a restart", reason: "a convention changes", do: func(s *scene) {
		s.config(operatorConfig, "docs: one", "docs: two")
		s.start()
	}},
	{name: "label added", reason: "the watch does not show the object", do: func(s *scene) {
		s.config(operatorConfig, `managed: "yes"`, `managed: "yes", more: "yes"`)
		s.reload()
	}},
	{name: "label added at a restart", reason: "the watch does not show the object", do: func(s *scene) {
		s.config(operatorConfig, `managed: "yes"`, `managed: "yes", more: "yes"`)
		s.start()
	}},
	{name: "label changed", reason: "the watch does not show the object", do: func(s *scene) {
		s.config(operatorConfig, `managed: "yes"`, `managed: "true"`)
		s.reload()
	}},
	{name: "hash key", reason: "without a previous one", do: func(s *scene) {
		s.config(operatorConfig, `example.com/hash}`, `example.com/other}`)
		s.reload()
	}},
	{name: "hash key at a restart", reason: "without a previous one", do: func(s *scene) {
		s.config(operatorConfig, `example.com/hash}`, `example.com/other}`)
		s.start()
	}},
	{name: "hash algorithm", reason: "the hash is another one", do: func(s *scene) {
		s.config(operatorConfig, `example.com/hash}`, `example.com/hash, algorithm: sha1}`)
		s.reload()
	}},
	{name: "owner annotation", reason: "instead of a reference", do: func(s *scene) {
		s.config(operatorConfig, `reference: true`, `reference: false`)
		s.reload()
	}},
	{name: "owner reference", reason: "instead of an annotation", config: []string{`reference: true`, `reference: false`}, do: func(s *scene) {
		s.config(operatorConfig)
		s.reload()
	}},
	{name: "owner annotation key", reason: "without a previous one", config: []string{`reference: true`, `reference: false`}, do: func(s *scene) {
		s.config(operatorConfig, `reference: true, annotation: scene.example.com/owner`, `reference: false, annotation: scene.example.com/of`)
		s.start()
	}},
	{name: "field manager", reason: "without a previous one", do: func(s *scene) {
		s.config(operatorConfig, `fieldManager: scene`, `fieldManager: other`)
		s.start()
	}},
	{name: "previous names", reason: "all names change", do: func(s *scene) {
		s.config(operatorConfig, `fieldManager: scene`, `fieldManager: other`, "example.com/hash}", "example.com/other}", "pause:",
			"previous: {fieldManager: scene, hash: {annotation: scene.example.com/hash}}\n  pause:")
		s.reload()
	}},
	{name: "edited", reason: "drift by kubectl edit", do: func(s *scene) { s.patch(configMaps, "a", `{"data":{"key":"tampered"}}`) }},
	{name: "applied", reason: "drift by kubectl apply --server-side", do: func(s *scene) {
		s.apply("kubectl", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: tampered}}`)
	}},
	{name: "field removed", reason: "nobody owns it", do: func(s *scene) { s.patch(configMaps, "a", `{"data":{"key":null}}`) }},
	{name: "label removed", reason: "the watch loses the object", do: func(s *scene) {
		s.patch(configMaps, "a", `{"metadata":{"labels":{"scene.example.com/managed":null}}}`)
	}},
	{name: "hash removed", reason: "it looks like another hash key", do: func(s *scene) {
		s.patch(configMaps, "a", `{"metadata":{"annotations":{"scene.example.com/hash":null}}}`)
	}},
	{name: "owner removed", reason: "the mark is ours, too", do: func(s *scene) {
		s.patch(configMaps, "a", `{"metadata":{"ownerReferences":null}}`)
	}},
	{name: "deleted", reason: "somebody deletes the downstream", do: func(s *scene) { s.delete(configMaps, "a") }},
	{name: "restart", reason: "nothing happened", do: func(s *scene) { s.start() }},
	{name: "edited while no process runs", reason: "drift that no watch showed", do: func(s *scene) {
		s.stop()
		s.patch(configMaps, "a", `{"data":{"key":"tampered"}}`)
		s.start()
	}},
	{name: "renamed", reason: "superseded", do: func(s *scene) { s.patch(widgets, "a", `{"spec":{"name":"b"}}`) }},
	{name: "paused", reason: "healthy", do: func(s *scene) {
		s.patch(widgets, "a", `{"metadata":{"annotations":{"scene.example.com/paused":"true"}}}`)
	}},
	{name: "paused and edited", reason: "a generation that nobody acted on", do: func(s *scene) {
		s.patch(widgets, "a", `{"metadata":{"annotations":{"scene.example.com/paused":"true"}}}`)
		s.rest()
		s.patch(widgets, "a", `{"spec":{"data":{"key":"new"}}}`)
	}},
	{name: "adopted", reason: "it exists, and nobody owns it", config: inConfigMap("adoptionPolicy: IfUnowned"), do: func(s *scene) {
		s.apply("helm", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {key: old}}`)
		s.patch(widgets, "a", `{"spec":{"name":"b"}}`)
	}},
	{name: "adopted with its fields, and edited again", reason: "the manager whose fields are ours now",
		config: inConfigMap("adoptionPolicy: IfUnowned", "adopt: {fieldManagers: [helm]}"), do: func(s *scene) {
			s.apply("helm", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {key: old, more: old}}`)
			s.patch(widgets, "a", `{"spec":{"name":"b"}}`)
			s.rest()
			s.said()
			s.apply("helm", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {key: old, more: old}}`)
		}},
	{name: "conflict", reason: "it exists, and may not be adopted", do: func(s *scene) {
		s.apply("helm", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {key: old}}`)
		s.patch(widgets, "a", `{"spec":{"name":"b"}}`)
	}},
	{name: "another namespace that does not exist", reason: "a permanent refusal", config: []string{"data: {{", "# {{", "name: {{ .spec.name",
		"namespace: {{ .spec.namespace | default \"ns\" }}\n        name: {{ .spec.name",
		"kind: ConfigMap", "kind: ConfigMap\n    targetNamespaces: {from: Any}"},
		do: func(s *scene) { s.patch(widgets, "a", `{"spec":{"namespace":"missing"}}`) }},
	{name: "fields of an object of others", reason: "taken over and given back", config: inConfigMap("ownership: Fields"), do: func(s *scene) {
		s.apply("helm", configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {more: old}}`)
		s.rest()
		s.delete(widgets, "a")
	}},
	{name: "invalid", reason: "a rule refuses it",
		config: []string{"validate: []", "validate: [{rule: \"!has(self.spec.name)\", message: no name}]"},
		do:     func(s *scene) { s.patch(widgets, "a", `{"spec":{"name":"b"}}`) }},
	{name: "paused with something unwanted", reason: "what is not wanted does not count",
		config: []string{"downstreams:\n",
			"downstreams:\n  - {name: other, apiVersion: v1, kind: Secret, when: \"false\", template: \"metadata: {name: x}\"}\n"},
		do: func(s *scene) {
			s.patch(widgets, "a", `{"metadata":{"annotations":{"scene.example.com/paused":"true"}}}`)
		}},
	{name: "paused before anything exists", reason: "there is nothing that could be ready", do: func(s *scene) {
		s.stop()
		s.delete(configMaps, "a")
		s.patch(widgets, "a", `{"metadata":{"annotations":{"scene.example.com/paused":"true"}}}`)
		s.start()
	}},
	{name: "paused, edited and continued", reason: "the pause leaves nothing behind", do: func(s *scene) {
		s.patch(widgets, "a", `{"metadata":{"annotations":{"scene.example.com/paused":"true"}},"spec":{"data":{"key":"new"}}}`)
		s.rest()
		s.patch(widgets, "a", `{"metadata":{"annotations":{"scene.example.com/paused":null}}}`)
	}},
	{name: "orphaned", reason: "and adopted again",
		config: inConfigMap("deletionPolicy: Orphan", "adoptionPolicy: IfUnowned"), do: func(s *scene) {
			s.delete(widgets, "a")
			s.rest()
			s.put(widget)
		}},
}

// inConfigMap is a change of operatorConfig that adds lines to its ConfigMap.
func inConfigMap(lines ...string) []string {
	return []string{"kind: ConfigMap", "kind: ConfigMap\n    " + strings.Join(lines, "\n    ")}
}

// narrowings are changes of operatorConfig that exclude the Widget a, which it selects.
var narrowings = []struct {
	name           string
	before, narrow []string
}{
	{"labelSelector", nil, []string{"kind: Widget}", "kind: Widget, labelSelector: {matchLabels: {served: \"no\"}}}"}},
	{"matchConditions", nil, []string{"kind: Widget}", "kind: Widget, matchConditions: [{name: named, expression: has(self.spec.name)}]}"}},
	{"namespaceSelector", nil, []string{"kind: Widget}", "kind: Widget, namespaceSelector: {matchLabels: {served: \"no\"}}}"}},
	{"namespaces", []string{"kind: Widget}", "kind: Widget, namespaces: [ns, other]}"},
		[]string{"kind: Widget}", "kind: Widget, namespaces: [other]}"}},
}

// section is a section of a golden file.
func section(name, reason string, said []string) string {
	said = slices.DeleteFunc(said, func(line string) bool { return strings.HasPrefix(line, "event Normal Reloaded") }) // its digest changes
	return "# " + name + ": " + reason + "\n" + strings.Join(said, "\n") + "\n\n"
}

// TestNarrowed: an upstream that a changed config does not select any more says so once, keeps its downstreams, and costs no write after
// that.
func TestNarrowed(t *testing.T) {
	var all strings.Builder
	for _, row := range narrowings {
		for _, how := range []string{"reload", "restart", "reload without a downstream"} {
			play(t, func(s *scene) {
				all.WriteString(section(row.name, how, s.narrow(row.name+" by a "+how, how, row.before, row.narrow)))
			})
		}
	}
	golden.File(t, "testdata/narrowed.txt", []byte(all.String()))
}

// narrow returns what the operator says when a changed config does not select the Widget.
func (s *scene) narrow(name, how string, before, after []string) []string {
	when := []string{"config\n", "config\n    when: self.metadata.labels.served == 'yes'\n"}
	s.config(operatorConfig, append(when, before...)...)
	s.start()
	if text := widget; how == "reload without a downstream" {
		s.put(strings.ReplaceAll(text, `"yes"`, `"maybe"`))
	} else {
		s.put(text)
	}
	s.rest()
	s.said()
	downstreams := len(s.cluster.Objects(configMaps))
	s.config(operatorConfig, append(when, after...)...)
	if how == "restart" {
		s.start()
	} else {
		s.reload()
	}
	said := s.said()
	s.start()
	if s.writes > 0 {
		s.t.Errorf("%s: a restart after that makes %d writes", name, s.writes)
	}
	if now := len(s.cluster.Objects(configMaps)); now != downstreams {
		s.t.Errorf("%s: %d downstreams, there were %d", name, now, downstreams)
	}
	s.config(operatorConfig, append(when, before...)...)
	s.start()
	if ready := s.ready(); !strings.HasPrefix(ready, "Ready True Ready") {
		s.t.Errorf("%s: selected again, it says %s", name, ready)
	}
	return said
}

// TestCauses: every log line, event and condition names what happened.
func TestCauses(t *testing.T) {
	var all strings.Builder
	for _, row := range causes {
		play(t, func(s *scene) {
			s.config(operatorConfig, row.config...)
			s.start()
			s.put(widget)
			s.rest()
			if row.name != "create" {
				s.said()
			}
			row.do(s)
			s.rest()
			all.WriteString(section(row.name, row.reason, s.said()))
		})
	}
	golden.File(t, "testdata/causes.txt", []byte(all.String()))
}
