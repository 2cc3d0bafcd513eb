package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/convert"
)

// TestProveTriesWhatRulesTellApart converts losslessly except for few values, which only expressions, bounds or names of fields tell.
func TestProveTriesWhatRulesTellApart(t *testing.T) {
	t.Parallel()
	const text, list, texts = `{a: {type: string, default: a}}`, `{a: {type: array, default: [], items: {type: string}}}`,
		`{a: {type: object, default: {}, additionalProperties: {type: string}}}`
	cut := func(expression string) string { return steps(expression, "self.spec.a") }
	var flags []string
	all := make([]string, 12)
	for i := range all {
		flags = append(flags, fmt.Sprintf("f%d: {type: boolean}", i))
		all[i] = fmt.Sprintf("self.spec.?f%d.orValue(false)", i)
	}
	twelve := "{a: {type: string, default: a}, " + strings.Join(flags, ", ") + "}"
	const image = "self.spec.a.contains('@') && self.spec.a.contains(':') && self.spec.a.contains('/')"
	const long = "self.spec.a.startsWith('sha256:') && self.spec.a.size() > 12"
	const pattern = `{a: {type: string, default: a-1, pattern: '^[a-z]+-[0-9]+$'}}`
	for name, row := range map[string]struct{ spoke, hub, rules string }{
		"a list of more than three items":     {list, list, cut("self.spec.a.size() > 3 ? self.spec.a.slice(0, 3) : self.spec.a")},
		"a list of more than 100 items":       {list, list, cut("self.spec.a.size() > 100 ? self.spec.a.slice(0, 100) : self.spec.a")},
		"a map of more than three keys":       {texts, texts, cut("self.spec.a.size() > 3 ? {'a': 'b'} : self.spec.a")},
		"a text of more than 20 characters":   {text, text, cut("self.spec.a.size() > 20 ? self.spec.a.substring(0, 20) : self.spec.a")},
		"a text of more than 63 characters":   {text, text, cut("self.spec.a.size() > 63 ? self.spec.a.substring(0, 63) : self.spec.a")},
		"a text that matches":                 {text, text, cut("self.spec.a.matches('^v[0-9]+[.][0-9]+$') ? 'v' : self.spec.a")},
		"a text that matches in the middle":   {text, text, cut("self.spec.a.find('[0-9]+%') != '' ? '' : self.spec.a")},
		"a text with two literals":            {text, text, cut("self.spec.a.contains('-rc') && self.spec.a.contains('.') ? '' : self.spec.a")},
		"a text with three literals":          {text, text, cut(image + " ? self.spec.a.split('@')[0] : self.spec.a")},
		"a literal and a length":              {text, text, cut(long + " ? self.spec.a.substring(0, 12) : self.spec.a")},
		"a key of a map":                      {texts, texts, cut("'foo' in self.spec.a ? {'a': 'b'} : self.spec.a")},
		"twelve booleans":                     {twelve, twelve, cut(strings.Join(all, " && ") + " ? '' : self.spec.a")},
		"a shorter text in the other version": {text, `{a: {type: string, default: a, maxLength: 63}}`, ""},
		"a shorter list":                      {list, `{a: {type: array, default: [], maxItems: 10, items: {type: string}}}`, ""},
		"a smaller map":                       {texts, `{a: {type: object, default: {}, maxProperties: 10, additionalProperties: {type: string}}}`, ""},
		"a rule about a text": {text,
			`{a: {type: string, default: a, maxLength: 2000, x-kubernetes-validations: [{rule: "self != 'zz'"}]}}`, ""},
		"a rule about a length": {text, `{a: {type: string, default: a, x-kubernetes-validations: [{rule: "self.size() < 40"}]}}`, ""},
		"a rule about a range": {`{a: {type: integer, default: 0}}`,
			`{a: {type: integer, default: 0, x-kubernetes-validations: [{rule: "self < 30000 || self > 32767"}]}}`, ""},
		"a long text with a suffix": {text, text,
			cut("self.spec.a.size() > 50 && self.spec.a.endsWith('-x') ? self.spec.a.substring(0, 50) : self.spec.a")},
		"a long text that matches": {text, text,
			cut("self.spec.a.size() > 30 && self.spec.a.matches('^[a-z]+-[0-9]+$') ? '' : self.spec.a")},
		"a long text that matches another one": {text, text,
			cut("self.spec.a.matches('^[a-z.]+:[0-9]+$') && self.spec.a.size() > 24 ? '' : self.spec.a")},
		"a long text that its pattern restricts": {pattern, pattern, cut("self.spec.a.size() > 70 ? 'a-1' : self.spec.a")},
		"a long text with something in it": {text, text,
			cut("self.spec.a.size() > 90 && self.spec.a.contains('-rc.') ? '' : self.spec.a")},
		"a long key of a map": {texts, texts, cut("self.spec.a.exists(k, k.size() > 63) ? {'a': 'b'} : self.spec.a")},
		"a long key of a map with a suffix": {texts, texts,
			cut("self.spec.a.exists(k, k.size() > 30 && k.endsWith('-x')) ? {'a': 'b'} : self.spec.a")},
		"a rule about keys of a map": {texts, `{a: {type: object, default: {}, maxProperties: 20, additionalProperties: {type: string},
			x-kubernetes-validations: [{rule: "self.all(k, k.size() <= 63)"}]}}`, ""},
		"no labels":      {text, text, cut("!has(self.metadata.labels) ? '' : self.spec.a")},
		"no annotations": {text, text, cut("!has(self.metadata.annotations) ? '' : self.spec.a")},
		"an annotation among others": {text, text,
			cut("has(self.metadata.annotations) && 'e.com/skip' in self.metadata.annotations ? '' : self.spec.a")},
		"a label among others": {text, text,
			cut("has(self.metadata.labels) && 'e.com/skip' in self.metadata.labels ? '' : self.spec.a")},
		"a label with a value": {text, text,
			cut("self.metadata.?labels['e.com/mode'].orValue('') == 'x' ? '' : self.spec.a")},
		"the value of any label": {text, text,
			cut("self.metadata.?labels.orValue({}).exists(k, self.metadata.labels[k] == 'x') ? '' : self.spec.a")},
		"a namespace":                            {text, text, cut("self.metadata.?namespace.orValue('') == 'kube-system' ? '' : self.spec.a")},
		"a namespace that begins with a literal": {text, text, cut("self.metadata.namespace.startsWith('kube-') ? '' : self.spec.a")},
		"a name that begins with a literal":      {text, text, cut("self.metadata.name.startsWith('test-') ? '' : self.spec.a")},
		"a name that ends with a literal":        {text, text, cut("self.metadata.name.endsWith('-x') ? '' : self.spec.a")},
		"a name that matches":                    {text, text, cut("self.metadata.name.matches('^[a-z]+-[0-9]+$') ? '' : self.spec.a")},
		"a long name that matches": {text, text,
			cut("self.metadata.name.size() > 30 && self.metadata.name.matches('^[a-z]+-[0-9]+$') ? '' : self.spec.a")},
		"a generated name": {text, text, cut("has(self.metadata.generateName) ? '' : self.spec.a")},
		"an unknown field that a rule overwrites": {`{a: {type: string}}, x-kubernetes-preserve-unknown-fields: true`,
			`{b: {type: string}}, x-kubernetes-preserve-unknown-fields: true`, "    rules: [{move: .spec.a, to: .spec.b}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, problems := compile(t, crdOf(row.spoke, row.hub), conversionOf(row.rules))
			if len(problems) > 0 {
				t.Fatal(problems[0])
			}
			proof, err := c.Prove(t.Context(), convert.ProofOptions{Seed: 1, Objects: 5000})
			if err != nil {
				t.Fatal(err)
			}
			if proof.Valid() {
				t.Errorf("nothing was found to get lost: %+v", proof.Pairs)
			}
			for _, pair := range proof.Pairs {
				if pair.ByConstruction && row.rules != "" {
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
		proof, err := c.Prove(t.Context(), convert.ProofOptions{Seed: 1, Objects: 1000})
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
		proof, err := c.Prove(t.Context(), convert.ProofOptions{Seed: 1, Objects: 1000})
		switch {
		case want == "" && (err != nil || !proof.Valid()):
			t.Errorf("%s: %v, %+v, want a proof", expression, err, proof)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}
