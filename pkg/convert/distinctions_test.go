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
