//go:build controlplane

package charts

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestReleasesDoNotMeet: releases of one name in two namespaces make no object twice, be it in the whole cluster or in
// a namespace that both have roles in.
func TestReleasesDoNotMeet(t *testing.T) {
	values := write(t, "values.yaml", `
image: {repository: registry.example.com/corollary}
serviceAccount: {name: process}
operators:
  everywhere: {`+someOperator+`, watch: {apiVersion: tools.example.com/v1, kind: Site}}
  shared: {`+someOperator+`, watch: {apiVersion: tools.example.com/v1, kind: Site, namespaces: [shared]}}
  team: {`+someOperator+`, watch: {apiVersion: tools.example.com/v1, kind: Site}, serviceAccount: {namespace: shared, name: team}}
operatorServiceAccounts: {create: false}
`)
	made := map[string]bool{}
	for _, namespace := range []string{"one", "two"} {
		for _, o := range objects(t, render(t, "--values="+values, "--namespace="+namespace)) {
			key := strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
			if made[key] {
				t.Errorf("both releases make %s", key)
			}
			made[key] = true
		}
	}
	if !made["ClusterRole  one:test-corollary-everywhere"] || !made["Role shared two:test-corollary-shared"] ||
		!made["Role one test-corollary"] {
		t.Errorf("they make %v", made)
	}
}

// someOperator is what a config needs besides what it watches.
const someOperator = `downstreams: [{name: config, apiVersion: v1, kind: ConfigMap, template: "metadata: {name: x}"}],
    conventions: {fieldManager: x, labels: {tools.example.com/by: x}, hash: {annotation: tools.example.com/hash},
      finalizer: tools.example.com/site},
    status: {conditions: {ready: Ready}}`

// TestNamesAreValid: whatever a release, its namespace and its objects are called, the names and labels are ones that
// the API server takes, also where they are cut off.
func TestNamesAreValid(t *testing.T) {
	for reason, args := range map[string][]string{
		"dashes where a release's name is cut off":  {strings.Repeat("a", 48) + "--bb"},
		"dashes where an override is cut off":       {"test", "--set=fullnameOverride=" + strings.Repeat("a", 48) + "--bb"},
		"dashes where the chart's name is cut off":  {"test", "--set=nameOverride=" + strings.Repeat("b", 61) + "--cc"},
		"dashes where the hook's label is cut off":  {"test", "--set=nameOverride=" + strings.Repeat("b", 53) + "--cc"},
		"names that YAML takes for numbers":         {"123", "--namespace=456"},
		"a release with dots, and the longest name": {"a." + strings.Repeat("b", 49) + ".c"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, err := helm(t, append([]string{"template", args[0], chart, "--values=testdata/values/full.yaml"}, args[1:]...)...)
			if err != nil {
				t.Fatal(stderr)
			}
			for _, o := range objects(t, stdout) {
				if problems := validation.IsDNS1123Subdomain(strings.ReplaceAll(o.GetName(), ":", "-")); len(problems) > 0 {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), problems)
				}
				for key, value := range o.GetLabels() {
					if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
						t.Errorf("%s %s: label %s is %q: %v", o.GetKind(), o.GetName(), key, value, problems)
					}
				}
				pod, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
				for key, value := range pod {
					if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
						t.Errorf("the pods of %s %s: label %s is %q: %v", o.GetKind(), o.GetName(), key, value, problems)
					}
				}
				if o.GetKind() == "ServiceMonitor" {
					names, found, err := unstructured.NestedStringSlice(o.Object, "spec", "namespaceSelector", "matchNames")
					if !found || err != nil || len(names) != 1 || names[0] != o.GetNamespace() {
						t.Errorf("the ServiceMonitor looks into %v: %v", names, err)
					}
				}
			}
		})
	}
}
