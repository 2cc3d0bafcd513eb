package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corollary-dev/corollary/pkg/config"
)

// A config with errors is cut down to what a deletion depends on: all of that is as it was.
func TestForDeletionKeeps(t *testing.T) {
	text := `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: cut}
watch: {apiVersion: v1, kind: Namespace}
validate: [{message: there is no rule}]
downstreams:
  - {name: first, apiVersion: v1, kind: ConfigMap, deletionPolicy: Orphan, template: "metadata: {name: first}"}
  - {name: second, apiVersion: v1, kind: Secret, ownership: Fields, after: [first], template: "metadata: {name: second}"}
  - name: third
    apiVersion: v1
    kind: Pod
    targetNamespaces: {from: List, names: [other]}
    after: [{name: second, until: Created}]
    when: downstreams.first.data.size() > 0
    template: |
      metadata: {name: {{ (downstream "second").metadata.name }
status: {conditions: {ready: Ready}}
conventions: {fieldManager: cut, labels: {test.example.com/managed: cut}, owner: {annotation: test.example.com/owner},
  finalizer: test.example.com/cut, hash: {annotation: test.example.com/hash}}
deletion: {wait: true}
`
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files, _ := config.Load(config.Options{Files: []string{file}})
	cut, held := files[0].ForDeletion()
	if len(held) > 0 {
		t.Fatal(held)
	}
	if cut.Deletion != files[0].Deletion || cut.Conventions.Finalizer != files[0].Conventions.Finalizer {
		t.Errorf("%+v", cut.Operator)
	}
	after := [][]string{nil, {"first"}, {"second", "first"}}
	for i, have := range files[0].Downstreams {
		d := cut.Downstreams[i]
		if d.Name != have.Name || d.DeletionPolicy != have.DeletionPolicy || d.Ownership != have.Ownership ||
			d.TargetNamespaces.From != have.TargetNamespaces.From || !slices.Equal(d.TargetNamespaces.Names, have.TargetNamespaces.Names) {
			t.Errorf("%+v, and it was %+v", d, have)
		}
		var names []string
		for _, a := range d.After {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
		if !slices.Equal(names, after[i]) {
			t.Errorf("%s is deleted before %v, and not %v", d.Name, names, after[i])
		}
	}
}
