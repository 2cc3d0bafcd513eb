package convert_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/pkg/convert"
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
	name, spoke, hub, rules string
	preserve                bool
	// problem is part of what compiling says; counter part of what the counterexample says. Empty: nothing gets lost.
	problem, counter string
	// unproven is part of what the proof says that objects cannot show. Empty: they can.
	unproven string
	exact    bool
}

func (r proofRow) definition() []byte { return crdOf(r.spoke, r.hub) }

func (r proofRow) conversion() []byte {
	conf := conversionOf(r.rules)
	if r.preserve {
		conf = append(conf, "\npreserve: {annotation: example.com/kept}\n"...)
	}
	return conf
}

var proofRows = []proofRow{
	{name: "the same", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`, exact: true},
	{name: "a rename", spoke: `{a: {type: string}}`, hub: `{b: {type: string}}`, rules: "    rules: [{move: .spec.a, to: .spec.b}]", exact: true},
	{name: "two that swap names", spoke: `{a: {type: string}, b: {type: string}}`, hub: `{a: {type: string}, b: {type: string}}`,
		rules: "    rules: [{move: .spec.a, to: .spec.b}, {move: .spec.b, to: .spec.a}]", exact: true},
	{name: "a field without a counterpart", spoke: `{a: {type: string}, b: {type: string}}`, hub: `{a: {type: string}}`,
		problem: "v1beta1 has .spec.b, for which no rule names a field of v1"},
	{name: "one that is kept", spoke: `{a: {type: string}, b: {type: string}}`, hub: `{a: {type: string}}`, preserve: true},
	{name: "both have one of their own that is kept", spoke: `{a: {type: string}, b: {type: integer}}`,
		hub: `{a: {type: string}, c: {type: object, additionalProperties: {type: string}}}`, preserve: true},
	{name: "a rename in the items of a list without a rule", spoke: `{l: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
		hub: `{l: {type: array, items: {type: object, properties: {b: {type: string}}}}}`, problem: "v1beta1 has .spec.l.a"},
	{name: "with one", spoke: `{l: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
		hub:   `{l: {type: array, items: {type: object, properties: {b: {type: string}}}}}`,
		rules: "    rules: [{forEach: .spec.l, rules: [{move: .a, to: .b}]}]", exact: true},
	{name: "in a map", spoke: `{m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}}`,
		hub:   `{o: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}}`,
		rules: "    rules: [{forEach: .spec.m, to: .spec.o, rules: [{move: .a, to: .b}]}]", exact: true},
	{name: "a key of a map becomes a field", spoke: `{m: {type: object, additionalProperties: {type: string}}}`, hub: `{m: {type: object, additionalProperties: {type: string}}, a: {type: string}}`,
		rules: "    rules: [{move: .spec.m.a, to: .spec.a}]", counter: ".spec."},
	{name: "a key of a map gets another name", spoke: `{m: {type: object, additionalProperties: {type: string}}}`, hub: `{m: {type: object, additionalProperties: {type: string}}}`,
		rules: "    rules: [{move: .spec.m.a, to: .spec.m.b}]", counter: ".spec.m."},
	{name: "a key of a map that only one version has", spoke: `{m: {type: object, additionalProperties: {type: string}}}`, hub: `{a: {type: string}}`,
		rules: "    rules: [{move: .spec.m.a, to: .spec.a}]", problem: "v1beta1 has .spec.m, for which no rule names a field of v1"},
	{name: "a map of something else, with a rule for one key", spoke: `{m: {type: object, additionalProperties: {type: string}}}`,
		hub:   `{m: {type: object, additionalProperties: {type: integer}}, a: {type: string}}`,
		rules: "    rules: [{move: .spec.m.a, to: .spec.a}]", problem: ".spec.m is a string in v1beta1 and an integer in v1"},
	{name: "a key of a map becomes a field of another type", spoke: `{m: {type: object, additionalProperties: {type: string}}}`, hub: `{m: {type: object, additionalProperties: {type: string}}, a: {type: integer}}`,
		rules: "    rules: [{move: .spec.m.a, to: .spec.a}]", problem: ".spec.m.a is a string in v1beta1 and an integer in v1"},
	{name: "a narrowed enum", spoke: `{a: {type: string, enum: [k, l, m]}}`, hub: `{a: {type: string, enum: [k, l]}}`, counter: "not valid in v1"},
	{name: "renamed values", spoke: `{a: {type: string, enum: [k, l]}}`, hub: `{a: {type: string, enum: [K, L]}}`,
		rules: "    rules: [{move: .spec.a, values: {k: K, l: L}}]"},
	{name: "renamed values of any text", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`,
		rules: "    rules: [{move: .spec.a, values: {k: K}}]", counter: `.spec.a is "K", and after the way to v1 and back it is "k"`},
	{name: "in the items of a list", spoke: `{l: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
		hub:   `{l: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
		rules: "    rules: [{forEach: .spec.l, rules: [{move: .a, values: {k: K}}]}]", counter: `it is [{"a":"k"}]`},
	{name: "a text that an expression makes an exception of", spoke: `{a: {type: string, default: a}}`, hub: `{a: {type: string, default: a}}`,
		rules: steps("self.spec.a == 'turbo' ? 'T' : self.spec.a", "self.spec.a == 'T' ? 'turbo' : self.spec.a"), counter: "turbo"},
	{name: "a number likewise", spoke: `{a: {type: integer, default: 0}}`, hub: `{a: {type: integer, default: 0}}`,
		rules:   steps("self.spec.a > 1000000 && self.spec.a < 1000100 ? 1 : self.spec.a", "self.spec.a"),
		counter: ".spec.a is 10000"},
	{name: "a time in another spelling", spoke: `{a: {type: string, format: date-time, default: "2026-01-02T03:04:05Z"}}`,
		hub:     `{a: {type: string, format: date-time, default: "2026-01-02T03:04:05Z"}}`,
		rules:   steps("string(self.spec.a)", "string(self.spec.a)"),
		counter: "set .spec.a"},
	{name: "upper and lower case", spoke: `{a: {type: string, format: uuid, default: "123e4567-e89b-12d3-a456-426614174000"}}`,
		hub:     `{a: {type: string, format: uuid, default: "123e4567-e89b-12d3-a456-426614174000"}}`,
		rules:   steps("self.spec.a.lowerAscii()", "self.spec.a"),
		counter: ".spec.a is "},
	{name: "one value too few", spoke: `{a: {type: string, enum: [k, l]}}`, hub: `{a: {type: string, enum: [K, L]}}`,
		rules: "    rules: [{move: .spec.a, values: {k: K}}]", counter: "not valid in v1"},
	{name: "two values become one", spoke: `{a: {type: string, enum: [k, l]}}`, hub: `{a: {type: string, enum: [K]}}`,
		rules: "    rules: [{move: .spec.a, values: {k: K, l: K}}]", problem: `"k" and "l" both become "K"`},
	{name: "a number of a text", spoke: `{a: {type: string, pattern: "^[0-9]{1,4}$"}}`, hub: `{a: {type: integer}}`,
		rules:   steps("int(self.spec.a)", "string(self.spec.a)"),
		problem: "", counter: "no such key: a"},
	{name: "a number of a text that is there", spoke: `{a: {type: string, pattern: "^[0-9]{1,4}$", default: "1"}}`, hub: `{a: {type: integer, default: 1, minimum: 0, maximum: 9999}}`,
		rules:   steps("int(self.spec.a)", "string(self.spec.a)"),
		counter: `.spec.a is "0`},
	{name: "the same, kept", spoke: `{a: {type: string, pattern: "^[0-9]{1,4}$", default: "1"}}`, hub: `{a: {type: integer, default: 1, minimum: 0, maximum: 9999}}`,
		rules:    steps("int(self.spec.a)", "string(self.spec.a)"),
		preserve: true},
	{name: "a whole number through a float", spoke: `{a: {type: integer, default: 0, minimum: 0, maximum: 1000000000000000000}}`, hub: `{a: {type: integer, default: 0}}`,
		rules:   steps("int(double(self.spec.a))", "self.spec.a"),
		counter: ".spec.a is 9", unproven: "not every value of .spec.a can be tried"},
	{name: "a list that is joined", spoke: `{a: {type: array, items: {type: string}, default: []}}`, hub: `{a: {type: string, default: ""}}`,
		rules:   steps("self.spec.a.join(',')", "self.spec.a.split(',')"),
		counter: ".spec.a is ", unproven: "add maxLength"},
	{name: "a default that turns absent into a value", spoke: `{a: {type: string}}`, hub: `{a: {type: string, default: x}}`, counter: `.spec.a is absent, and after the way to v1 and back it is "x"`},
	{name: "the same, kept", spoke: `{a: {type: string}}`, hub: `{a: {type: string, default: x}}`, preserve: true},
	{name: "one value that becomes a list", spoke: `{a: {type: string}}`, hub: `{l: {type: array, items: {type: string}}}`,
		rules: "    rules: [{wrap: .spec.a, to: .spec.l}]", counter: ".spec.l is "},
	{name: "a list of one", spoke: `{a: {type: string}}`, hub: `{l: {type: array, minItems: 1, maxItems: 1, items: {type: string}}}`,
		rules: "    rules: [{wrap: .spec.a, to: .spec.l}]"},
	{name: "a loss that is acknowledged", spoke: `{a: {type: string}, b: {type: string}}`, hub: `{a: {type: string}}`,
		rules: "    lost: [{path: .spec.b, reason: nobody uses it}]"},
	{name: "another type", spoke: `{a: {type: string}}`, hub: `{a: {type: integer}}`, problem: ".spec.a is a string in v1beta1 and an integer in v1"},
	{name: "expressions for the items of a list", spoke: listOf(`hp: {type: string, pattern: "^[a-z]{1,9}:[1-9][0-9]{0,3}$"}`, "hp"),
		hub: listOf(`h: {type: string, pattern: "^[a-z]{1,9}$"}, p: {type: integer, minimum: 1, maximum: 9999}`, "h, p"),
		rules: `    rules: [{forEach: .spec.l, toHub: [{set: .h, expression: "self.hp.split(':')[0]"}, {set: .p, expression: "int(self.hp.split(':')[1])"}],
                fromHub: [{set: .hp, expression: "self.h + ':' + string(self.p)"}]}]`},
	{name: "they read the item as it was", spoke: listOf("a: {type: string}, b: {type: string}", "a, b"),
		hub: listOf("a: {type: string}, b: {type: string}", "a, b"),
		rules: `    rules: [{forEach: .spec.l, rules: [{move: .a, to: .b}], toHub: [{set: .a, expression: self.b}],
                fromHub: [{set: .b, expression: self.a}]}]`},
	{name: "in the items of a list in an item",
		spoke: listOf("k: {type: array, items: {type: object, required: [a], properties: {a: {type: integer}}}}", ""),
		hub:   listOf("k: {type: array, items: {type: object, required: [a], properties: {a: {type: integer}}}}", ""),
		rules: `    rules: [{forEach: .spec.l, rules: [{forEach: .k, toHub: [{set: .a, expression: "self.a > 100 ? 0 : self.a"}],
                fromHub: [{set: .a, expression: self.a}]}]}]`, counter: ".spec.l is "},
	{name: "an item that lacks what is read", spoke: listOf("a: {type: string}", ""), hub: listOf("a: {type: string}", ""),
		rules: `    rules: [{forEach: .spec.l, toHub: [{set: .a, expression: self.a}]}]`, counter: ".spec.l[0]: set .a: "},
	{name: "an expression about another field than the item's", spoke: listOf("a: {type: string}", ""), hub: listOf("a: {type: string}", ""),
		rules:   `    rules: [{forEach: .spec.l, toHub: [{set: .a, expression: "self.spec.l[0].a"}]}]`,
		problem: "rules[0].toHub[0].expression: 1:6: self has no field spec: it has a"},
	{name: "a forEach in what another rule moves", spoke: listOf("a: {type: string}", ""), hub: listOf("a: {type: string}", ""),
		rules: `    rules: [{move: .spec.l}, {forEach: .spec.l, rules: [{move: .a}]}]`, problem: ".spec.l is in another rule already"},
	{name: "keys of another form", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`,
		rules:   "    rules: [{move: .spec.a, toHub: [{remove: [.b]}]}]",
		problem: "rules[0].toHub: it belongs to forEach, and this rule is move: remove it"},
	{name: "a path that is not there", spoke: `{a: {type: string}}`, hub: `{b: {type: string}}`, rules: "    rules: [{move: .spec.c, to: .spec.b}]", problem: "the spoke does not have .spec.c"},
	{name: "an expression about a field that is not there", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`,
		rules: "    toHub: [{set: .spec.a, expression: self.spec.b}]", problem: "self.spec has no field b"},
	{name: "a field that was a label, which the other version may have, too", spoke: `{b: {type: string}}`, hub: `{a: {type: string}, b: {type: string}}`,
		rules: "    rules: [{move: .metadata.labels.size, to: .spec.a}]", counter: "labels"},
	{name: "the same, kept", spoke: `{b: {type: string}}`, hub: `{a: {type: string, maxLength: 9, pattern: "^[a-z]+$"}, b: {type: string}}`,
		rules:   "    rules: [{move: .metadata.labels.size, to: .spec.a}]",
		counter: "not valid in v1", preserve: true},
	{name: "an annotation, kept", spoke: `{b: {type: string}}`, hub: `{a: {type: string}, b: {type: string}}`,
		rules: "    rules: [{move: \".metadata.annotations['example.com/a']\", to: .spec.a}]", preserve: true},
	{name: "a label that is removed", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`,
		rules: "    toHub: [{remove: [.metadata.labels.size]}]", counter: ".metadata.labels.size is"},
	{name: "a label that is computed", spoke: `{a: {type: string, enum: [k, l], default: k}}`, hub: `{a: {type: string, enum: [k, l], default: k}}`,
		rules:   "    toHub: [{set: .metadata.labels.size, expression: self.spec.a}]\n    fromHub: [{remove: [.metadata.labels.size]}]",
		counter: ".metadata.labels.size is"},
	{name: "the same, acknowledged", spoke: `{a: {type: string, enum: [k, l], default: k}}`, hub: `{a: {type: string, enum: [k, l], default: k}}`,
		rules: "    toHub: [{set: .metadata.labels.size, expression: self.spec.a}]\n    fromHub: [{remove: [.metadata.labels.size]}]\n" +
			"    lost: [{path: .metadata.labels.size, reason: it repeats .spec.a}]"},
	{name: "a label of any text", spoke: `{a: {type: string, default: k}}`, hub: `{a: {type: string, default: k}}`,
		rules: "    toHub: [{set: .metadata.labels.size, expression: self.spec.a}]\n    fromHub: [{remove: [.metadata.labels.size]}]\n" +
			"    lost: [{path: .metadata.labels.size, reason: it repeats .spec.a}]", counter: "that the API server does not accept"},
	{name: "a label of a number", spoke: `{a: {type: integer, default: 1}}`, hub: `{a: {type: integer, default: 1}}`,
		rules: "    toHub: [{set: .metadata.labels.size, expression: self.spec.a}]\n" +
			"    lost: [{path: .metadata.labels.size, reason: it repeats .spec.a}]", counter: "that the API server does not accept"},
	{name: "expressions about metadata", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`,
		rules: "    toHub: [{set: .spec.a, expression: \"self.metadata.?labels['size'].orValue(self.metadata.name)\"}]\n" +
			"    lost: [{path: .spec.a, reason: it was wrong}]"},
	{name: "a ratio becomes a percentage", spoke: `{ratio: {type: number, minimum: 0, maximum: 1, default: 1}}`,
		hub:      `{percent: {type: integer, minimum: 0, maximum: 100, default: 100}}`,
		rules:    ratio,
		counter:  "after the way to v1 and back it is",
		unproven: "spokes[0].toHub[0].expression computes with floating-point numbers, and not every value of .spec.ratio"},
	{name: "of which the API server takes hundredths, and what is close to them", spoke: `{ratio: {type: number, minimum: 0, maximum: 1, multipleOf: 0.01, default: 1}}`,
		hub:     `{percent: {type: integer, minimum: 0, maximum: 100, default: 100}}`,
		rules:   ratio,
		counter: ".spec.ratio is", unproven: "not every value of .spec.ratio"},
	{name: "of a few ratios", spoke: `{ratio: {type: number, enum: [0, 0.25, 0.5, 1], default: 1}}`,
		hub:   `{percent: {type: integer, enum: [0, 25, 50, 100], default: 100}}`,
		rules: ratio},
	{name: "of any ratio, kept", spoke: `{ratio: {type: number, minimum: 0, maximum: 1, default: 1}}`,
		hub:   `{percent: {type: integer, minimum: 0, maximum: 100, default: 100}}`,
		rules: ratio, preserve: true},
	{name: "of any ratio, acknowledged", spoke: `{ratio: {type: number, minimum: 0, maximum: 1, default: 1}}`,
		hub:   `{percent: {type: integer, minimum: 0, maximum: 100, default: 100}}`,
		rules: ratio + "\n    lost: [{path: .spec.ratio, reason: it is rounded}]"},
	{name: "a whole number beyond what a float has, through an expression", spoke: `{limit: {type: number, default: 0}}`,
		hub: `{limits: {type: object, default: {hard: 0}, properties: {hard: {type: number, default: 0}}}}`,
		rules: "    toHub: [{set: .spec.limits, expression: \"{'hard': self.spec.limit}\"}, {remove: [.spec.limit]}]\n" +
			"    fromHub: [{set: .spec.limit, expression: self.spec.limits.hard}, {remove: [.spec.limits]}]",
		counter: "9007199254740993, and after the way"},
	{name: "the same without an expression", spoke: `{limit: {type: number, default: 0}}`, hub: `{hard: {type: number, default: 0}}`,
		rules: "    rules: [{move: .spec.limit, to: .spec.hard}]", exact: true},
	{name: "in the items of a list", spoke: listOf("a: {type: number, minimum: 0, maximum: 1}", "a"),
		hub: listOf("a: {type: integer, minimum: 0, maximum: 10}", "a"),
		rules: `    rules: [{forEach: .spec.l, toHub: [{set: .a, expression: "int(self.a * 10.0 + 0.5)"}],
                fromHub: [{set: .a, expression: "double(self.a) / 10.0"}]}]`, counter: ".spec.l is ", unproven: "spokes[0].rules[0].toHub[0].expression computes with floating-point numbers, and not every value of .spec.l.a"},
	{name: "bytes that are not text", spoke: `{data: {type: string, format: byte, default: YQ==}}`, hub: `{text: {type: string, minLength: 1, default: a}}`,
		rules: "    toHub: [{set: .spec.text, expression: string(self.spec.data)}, {remove: [.spec.data]}]\n" +
			"    fromHub: [{set: .spec.data, expression: bytes(self.spec.text)}, {remove: [.spec.text]}]",
		counter: "invalid UTF-8"},
	{name: "a long duration", spoke: `{a: {type: string, format: duration, default: 1s}}`, hub: `{a: {type: string, format: duration, default: 1s}}`,
		rules: steps("string(self.spec.a)", "string(self.spec.a)"), counter: ".spec.a"},
	{name: "a list of any length", spoke: listOfTexts("", ""), hub: withDefault(listOf("name: {type: string}", "name"), ""), rules: names,
		unproven: "spokes[0].toHub[0].expression may cost more than its limit for an object of v1beta1, " +
			"and then fails: add maxItems: 4000 to .spec.names in v1beta1"},
	{name: "a list of a bounded length", spoke: listOfTexts("maxItems: 500, ", "maxLength: 100"),
		hub: withDefault(listOf("name: {type: string, maxLength: 100}", "name"), "maxItems: 500, "), rules: names},
	{name: "a text of any length with any number of separators", spoke: `{a: {type: string, default: a}}`, hub: `{a: {type: string, default: a}}`,
		rules: steps("self.spec.a.split(',').join(',')", "self.spec.a"), unproven: "add maxLength: "},
	{name: "a list that may be longer than in the other version", spoke: listOfTexts("maxItems: 4000, ", "maxLength: 3000"),
		hub: withDefault(listOf("name: {type: string, maxLength: 3000}", "name"), "maxItems: 900, "), rules: names,
		counter: "must have at most 900 items"},
	{name: "likewise of a map in an item",
		spoke:   listOf("m: {type: object, maxProperties: 700, additionalProperties: {type: string, maxLength: 9}}", ""),
		hub:     listOf("m: {type: object, maxProperties: 600, additionalProperties: {type: string, maxLength: 9}}", ""),
		counter: "must have at most 600 items"},
	{name: "of a set whose items need not be so many", spoke: `{a: {type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 9}}}`,
		hub: `{a: {type: array, minItems: 40, x-kubernetes-list-type: set, items: {type: string, maxLength: 9}}}`, counter: "should have at least 40 items"},
	{name: "of a map of ports", spoke: `{a: {type: array, maxItems: 2000, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port], items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1, maximum: 65535}}}}}`,
		hub: `{a: {type: array, maxItems: 1500, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port], items: {type: object, required: [port], properties: {port: {type: integer, minimum: 1, maximum: 65535}}}}}`, counter: "must have at most 1500 items"},
	{name: "of a text with a pattern", spoke: `{a: {type: string, maxLength: 5000, pattern: "^[a-z]+:[a-z]+$"}}`,
		hub: `{a: {type: string, maxLength: 4000, pattern: "^[a-z]+:[a-z]+$"}}`, counter: "not valid in v1"},
	{name: "of which an expression makes an exception", spoke: `{a: {type: array, maxItems: 800, default: [], items: {type: integer}}}`,
		hub:   `{a: {type: array, maxItems: 800, default: [], items: {type: integer}}}`,
		rules: steps("self.spec.a.size() == 555 ? [] : self.spec.a", "self.spec.a"), counter: ".spec.a is "},
	{name: "metadata", spoke: `{a: {type: string}}`, hub: `{a: {type: string}}`, rules: "    rules: [{move: .metadata.name, to: .spec.a}]", problem: "cannot be converted"},
}

// What conversions lose, and what they do not.
func TestProve(t *testing.T) {
	t.Parallel()
	for _, row := range proofRows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, problems := compile(t, row.definition(), row.conversion())
			var told []string
			for _, p := range problems {
				told = append(told, p.Path+": "+p.Message)
			}
			if text := strings.Join(told, "\n"); (row.problem == "") != (text == "") || !strings.Contains(text, row.problem) {
				t.Fatalf("problems: %q, want %q", text, row.problem)
			}
			if row.problem != "" {
				return
			}
			begun := time.Now()
			proof, err := c.Prove(t.Context(), convert.ProofOptions{Seed: 1, Objects: 2000})
			if err != nil {
				t.Fatal(err)
			}
			counter := ""
			for _, pair := range proof.Pairs {
				if pair.Counterexample != nil {
					counter += pair.Counterexample.Problem + "\n"
					t.Logf("%s by %s after %d: %s: %v", pair.From, pair.Via, pair.Objects, pair.Counterexample.Problem, pair.Counterexample.Object)
				}
				if pair.ByConstruction != row.exact {
					t.Errorf("%s by %s: by construction: %t", pair.From, pair.Via, pair.ByConstruction)
				}
			}
			if text := strings.Join(proof.Unproven, "\n"); (row.unproven == "") != (text == "") || !strings.Contains(text, row.unproven) {
				t.Errorf("not proven: %q, want %q", text, row.unproven)
			}
			t.Logf("%v in %s", proof.Pairs, time.Since(begun))
			if (row.counter == "") != (counter == "") || !strings.Contains(counter, row.counter) {
				t.Errorf("counterexamples: %q, want %q", counter, row.counter)
			}
		})
	}
}

const ratio = `    toHub: [{set: .spec.percent, expression: "int(self.spec.ratio * 100.0 + 0.5)"}, {remove: [.spec.ratio]}]
    fromHub: [{set: .spec.ratio, expression: "double(self.spec.percent) / 100.0"}, {remove: [.spec.percent]}]`

const names = `    toHub: [{set: .spec.l, expression: "self.spec.names.map(n, {'name': n})"}, {remove: [.spec.names]}]
    fromHub: [{set: .spec.names, expression: "self.spec.l.map(i, i.name)"}, {remove: [.spec.l]}]`

// listOfTexts is a spec with the list names.
func listOfTexts(list, item string) string {
	return fmt.Sprintf("{names: {type: array, default: [], %sitems: {type: string, %s}}}", list, item)
}

// withDefault gives the list of listOf a default, and more.
func withDefault(list, more string) string {
	return strings.Replace(list, "type: array, ", "type: array, default: [], "+more, 1)
}

// listOf is a spec with the list l of objects.
func listOf(properties, required string) string {
	return fmt.Sprintf("{l: {type: array, items: {type: object, required: [%s], properties: {%s}}}}", required, properties)
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
	proof, err := c.Prove(t.Context(), convert.ProofOptions{Seed: 1, Objects: 100})
	if err != nil {
		t.Fatal(err)
	}
	if !proof.Valid() || proof.Pairs[0].Lost[".spec.z"] == 0 || len(proof.Pairs[0].Lost) != 1 {
		t.Errorf("%+v", proof.Pairs)
	}
}
