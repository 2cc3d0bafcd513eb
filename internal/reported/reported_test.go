package reported_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	return "# " + name + ": " + reason + "\n" + strings.Join(withoutReloads(said), "\n") + "\n\n"
}

// withoutReloads leaves out the event Reloaded, whose digest changes.
func withoutReloads(said []string) []string {
	return slices.DeleteFunc(said, func(line string) bool { return strings.HasPrefix(line, "event Normal Reloaded") })
}

// TestNarrowed: an upstream that a changed config does not select any more says so once, keeps its downstreams, and
// costs no write after that.
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

// TestCauses: every log line, event and condition names what happened. Each case has the reason, what happens, and
// after > what the operator says of it.
func TestCauses(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/causes.txtar")
	if err != nil || len(archive.Files) < 38 {
		t.Fatalf("not all cases are there: %v", err)
	}
	for i, c := range archive.Files {
		var acts, first []string
		for line := range strings.Lines(string(c.Data)) {
			if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "first ") {
				first = append(first, change(line)...)
			}
			if !strings.HasPrefix(line, "> ") {
				acts = append(acts, line)
			}
		}
		play(t, func(s *scene) {
			s.config(operatorConfig, first...)
			s.start()
			s.put(widget)
			s.rest()
			if c.Name != "create" {
				s.said()
			}
			s.perform(acts[1:])
			s.rest()
			archive.Files[i].Data = []byte(strings.Join(acts, "\n") + "\n" + "> " + strings.Join(withoutReloads(s.said()), "\n> ") + "\n")
		})
	}
	golden.File(t, "testdata/causes.txtar", txtar.Format(archive))
}

// change is the old and the new text of a line such as `config OLD => NEW`.
func change(line string) []string {
	_, words, _ := strings.Cut(strings.ReplaceAll(line, `\n`, "\n"), " ")
	before, after, ok := strings.Cut(words, " => ")
	if !ok {
		return nil
	}
	return []string{before, after}
}

// perform does what lines say. Changes of the config apply all at once, with the next reload or start.
func (s *scene) perform(acts []string) {
	s.t.Helper()
	resources := map[string]schema.GroupVersionResource{"widgets": widgets, "configmaps": configMaps}
	var changes []string
	for _, line := range acts {
		words := append(strings.SplitN(line, " ", 4), "", "", "")
		switch words[0] {
		case "first":
		case "config":
			changes = append(changes, change(line)...)
			s.config(operatorConfig, changes...)
		case "reload":
			s.reload()
		case "start":
			s.start()
		case "stop":
			s.stop()
		case "rest":
			s.rest()
		case "said":
			s.said()
		case "put":
			s.put(widget)
		case "patch":
			s.patch(resources[words[1]], words[2], words[3])
		case "apply":
			s.apply(words[1], configMaps, strings.TrimPrefix(line, "apply "+words[1]+" "))
		case "delete":
			s.delete(resources[words[1]], words[2])
		default:
			s.t.Fatalf("unknown act %q", line)
		}
	}
}
