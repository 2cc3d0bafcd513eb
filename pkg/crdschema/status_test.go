package crdschema_test

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/crdschema"
	"github.com/corollary-dev/corollary/pkg/status"
)

// TestLacking: after the missing fields are added to the definition, nothing is missing.
func TestLacking(t *testing.T) {
	wanted := crdschema.Status(".status.made.downstreams", false)
	for _, test := range []struct {
		status string // the schema of .status in the definition
		paths  []string
		reason string
	}{
		{"{type: object, x-kubernetes-preserve-unknown-fields: true}", nil, "anything can be stored"},
		{"{type: object}", []string{".status.conditions", ".status.made", ".status.observedGeneration"},
			"nothing can be stored: each is named once"},
		{"{type: object, properties: {observedGeneration: {type: integer}, made: {type: object, properties: {}}, conditions: {type: array, " +
			"items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}",
			[]string{".status.made.downstreams"}, "a list that stores anything is left alone, and the rest of a map is named"},
		{"{type: object, properties: {observedGeneration: {type: integer}, made: {type: object, x-kubernetes-preserve-unknown-fields: true}, " +
			"conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}, reason: {type: string}, " +
			"message: {type: string}, lastTransitionTime: {type: string}}}}}}",
			[]string{".status.conditions.observedGeneration"}, "items of a list take no step"},
	} {
		have := crdschema.Node{}
		must.Do(t, yaml.Unmarshal([]byte(test.status), &have))
		lacking, paths := crdschema.Lacking(wanted, storable(t, have))
		must.Same(t, test.paths, paths, test.reason)
		if (lacking == nil) != (test.paths == nil) {
			t.Errorf("%s: got %v", test.reason, lacking)
		}
		crdschema.Merge(have, lacking)
		if _, paths := crdschema.Lacking(wanted, storable(t, have)); len(paths) > 0 {
			t.Errorf("%s: %v are still missing from %v", test.reason, paths, have)
		}
	}
}

// storable returns what a kind with this schema of .status stores.
func storable(t *testing.T, of crdschema.Node) *status.Storable {
	t.Helper()
	text := must.Get(json.Marshal(crdschema.Object(crdschema.Node{"status": of}))).In(t)
	var s spec.Schema
	must.Do(t, json.Unmarshal(text, &s))
	return status.Probe(&s)
}

// TestMergeCopies: the result of a merge shares no map with its sources.
func TestMergeCopies(t *testing.T) {
	from := crdschema.Node{"a": crdschema.Node{"b": "c"}}
	into := crdschema.Node{}
	crdschema.Merge(into, from)
	into["a"].(crdschema.Node)["b"] = "changed"
	must.Same(t, crdschema.Node{"a": crdschema.Node{"b": "c"}}, from)
}
