package convert_test

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/convert"
)

// A combination of values that the prover cannot make a valid object of counts as tried: its loss is not found, and nothing says so.
func TestReading7ValuesThatWereNotTried(t *testing.T) {
	t.Parallel()
	const rule = `x-kubernetes-validations: [{rule: "self.ratio != 0.333 || self.code % 99991 == 77 && self.code > 500000"}]`
	const code = `code: {type: integer, default: 0, minimum: 0, maximum: 1000000}`
	c, problems := compile(t, crdOf(
		`{p: {type: object, default: {}, `+rule+`, properties: {`+code+`, ratio: {type: number, default: 1, enum: [0, 0.5, 0.333, 1]}}}}`,
		`{p: {type: object, default: {}, properties: {`+code+`, percent: {type: integer, default: 100, enum: [0, 33, 50, 100]}}}}`),
		conversionOf(`    toHub: [{set: .spec.p.percent, expression: 'int(self.spec.p.ratio * 100.0 + 0.5)'}, {remove: [.spec.p.ratio]}]
    fromHub: [{set: .spec.p.ratio, expression: 'self.spec.p.percent == 33 ? 0.0 : double(self.spec.p.percent) / 100.0'}, {remove: [.spec.p.percent]}]
    lost: [{path: .spec.p.percent, reason: as an example}]`))
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	proof, err := c.Prove(t.Context(), convert.ProofOptions{Seed: 1, Objects: 2000})
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range proof.Pairs {
		if pair.Counterexample != nil {
			t.Log(pair.From, pair.Via, pair.Counterexample.Problem)
		}
	}
	if proof.Valid() {
		t.Errorf("proven, though ratio 0.333 is lost: %+v, unproven %v", proof.Pairs, proof.Unproven)
	}
}
