package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Setup describes the config of an operator by its differences to the simplest one.
type Setup struct {
	// Example is one of examples/configs, or of testdata; then all other fields but Replicas are ignored.
	Example string `json:"example,omitempty"`
	// Replicas is the number of processes with leader election; a single one needs none.
	Replicas int `json:"replicas,omitempty"`

	Cluster     bool   `json:"cluster,omitempty"`     // the upstreams are cluster-scoped
	Annotations bool   `json:"annotations,omitempty"` // owners are annotations, not references
	Label       bool   `json:"label,omitempty"`       // the hash is a label
	Wait        bool   `json:"wait,omitempty"`        // deletion.wait
	Foreground  bool   `json:"foreground,omitempty"`  // deletion.propagation
	Before      bool   `json:"before,omitempty"`      // deletion.before
	Selected    bool   `json:"selected,omitempty"`    // watch.labelSelector
	Conditions  bool   `json:"conditions,omitempty"`  // watch.matchConditions, which require the same label
	Guard       bool   `json:"guard,omitempty"`       // guard
	Rollout     bool   `json:"rollout,omitempty"`     // rollout, which no failure halts
	Several     bool   `json:"several,omitempty"`     // forEach
	Second      bool   `json:"second,omitempty"`      // another downstream, with `when`
	After       bool   `json:"after,omitempty"`       // the first downstream comes after the second
	Related     bool   `json:"related,omitempty"`     // the first downstream reads the second, which is always wanted
	Elsewhere   bool   `json:"elsewhere,omitempty"`   // downstreams may be in another namespace
	Exclusive   bool   `json:"exclusive,omitempty"`   // drift.exclusiveFields
	Orphan      bool   `json:"orphan,omitempty"`      // deletionPolicy, and adoptionPolicy, because orphans are found again
	CreateOnly  bool   `json:"createOnly,omitempty"`  // updatePolicy
	Recreate    bool   `json:"recreate,omitempty"`    // updatePolicy
	Drift       string `json:"drift,omitempty"`       // drift.policy
	Input       string `json:"input,omitempty"`       // an input, and its policy if missing
	Listed      bool   `json:"listed,omitempty"`      // an input that is a list
	Terminating bool   `json:"terminating,omitempty"` // the namespace is deleted at some time; deletion.before.onFailure is Proceed
	Generated   bool   `json:"generated,omitempty"`   // the first downstream is a Secret with a generated value
}

// setups are operators that each have one special feature.
var setups = map[string]Setup{
	"references":  {},
	"annotations": {Annotations: true},
	"wait":        {Wait: true},
	"selected":    {Selected: true},
	"conditions":  {Conditions: true},
	"before":      {Before: true},
	"terminating": {Before: true, Terminating: true},
	"watches":     {Before: true, Several: true}, // two watches show each object
	"guard":       {Guard: true},
	"replicas":    {Replicas: 2},
	"rollout":     {Rollout: true},
	"rollout2":    {Rollout: true, Replicas: 2},
	"several":     {Several: true},
	"after":       {After: true, Second: true, Wait: true},
	"related":     {Related: true, Second: true},
	"listed":      {Listed: true},
	"spaces":      {Example: "spaces"},
	"spaces2":     {Example: "spaces", Replicas: 2},
	"tiers":       {Example: "tiers"},
	"tiers2":      {Example: "tiers", Replicas: 2},
	"generated":   {Generated: true},
}

// randomSetup combines random features of a config.
func randomSetup(seed uint64) Setup {
	r := rand.New(rand.NewPCG(seed, 2))
	some := func(n int) bool { return r.IntN(n) == 0 }
	s := Setup{Cluster: some(6), Annotations: some(3), Label: some(5), Wait: some(4), Foreground: some(5), Before: some(6), Selected: some(4),
		Guard: some(5), Second: some(2), Elsewhere: some(5), Exclusive: some(4), Orphan: some(8), CreateOnly: some(12), Recreate: some(8)}
	if some(4) {
		s.Replicas = 2
	}
	if some(6) {
		s.Drift = []string{"Report", "Ignore"}[r.IntN(2)]
	}
	if some(3) {
		s.Input = []string{"Wait", "Allow"}[r.IntN(2)]
	}
	s.Several = some(3) && !s.Cluster
	s.Conditions = some(5)
	s.After = some(4)
	s.Related = some(4) && !s.Several
	s.Listed = some(4)
	s.Generated = some(4)
	s.Terminating = some(10) && !s.Cluster && !s.Elsewhere && s.Input == "" && !s.Orphan
	s.Related = s.Related && s.Drift == "" && !s.CreateOnly // or what it reads may stay away
	s.Exclusive = s.Exclusive && s.Drift == "" && !s.CreateOnly
	s.Exclusive = s.Exclusive && !s.Generated
	s.Recreate = s.Recreate && !s.CreateOnly
	s.Elsewhere = s.Elsewhere && !s.Cluster
	s.Rollout = some(4)
	return s
}

// variant is the changes of a config by reloads.
type variant struct {
	template int  // which text the template has
	renamed  bool // the conventions have other names, and previous ones
	second   bool // toggles the second downstream of Setup
	broken   int  // 0: no, 1: an unknown key, 2: a rule that does not compile, 3: invalid YAML
}

func (s *Setup) kind() string {
	switch {
	case s.Cluster:
		return "Team"
	case s.Several: // its status stores several items with one name
		return "Pool"
	}
	return "Widget"
}

// config returns the text of the config file.
func (s *Setup) config(v variant) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: sim}")
	line("watch:\n  apiVersion: test.example.com/v1\n  kind: %s", s.kind())
	if s.Selected {
		line(`  labelSelector: {matchLabels: {enabled: "yes"}}`)
	}
	if s.Conditions {
		line(`  matchConditions: [{name: enabled, expression: "self.metadata.labels['enabled'] == 'yes'"}]`)
	}
	if s.Input != "" || s.Listed {
		line("inputs:")
	}
	if s.Listed {
		line(`  - {name: members, apiVersion: v1, kind: ConfigMap, list: {labelSelector: {matchLabels: {member: "yes"}}, namespaces: [ns],
      matching: object.data.of == self.metadata.name}}`)
	}
	if s.Input != "" {
		line("  - {name: settings, apiVersion: v1, kind: ConfigMap, fixedName: settings, namespace: ns, missing: %s}", s.Input)
	}
	if v.broken == 2 {
		line("validate:\n  - {rule: self.spec.size >, message: broken}")
	}
	line("downstreams:")
	s.downstream(line, "config", map[bool]string{false: "ConfigMap", true: "Secret"}[s.Generated], v)
	if s.Second != v.second {
		s.downstream(line, "secret", "Secret", v)
	}
	s.conventions(line, v)
	s.deletion(line)
	line("status:\n  conditions: {ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled}")
	line("  downstreams: .status.downstreams")
	maxChanged := ""
	if s.Guard {
		maxChanged = ", maxChanged: 100%%"
	}
	line("guard: {maxDeleted: 100%%" + maxChanged + "}") // nobody confirms here
	if s.Rollout {
		line("rollout: {steps: [1, 50%%, 100%%], pause: 1s, progressDeadline: 30s, maxFailures: 1000}")
	}
	line("events: None\nresyncPeriod: 3m\nretry: {minDelay: 1s, maxDelay: 10s}")
	switch v.broken {
	case 1:
		line("unknown: true")
	case 3:
		line("  - [")
	}
	return b.String()
}

func (s *Setup) downstream(line func(string, ...any), name, kind string, v variant) {
	line("  - name: %s\n    apiVersion: v1\n    kind: %s", name, kind)
	item, suffix := "", ""
	if s.Generated && name == "secret" {
		suffix = "-second" // both are Secrets
	}
	if s.Several {
		line("    forEach: {items: self.spec.items}")
		item = "{{ item }}"
	}
	isFirst := s.Second != v.second && name != "secret"
	if name == "secret" && !s.Related {
		line("    when: self.spec.?exposed.orValue(false)")
	}
	if isFirst && s.After {
		line("    after: [secret]")
	}
	switch {
	case s.Cluster:
		line("    targetNamespaces: {from: List, names: [ns]}")
	case s.Elsewhere:
		line("    targetNamespaces: {from: Any}")
	}
	if s.Orphan {
		line("    deletionPolicy: Orphan\n    adoptionPolicy: IfUnowned")
	}
	switch {
	case s.CreateOnly:
		line("    updatePolicy: CreateOnly")
	case s.Recreate:
		line("    updatePolicy: Recreate")
	}
	if s.Generated && name != "secret" {
		line("    generated: [{path: .data.password}]")
	}
	if s.Drift != "" {
		line("    drift: {policy: %s}", s.Drift)
	} else if s.Exclusive {
		line("    drift: {exclusiveFields: [.data]}")
	}
	line("    template: |\n      metadata:\n        name: \"{{ .spec.name | default .metadata.name }}%s%s\"", item, suffix)
	switch {
	case s.Cluster:
		line("        namespace: ns")
	case s.Elsewhere:
		line("        namespace: {{ .spec.namespace | default .metadata.namespace }}")
	}
	line("        annotations:\n          template: \"%d\"", v.template)
	if s.Input != "" {
		line("          settings: {{ (input \"settings\" | default dict).data | default dict | toJson | sha256sum }}")
	}
	if s.Listed {
		line("          members: \"{{ range input \"members\" }}{{ .metadata.name }}={{ .data.value }} {{ end }}\"")
	}
	if isFirst && s.Related {
		line("          secret: {{ (downstream \"secret\").data | toJson | sha256sum }}")
	}
	if kind == "Secret" {
		line("      stringData: {{ .spec.data }}")
	} else {
		line("      data: {{ .spec.data }}")
	}
}

func (s *Setup) conventions(line func(string, ...any), v variant) {
	name := "sim"
	if v.renamed {
		name = "sim2"
	}
	hash, reference := "annotation", ""
	if s.Label {
		hash = "label"
	}
	if s.Annotations {
		reference = "reference: false, "
	}
	line("conventions:\n  fieldManager: %s\n  labels: {sim.example.com/managed: \"yes\"}", name)
	line("  hash: {%s: %s.example.com/hash, algorithm: sha1}", hash, name)
	line("  owner: {%sannotation: %s.example.com/owner}\n  finalizer: %s.example.com/cleanup", reference, name, name)
	if s.Rollout {
		line("  rollout: {annotation: sim.example.com/rollout}")
	}
	line("  pause: {annotation: sim.example.com/paused}\n  reconcile: {annotation: sim.example.com/reconcile}")
	if v.renamed {
		line("  previous:\n    fieldManager: sim\n    hash: {%s: sim.example.com/hash}", hash)
		line("    owner: {annotation: sim.example.com/owner}\n    finalizer: sim.example.com/cleanup")
	}
}

func (s *Setup) deletion(line func(string, ...any)) {
	if !s.Wait && !s.Foreground && !s.Before {
		return
	}
	line("deletion:\n  wait: %t", s.Wait)
	if s.Foreground {
		line("  propagation: Foreground")
	}
	if !s.Before {
		return
	}
	line("  before:\n    apiVersion: v1\n    kind: ConfigMap")
	namespace := ""
	if s.Cluster {
		line("    targetNamespaces: {from: List, names: [ns]}")
		namespace = ", namespace: ns"
	}
	line("    template: |\n      metadata: {name: \"{{ .metadata.name }}-before\"%s}\n      data: {for: \"{{ .metadata.uid }}\"}", namespace)
	if s.Terminating {
		line("    onFailure: Proceed")
	}
	line("    doneWhen: downstream.?data.?done.orValue(\"\") == \"yes\"")
}
