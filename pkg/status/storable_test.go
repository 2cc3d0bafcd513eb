package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-openapi/pkg/validation/spec"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/status"
)

// TestStorable runs the cases in testdata/storable: the comment is the reason, schema.yaml the kind's schema (none if
// unknown), status.yaml the status, and result the results of Probe, Prune (undeclared), Fit (dropped, stored) and
// Stores.
func TestStorable(t *testing.T) {
	golden.Cases(t, "testdata/storable/*.txtar", storable)
}

func storable(t *testing.T, c *golden.Case) {
	var schema *spec.Schema
	var content map[string]any
	for _, f := range c.Files {
		switch f.Name {
		case "schema.yaml":
			schema = &spec.Schema{}
			text := must.Get(sigsyaml.YAMLToJSON(f.Data)).In(t)
			must.Do(t, json.Unmarshal(text, schema))
		case "status.yaml":
			must.Do(t, yaml.Unmarshal(f.Data, &content))
		case "result":
		default:
			t.Fatalf("unknown file %s", f.Name)
		}
	}
	c.Want(t, "result", describe(t, status.Probe(schema), content))
}

func describe(t *testing.T, s *status.Storable, content map[string]any) string {
	t.Helper()
	before := must.Get(json.Marshal(content)).In(t)
	stored, dropped := s.Fit(content)
	if after, _ := json.Marshal(content); string(after) != string(before) {
		t.Error("the status that was given is changed")
	}
	_, undeclared := s.Prune(content)
	if again, more := s.Fit(stored); !cmp.Equal(stored, again) || len(more) > 0 && len(stored) > 0 {
		t.Errorf("pruning again drops more: %v", more)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "conditions: %s\n", s.Conditions)
	for _, path := range []string{".status.observedGeneration", ".status.downstreams", ".status.deep.below.value"} {
		fmt.Fprintf(&b, "stores %s: %v\n", path, s.Stores(path))
	}
	fmt.Fprintf(&b, "stores a baseline: %v\n", s.StoresItem(".status.downstreams", "baseline"))
	fmt.Fprintf(&b, "undeclared: %s\n", strings.Join(undeclared, " "))
	fmt.Fprintf(&b, "dropped: %s\n", strings.Join(dropped, " "))
	text := must.Get(sigsyaml.Marshal(stored)).In(t)
	fmt.Fprintf(&b, "stored:\n%s", text)
	return b.String()
}
