package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// namespacePolicies is a config of which the kinds are filled in.
const namespacePolicies = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch: {apiVersion: v1, kind: UPSTREAMNAMESPACES, labelSelector: {matchLabels: {app: "yes"}}}
downstreams:
  - {name: made, apiVersion: v1, kind: DOWNSTREAM, template: "metadata: {name: '{{ .metadata.name }}-x'}"}
conventions:
  fieldManager: app
  labels: {tools.example.com/managed-by: app}
  hash: {annotation: tools.example.com/hash}
  owner: {annotation: tools.example.com/owner}
  finalizer: tools.example.com/cleanup
status: {enabled: false}
validate: [{rule: "has(self.metadata.labels)"}]
`

// A binding's namespaceSelector is held to a Namespace's own labels, where the operator means the namespace that
// something is in.
func TestPoliciesAboutNamespaces(t *testing.T) {
	for _, test := range []struct {
		upstream, downstream string
		rules, marks         bool // limited to namespaces
		reason               string
	}{
		{"Secret", "ConfigMap", true, true, "both stand in namespaces"},
		{"Secret", "Namespace", true, false, "a Namespace may have any name"},
		{"Namespace", "ConfigMap", false, false, "all Namespaces are watched, and what follows stands in any"},
	} {
		among := ", namespaces: [team-a], namespaceSelector: {matchLabels: {tier: web}}"
		if test.upstream == "Namespace" { // which is in none
			among = ""
		}
		text := strings.NewReplacer("UPSTREAM", test.upstream, "DOWNSTREAM", test.downstream, "NAMESPACES", among).Replace(namespacePolicies)
		path := filepath.Join(t.TempDir(), "app.yaml")
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		files, problems := load.Operators(load.Options{Files: []string{path}})
		source, err := kinds.Offline()
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		p, problems, err := compile.One(files[0], compile.Options{Kinds: source})
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		rules := must.Get(RulesPolicy(p, "")).In(t)
		marks := must.Get(MarksPolicy(p, MarksOptions{Accounts: []Identity{{"system", "process"}}})).In(t)
		if selected(rules, "namespaceSelector") != test.rules || selected(marks, "namespaceSelector") != test.marks ||
			!selected(rules, "objectSelector") {
			t.Errorf("%s: the bindings are limited to %v and %v", test.reason, rules.Manifests[1].Object["spec"], marks.Manifests[1].Object["spec"])
		}
	}
}

// selected reports whether the binding of a policy has a selector.
func selected(a *AdmissionPolicy, selector string) bool {
	spec, _ := a.Manifests[1].Object["spec"].(map[string]any)
	resources, _ := spec["matchResources"].(map[string]any)
	labels, _ := resources[selector].(map[string]any)
	return len(labels) > 0
}
