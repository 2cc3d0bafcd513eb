//go:build controlplane

package charts

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// definitionText is a CustomResourceDefinition of things, with lines of its spec before the versions. Each version is
// its name, ":", the fields of its spec, a letter each, and "!" where it is stored.
func definitionText(group, spec string, versions ...string) string {
	text := strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP, annotations: {helm.sh/resource-policy: keep}}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
`, "GROUP", group) + spec + "  versions:\n"
	for _, v := range versions {
		name, fields, _ := strings.Cut(v, ":")
		fields, stored := strings.CutSuffix(fields, "!")
		var properties []string
		for _, field := range strings.Split(fields, "") {
			properties = append(properties, field+": {type: string}")
		}
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, "+
			"properties: {spec: {type: object, properties: {%s}}}}}}\n", name, stored, strings.Join(properties, ", "))
	}
	return text
}

// TestStoredVersionKeepsFields: an upgrade fails if it stores another version than the cluster does, which has not the
// fields of that one, unless a webhook converts then. A conversion that the values only name does not convert yet.
func TestStoredVersionKeepsFields(t *testing.T) {
	t.Parallel()
	const none = "  conversion: {strategy: None}\n"
	const webhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a'}}}\n"
	definitions := resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	args := func(verb, group, spec, versions string) []string {
		text := write(t, "definition.yaml", definitionText(group, spec, strings.Fields(versions)...))
		return []string{verb, "test", chart, "--values=testdata/values/minimal.yaml", "--kubeconfig=" + testkit.Kubeconfig(t),
			`--set-file=crds.definitions.things\.` + strings.ReplaceAll(group, ".", `\.`) + "=" + text}
	}
	ns, groups := testkit.Namespace(t), map[string]string{}
	for _, live := range []string{"nothing", "webhook", "helm"} {
		groups[live] = testkit.Unique(t) + live + ".example.com"
		if live == "helm" {
			if _, problems, err := helm(t, append(args("install", groups[live], webhook, "v1:ab! v2:a"), "--namespace="+ns)...); err != nil {
				t.Fatal(problems)
			}
			continue
		}
		name := testkit.Apply(t, "", definitionText(groups[live], "", "v1:ab!", "v2:a")).GetName()
		if live == "webhook" {
			testkit.Patch(t, definitions, "", name, live, `{"spec": {"conversion": {"strategy": "Webhook", "webhook":
				{"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://a.example.com"}}}}}`)
		}
	}
	for _, row := range []struct {
		live, spec, versions string
		named                bool   // in conversion.crds
		loses                string // the version that loses .spec.b
	}{
		{live: "nothing", versions: "v1:ab! v2:a"},
		{live: "nothing", versions: "v1:ab v2:a!", loses: "v2"},
		{live: "nothing", versions: "v1:ab v2:a!", named: true, loses: "v2"},
		{live: "nothing", versions: "v1:ab v2:a!", spec: webhook},
		{live: "nothing", versions: "v1:ab v2:abc!"},
		{live: "nothing", versions: "v1:ab! v2:a v3:a", loses: "v3"},
		{live: "nothing", versions: "v1:ab! v2:a v3:a", named: true},
		{live: "nothing", versions: "v1:ab v2:a v3:a!", named: true, loses: "v3"},
		{live: "nothing", versions: "v3:a!", named: true, loses: "v3"},
		{live: "webhook", versions: "v1:ab v2:a!"},
		{live: "webhook", versions: "v1:ab v2:a v3:a!", named: true},
		{live: "webhook", versions: "v1:ab v2:a!", spec: none, named: true, loses: "v2"},
		{live: "webhook", versions: "v1:ab! v2:a", spec: none, loses: "v2"},
		{live: "webhook", versions: "v1:a! v2:a", loses: "v1"},
		{live: "helm", versions: "v1:ab v2:a!", spec: webhook},
		{live: "helm", versions: "v1:ab v2:a!", loses: "v2"},
		{live: "helm", versions: "v1:ab! v2:a", loses: "v2"},
	} {
		given := append(args("template", groups[row.live], row.spec, row.versions), "--dry-run=server", "--is-upgrade")
		if row.named {
			given = append(given, "--set=conversion.crds={things."+groups[row.live]+"}")
		}
		_, problems, err := helm(t, given...)
		want := "version " + row.loses + " would lose .spec.b, "
		if (err != nil) != (row.loses != "") || err != nil && !strings.Contains(problems, want) {
			t.Errorf("%+v: %v: %s", row, err, problems)
		}
	}
	_, problems, err := helm(t, append(args("upgrade", groups["helm"], "", "v1:ab! v2:a"), "--namespace="+ns, "--set=crds.force=true")...)
	left := testkit.Get(t, definitions, "", "things."+groups["helm"])
	if strategy, _, _ := unstructured.NestedString(left.Object, "spec", "conversion", "strategy"); err != nil || strategy != "None" {
		t.Errorf("Helm leaves the strategy %s: %v: %s", strategy, err, problems)
	}
}

// TestOneDefinitionEach: whatever else than its definition the text of an entry holds would be applied unchecked.
func TestOneDefinitionEach(t *testing.T) {
	t.Parallel()
	one, other := definitionText("one.example.com", "", "v1:a!"), definitionText("other.example.com", "", "v1:a!")
	const name = "CustomResourceDefinition things.one.example.com"
	const json = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
 "metadata": {"name": "things.one.example.com", "annotations": {"helm.sh/resource-policy": "keep"}}, "spec": {"versions": []}}`
	list := "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/resource-policy: keep}}\nitems:\n- " +
		strings.ReplaceAll(strings.TrimSpace(other), "\n", "\n  ") + "\n"
	for text, holds := range map[string]string{
		one:  "",
		json: "",
		"# ours\n---\n---\n" + one + "---\n# end":                      "",
		one + "--- # next\n" + other:                                   name + ", CustomResourceDefinition things.other.example.com",
		one + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}": name + ", Secret x",
		json + "\r\n---" + json:                                        name + ", " + name,
		other:                                                          "CustomResourceDefinition things.other.example.com",
		list:                                                           "List without a name",
		"# none":                                                       "empty",
		"- " + json:                                                    "error",
	} {
		_, problems, err := helm(t, "template", "test", chart, "--values=testdata/values/minimal.yaml",
			`--set-file=crds.definitions.things\.one\.example\.com=`+write(t, "definition.yaml", text))
		if want := `crds.definitions.things\.one\.example\.com should be`; (err != nil) != (holds != "") ||
			err != nil && (!strings.Contains(problems, want) || !strings.Contains(problems, holds)) {
			t.Errorf("%s\n%v: %s", text, err, problems)
		}
	}
}
