package convert_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
)

// TestProveTriesWhatRulesTellApart: the conversions in testdata/lossy.yaml are lossless except for few values, which
// only expressions, bounds or names of fields tell.
func TestProveTriesWhatRulesTellApart(t *testing.T) {
	t.Parallel()
	const open = ", x-kubernetes-preserve-unknown-fields: true"
	for _, row := range append(proofRows(t, "testdata/lossy.yaml"), proofRow{Name: "an unknown field that a rule overwrites",
		Spoke: json.RawMessage("{a: {type: string}}" + open), Hub: json.RawMessage("{b: {type: string}}" + open),
		Conversion: json.RawMessage("{rules: [{move: .spec.a, to: .spec.b}]}")}) {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			c, problems := compile(t, row.definition(), row.conversion())
			if len(problems) > 0 {
				t.Fatal(problems[0])
			}
			proof := must.Get(prove.Prove(t.Context(), c, prove.Options{Seed: 1, Objects: 5000})).In(t)
			if proof.Valid() {
				t.Errorf("nothing was found to get lost: %+v", proof.Pairs)
			}
			for _, pair := range proof.Pairs {
				if pair.ByConstruction && len(row.Conversion) > 0 {
					t.Errorf("%s to %s is lossless by construction", pair.From, pair.Via)
				}
			}
		})
	}
}

// TestProveTriesNames restricts names in one version only, which a conversion cannot change.
func TestProveTriesNames(t *testing.T) {
	t.Parallel()
	for _, restriction := range []string{`pattern: "^[a-z]+$"`, `pattern: "^[^.]*$"`, `maxLength: 30`, `pattern: "^[a-z]"`} {
		crd := strings.Replace(string(crdOf(`{a: {type: string}}`, `{a: {type: string}}`)), "properties: {spec:",
			"properties: {metadata: {type: object, properties: {name: {type: string, "+restriction+"}}}, spec:", 1)
		c, problems := compile(t, []byte(crd), conversionOf(""))
		if len(problems) > 0 {
			t.Fatal(problems[0])
		}
		proof, err := prove.Prove(t.Context(), c, prove.Options{Seed: 1, Objects: 1000})
		if err != nil || proof.Valid() || proof.Pairs[0].ByConstruction {
			t.Errorf("%s: nothing was found to get lost: %v, %+v", restriction, err, proof)
		}
	}
}

// TestProveRefusesUntriedMetadata: objects are not made with all metadata. What reads the rest is not proven.
func TestProveRefusesUntriedMetadata(t *testing.T) {
	t.Parallel()
	const text = `{a: {type: string, default: a}}`
	for expression, want := range map[string]string{
		"has(self.metadata.ownerReferences) ? '' : self.spec.a":   "reads .metadata.ownerReferences, which is not tried",
		"has(self.metadata.finalizers) ? '' : self.spec.a":        "reads .metadata.finalizers, which is not tried",
		"has(self.metadata.deletionTimestamp) ? '' : self.spec.a": "reads .metadata.deletionTimestamp, which is not tried",
		"self.metadata.?generation.orValue(0) > 5 ? '' : self.spec.a": "spokes[0].toHub[0].expression reads .metadata.generation, " +
			"which is not tried",
		"self.metadata.?uid.orValue('').startsWith('a') ? '' : self.spec.a": "reads .metadata.uid, which is not tried",
		"'generation' in dyn(self).metadata ? '' : self.spec.a": "reads the whole object, with all of .metadata, which is " +
			"not tried",
		"self.metadata.namespace + '' == self.metadata.name ? self.spec.a : self.spec.a": "",
	} {
		c, problems := compile(t, crdOf(text, text), conversionOf(steps(expression, "self.spec.a")))
		if len(problems) > 0 {
			t.Errorf("%s: %v", expression, problems[0])
			continue
		}
		proof, err := prove.Prove(t.Context(), c, prove.Options{Seed: 1, Objects: 1000})
		switch {
		case want == "" && (err != nil || !proof.Valid()):
			t.Errorf("%s: %v, %+v, want a proof", expression, err, proof)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}
