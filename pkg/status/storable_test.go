package status_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kube-openapi/pkg/validation/spec"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/status"
)

var update = flag.Bool("update", false, "write what came out to testdata")

// TestStorable runs the cases in testdata/storable: the comment is the reason, schema.yaml the kind's schema (none where
// nothing is known of it), status.yaml what is to be stored, and result what Probe, Prune (undeclared), Fit (dropped, stored) and Stores say.
func TestStorable(t *testing.T) {
	files, err := filepath.Glob("testdata/storable/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { storable(t, file) })
	}
}

func storable(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var schema *spec.Schema
	var content map[string]any
	result := -1
	for i, f := range archive.Files {
		switch f.Name {
		case "schema.yaml":
			schema = &spec.Schema{}
			text, err := sigsyaml.YAMLToJSON(f.Data)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, schema); err != nil {
				t.Fatal(err)
			}
		case "status.yaml":
			if err := yaml.Unmarshal(f.Data, &content); err != nil {
				t.Fatal(err)
			}
		case "result":
			result = i
		default:
			t.Fatalf("unknown file %s", f.Name)
		}
	}
	if result < 0 || len(archive.Comment) == 0 {
		t.Fatal("the case has no result or no reason")
	}
	got := describe(t, status.Probe(schema), content)
	if *update {
		archive.Files[result].Data = []byte(got)
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(archive.Files[result].Data), got); diff != "" {
		t.Errorf("%s%s", archive.Comment, diff)
	}
}

func describe(t *testing.T, s *status.Storable, content map[string]any) string {
	t.Helper()
	before, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
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
	fmt.Fprintf(&b, "undeclared: %s\n", strings.Join(undeclared, " "))
	fmt.Fprintf(&b, "dropped: %s\n", strings.Join(dropped, " "))
	text, err := sigsyaml.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "stored:\n%s", text)
	return b.String()
}
