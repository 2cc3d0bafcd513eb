package convert_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
)

// crdOf is a CRD with the schemas of spec in v1beta1 and v1.
func crdOf(spoke, hub string) []byte {
	return []byte(strings.NewReplacer("SPOKE", spoke, "HUB", hub).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
    - name: v1beta1
      served: true
      storage: false
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, properties: SPOKE}}}}
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, properties: HUB}}}}
`))
}

func conversionOf(spoke string) []byte {
	return []byte("hub: v1\nspokes:\n  - version: v1beta1\n" + spoke)
}

// proofRow is a conversion, in the smallest form, and what is to be found out about it.
type proofRow struct {
	Name string
	// Spoke and Hub are the fields of spec in the versions, Conversion the spoke's part of the conversion.
	Spoke, Hub, Conversion json.RawMessage
	Preserve               bool
	// Problem is part of what compiling says; Counter part of what the counterexample says. Empty: nothing gets lost.
	Problem, Counter string
	// Unproven is part of what the proof says that objects cannot show. Empty: they can.
	Unproven string
	Exact    bool
}

func (r proofRow) definition() []byte { return crdOf(string(r.Spoke), string(r.Hub)) }

func (r proofRow) conversion() []byte {
	spoke := strings.TrimSuffix(strings.TrimPrefix(string(r.Conversion), "{"), "}")
	conf := "hub: v1\nspokes: [{version: v1beta1, " + spoke + "}]\n"
	if r.Preserve {
		conf += "preserve: {annotation: example.com/kept}\n"
	}
	return []byte(conf)
}

// proofRows reads rows from a file.
func proofRows(t testing.TB, path string) (rows []proofRow) {
	t.Helper()
	text := must.Get(os.ReadFile(path)).In(t)
	must.Do(t, yaml.UnmarshalStrict(text, &rows))
	return rows
}

// What the conversions in testdata/prove.yaml lose, and what they do not.
func TestProve(t *testing.T) {
	t.Parallel()
	for _, row := range proofRows(t, "testdata/prove.yaml") {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			c, problems := compile(t, row.definition(), row.conversion())
			var told []string
			for _, p := range problems {
				told = append(told, p.Path+": "+p.Message)
			}
			if text := strings.Join(told, "\n"); (row.Problem == "") != (text == "") || !strings.Contains(text, row.Problem) {
				t.Fatalf("problems: %q, want %q", text, row.Problem)
			}
			if row.Problem != "" {
				return
			}
			begun := time.Now()
			proof := must.Get(prove.Prove(t.Context(), c, prove.Options{Seed: 1, Objects: 2000})).In(t)
			counter := ""
			for _, pair := range proof.Pairs {
				if pair.Counterexample != nil {
					counter += pair.Counterexample.Problem + "\n"
					t.Logf("%s by %s after %d: %s: %v", pair.From, pair.Via, pair.Objects, pair.Counterexample.Problem, pair.Counterexample.Object)
				}
				must.Same(t, row.Exact, pair.ByConstruction, pair.From, "by", pair.Via, "by construction")
			}
			if text := strings.Join(proof.Unproven, "\n"); (row.Unproven == "") != (text == "") || !strings.Contains(text, row.Unproven) {
				t.Errorf("not proven: %q, want %q", text, row.Unproven)
			}
			t.Logf("%v in %s", proof.Pairs, time.Since(begun))
			if (row.Counter == "") != (counter == "") || !strings.Contains(counter, row.Counter) {
				t.Errorf("counterexamples: %q, want %q", counter, row.Counter)
			}
		})
	}
}

// steps set .spec.a by an expression in each direction.
func steps(toHub, fromHub string) string {
	return fmt.Sprintf("    toHub: [{set: .spec.a, expression: %q}]\n    fromHub: [{set: .spec.a, expression: %q}]", toHub, fromHub)
}

// TestProveCountsAcknowledgedLosses: what lost names is not a counterexample, and yet reported.
func TestProveCountsAcknowledgedLosses(t *testing.T) {
	t.Parallel()
	const both = `{a: {type: string}, z: {type: string}}`
	const rules = "    toHub: [{remove: [.spec.z]}]\n    lost: [{path: .spec, reason: nobody reads it}]"
	c, problems := compile(t, crdOf(both, both), conversionOf(rules))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	proof := must.Get(prove.Prove(t.Context(), c, prove.Options{Seed: 1, Objects: 100})).In(t)
	if !proof.Valid() || proof.Pairs[0].Lost[".spec.z"] == 0 || len(proof.Pairs[0].Lost) != 1 {
		t.Errorf("%+v", proof.Pairs)
	}
}
