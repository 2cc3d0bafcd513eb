package cli_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// holdingConfig has a key of each kind that holds something back.
const holdingConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: widgets}
mode: Enforce
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
validate: [{rule: self.spec.size <= 99, message: at most 99}]
guard: {maxDeleted: "100%"}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    when: self.spec.size < 50 || self.spec.size > 60
    updatePolicy: Apply
    drift: {policy: Enforce}
    template: |
      metadata:
        name: {{ .metadata.name }}-{{ .spec.color }}
      data:
        size: "{{ .spec.size }}"
conventions:
  fieldManager: widgets
  labels: {tools.example.com/managed-by: widgets}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true}
  pause: {annotation: tools.example.com/pause}
status:
  conditions: {ready: Ready}
  downstreams: .status.downstreams
events: None
`

// TestPlanAgainstShowsWhatWasHeld: what the old config holds back and the new one carries out is in plan --against as
// in plan.
func TestPlanAgainstShowsWhatWasHeld(t *testing.T) {
	t.Parallel()
	const paused = `annotations: {tools.example.com/pause: "true"}`
	for _, c := range []struct {
		reason, from, old, new string
		meta, spec, data       string // what is edited
		immutable              bool
		want                   string
	}{
		{reason: "mode", from: "mode: Enforce", old: "mode: Observe", spec: "color: red, size: 1", want: "create supersede"},
		{reason: "pause", from: "tools.example.com/pause}", new: "tools.example.com/hold}", meta: paused, spec: "color: red, size: 1",
			want: "create supersede"},
		{reason: "validate", from: "size <= 99", new: "size <= 999", spec: "color: red, size: 100", want: "create supersede"},
		{reason: "when fails", from: "self.spec.size < 50 ||", old: "self.spec.size < 50 || self.spec.extra.on == 'x' ||",
			new: "self.spec.size < 40 ||", spec: "color: blue, size: 55", want: "delete"},
		{reason: "render", from: "{{ .spec.color }}", old: `{{ required "a name" .spec.extra.name }}`, spec: "color: red, size: 1",
			want: "create supersede"},
		{reason: "updatePolicy Recreate", from: "updatePolicy: Apply", new: "updatePolicy: Recreate", immutable: true,
			spec: "color: blue, size: 2", want: "recreate"},
		{reason: "updatePolicy CreateOnly", from: "updatePolicy: Apply", old: "updatePolicy: CreateOnly", spec: "color: blue, size: 2",
			want: "update"},
		{reason: "drift", from: "policy: Enforce", old: "policy: Report", spec: "color: blue, size: 1", data: `{"size": "7"}`, want: "repair"},
		{reason: "exclusiveFields", from: "policy: Enforce", new: "exclusiveFields: [.data]", spec: "color: blue, size: 1",
			data: `{"theirs": "7"}`, want: "repair"},
		{reason: "guard", from: `maxDeleted: "100%"`, old: `maxDeleted: "0%"`, spec: "color: red, size: 1", want: "create supersede"},
		{reason: "selector", from: "namespaces: [NS]", new: "namespaces: [NS], labelSelector: {matchLabels: {on: x}}",
			spec: "color: blue, size: 100", want: "leftover"},
		{reason: "both repair", from: "100%", new: "99%",
			spec: "color: blue, size: 1", data: `{"size": "7"}`, want: ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			ns := memory(t)
			dir := inDirectory(t)
			config := func(name, to string) string {
				text := holdingConfig
				if c.immutable {
					text = strings.Replace(text, "      data:", "      immutable: true\n      data:", 1)
				}
				if to != "" {
					text = strings.Replace(text, c.from, to, 1)
				}
				write(t, filepath.Join(dir, name), strings.ReplaceAll(text, "NS", ns))
				return name
			}
			widget := func(meta, spec string) {
				testkit.Apply(t, ns, `{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: one, `+meta+`}, spec: {`+spec+`}}`)
			}
			widget("", "color: blue, size: 1")
			runUntilIdle(t, ns, config("start.yaml", ""))
			widget(c.meta, c.spec)
			if c.data != "" {
				testkit.Patch(t, configMaps, ns, "one-blue", "kubectl-edit", `{"data": `+c.data+`}`)
			}
			changed := config("new.yaml", c.new)
			all := planned(t, "-c", changed)
			shown := planned(t, "-c", changed, "--against", config("old.yaml", c.old))
			if have := strings.Join(shown, " "); have != c.want || c.want != "" && !slices.Equal(all, shown) {
				t.Errorf("plan --against shows %q, want %q; plan shows %q", have, c.want, all)
			}
		})
	}
}

// planned are the actions of a plan.
func planned(t *testing.T, args ...string) (actions []string) {
	t.Helper()
	out, errs, code := split(t, append([]string{"plan", "-o", "json"}, args...)...)
	var plan struct{ Items []struct{ Action string } }
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code == 1 {
		t.Fatalf("exit code %d, %v, %s\n%s", code, err, errs, out)
	}
	for _, i := range plan.Items {
		actions = append(actions, i.Action)
	}
	return actions
}

// roomsConfig has a Namespace for each Widget, and one for each color.
const roomsConfig = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: widgets}
watch: {apiVersion: tools.example.com/v1, kind: Widget, namespaces: [NS]}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: "metadata: {name: wait}"
  - name: room
    apiVersion: v1
    kind: Namespace
    template: |
      metadata: {name: "NS-{{ .metadata.name }}"}
  - name: color
    apiVersion: v1
    kind: Namespace
    forEach: {items: 'self.spec.color.split(",")'}
    template: |
      metadata: {name: "NS-{{ item }}"}
conventions:
  fieldManager: widgets
  labels: {tools.example.com/managed-by: widgets}
  hash: {annotation: tools.example.com/hash}
  owner: {reference: true, annotation: tools.example.com/owner}
  finalizer: tools.example.com/cleanup
status:
  conditions: {ready: Ready}
  downstreams: .status.downstreams
events: None
`

// TestPlanBeginsWithEachNamespaceThatGoes: whatever the reason, now or later, also with --against.
func TestPlanBeginsWithEachNamespaceThatGoes(t *testing.T) {
	t.Parallel()
	const now = "it is deleted with everything in it, whoever made that"
	const later = "once nothing holds it, " + now
	ns := memory(t)
	dir := inDirectory(t)
	config := func(name string, replace ...string) string {
		write(t, filepath.Join(dir, name), strings.ReplaceAll(strings.NewReplacer(replace...).Replace(roomsConfig), "NS", ns))
		return name
	}
	old := config("old.yaml")
	testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "color: blue", `color: "red,green"`))
	runUntilIdle(t, ns, old)
	named, two := `"NS-{{ .metadata.name }}"`, `"NS-{{ .metadata.name }}-two"`
	room := func(key string) [2]string {
		return [2]string{"    kind: Namespace\n    template", "    kind: Namespace\n    " + key + "\n    template"}
	}
	waits, without, kept := room("after: [config]"), room("when: 'false'"), room("deletionPolicy: Orphan")
	for _, c := range []struct{ changed, want string }{
		{config("renamed.yaml", named, two), "NS-one: " + now},
		{config("waits.yaml", named, two, waits[0], waits[1], "name: wait", `name: '{{ required \"x\" .spec.extra.name }}'`), "NS-one: " + later},
		{config("item.yaml", `self.spec.color.split(",")`, `["red"]`), "NS-green: " + now},
		{config("none.yaml", without[0], without[1]), "NS-one: " + now},
		{config("kept.yaml", named, two, kept[0], kept[1]), ""},
	} {
		for _, args := range [][]string{{"-c", c.changed}, {"-c", c.changed, "--against", old}} {
			out, errs, code := split(t, append([]string{"plan"}, args...)...)
			if code == 1 {
				t.Fatalf("%s: exit code %d, %s", args, code, errs)
			}
			_, risks, _ := strings.Cut(out, "Risk: Widget "+ns+"/one Namespace ")
			if first, _, _ := strings.Cut(risks, "\n"); normal(first, ns) != c.want {
				t.Errorf("%s: the risk is %q, want %q in\n%s", args, normal(first, ns), c.want, out)
			}
			asJSON, _, _ := split(t, append([]string{"plan", "-o", "json"}, args...)...)
			if _, text, _ := strings.Cut(c.want, ": "); strings.Count(asJSON, `"risk":"`+text) != strings.Count(out, "Risk:") {
				t.Errorf("%s: the risk is not in\n%s", args, asJSON)
			}
		}
	}
}
