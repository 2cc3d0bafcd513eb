package simpleschema_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/simpleschema"
)

// parse reads a config's schema: spec and types.
func parse(t *testing.T, text string) (map[string]any, []simpleschema.Problem) {
	t.Helper()
	in := map[string]map[string]any{}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(asJSON, &in)
	}
	if err != nil {
		t.Fatal(err)
	}
	return simpleschema.Parse(in["spec"], in["types"])
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ schema, want, reason string }{
		{`spec: {a: string, b: integer, c: boolean, d: float}`,
			`{type: object, properties: {a: {type: string}, b: {type: integer}, c: {type: boolean}, d: {type: number}}}`, "the basic types"},
		{`spec: {a: "[]string", b: "map[string]integer", c: "[][]string", d: "map[string][]string", e: object}`,
			`{type: object, properties: {a: {type: array, items: {type: string}}, b: {type: object, additionalProperties: {type: integer}},
			c: {type: array, items: {type: array, items: {type: string}}},
			d: {type: object, additionalProperties: {type: array, items: {type: string}}},
			e: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`, "lists, maps, and anything"},
		{`spec: {a: string | required=true, b: string | required=false}`,
			`{type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}`, "required is the parent's"},
		{`spec: {replicas: integer | default=1 minimum=0 maximum=20}`,
			`{type: object, default: {}, properties: {replicas: {type: integer, default: 1, minimum: 0, maximum: 20}}}`,
			"the object gets a default, so that the default of its field takes effect without it"},
		{`spec: {a: {b: integer | default=1, c: string | required=true}}`,
			`{type: object, properties: {a: {type: object, required: [c], properties: {b: {type: integer, default: 1}, c: {type: string}}}}}`,
			"not if a field must be set: {} would be refused"},
		{`{types: {Port: {name: string | required=true, number: integer | default=80}}, spec: {ports: "[]Port | listType=map listMapKey=name"}}`,
			`{type: object, properties: {ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object,
			required: [name], properties: {name: {type: string}, number: {type: integer, default: 80}}}}}}`, "a type of one's own"},
		{`{types: {Size: 'string | enum="s,m,l" required=true', Named: Size}, spec: {a: Size, b: Size | required=false, c: Named}}`,
			`{type: object, required: [a, c], properties: {a: {type: string, enum: [s, m, l]}, b: {type: string, enum: [s, m, l]}, c: {type: string, enum: [s, m, l]}}}`,
			"an alias carries its markers, also that it is required, unless the field says otherwise"},
		{`spec: {a: 'string | pattern="^[a-z]\\.\"x$" description="a | b = c" minLength=1 maxLength=9'}`,
			`{type: object, properties: {a: {type: string, pattern: '^[a-z]\."x$', description: "a | b = c", minLength: 1, maxLength: 9}}}`,
			"text in quotes may contain what separates markers"},
		{`spec: {a: '[]string | default=["x", "y z"] minItems=1 maxItems=3 uniqueItems=true', b: 'object | default={"k": 1}'}`,
			`{type: object, default: {}, properties: {a: {type: array, items: {type: string}, default: [x, "y z"], minItems: 1, maxItems: 3, x-kubernetes-list-type: set},
			b: {type: object, x-kubernetes-preserve-unknown-fields: true, default: {k: 1}}}}`, "JSON may contain spaces"},
		{`spec: {a: 'integer | enum="1, 2" immutable=true validation="self > 0" validation="self < 9"'}`,
			`{type: object, default: {}, x-kubernetes-validations: [{rule: "!has(oldSelf.a) || has(self.a)", message: "a is immutable, or a field in it: it cannot be removed"}],
			properties: {a: {type: integer, enum: [1, 2], x-kubernetes-validations: [{rule: self == oldSelf, message: the field is immutable},
			{rule: self > 0}, {rule: self < 9}]}}}`, "rules add up"},
		{`spec: {a: string | required=true | minLength=2}`, `{type: object, required: [a], properties: {a: {type: string, minLength: 2}}}`,
			"kro's page separates markers by bars, too"},
		{`spec: {a: float | default=0.5 minimum=-1e3, b: integer | default=9007199254740993}`,
			`{type: object, default: {}, properties: {a: {type: number, default: 0.5, minimum: -1000.0}, b: {type: integer, default: 9007199254740993}}}`,
			"numbers keep their digits"},
		{`spec: {}`, `{type: object, properties: {}}`, "a kind without fields"},
	} {
		got, problems := parse(t, test.schema)
		want := map[string]any{}
		asJSON, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(test.want, "\t", " ")))
		if err == nil {
			err = utiljson.Unmarshal(asJSON, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(test.want, "9007199254740993") { // sigs.k8s.io/yaml reads it as a float
			want["properties"].(map[string]any)["b"].(map[string]any)["default"] = int64(9007199254740993)
		}
		if strings.Contains(test.want, "-1000") {
			want["properties"].(map[string]any)["a"].(map[string]any)["minimum"] = -1000.0
		}
		if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
			t.Errorf("%s: %v (-want +got):\n%s", test.reason, problems, diff)
		}
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		schema string
		want   []string
		reason string
	}{
		{`spec: {a: strin, b: number, c: "", d: "map[int]string", e: "[]", f: 3, g: [string], h: null}`, []string{
			`.spec.a: there is no type "strin": did you mean string?`,
			`.spec.b: there is no type number: write float`,
			`.spec.c: the type is missing: write string, integer, boolean, float, object, []TYPE, map[string]TYPE, or the name of one of types`,
			`.spec.d: "map[int]string" is not a type: the keys of a map are strings: write map[string]TYPE`,
			`.spec.e: the type is missing: write string, integer, boolean, float, object, []TYPE, map[string]TYPE, or the name of one of types`,
			`.spec.f: found 3, wanted a type: write a type, such as string or integer | default=1, or a map of fields`,
			`.spec.g: found a list, wanted a type: write a type, such as string or integer | default=1, or a map of fields`,
			`.spec.h: found nothing, wanted a type: write a type, such as string or integer | default=1, or a map of fields`,
		}, "types, all at once"},
		{`spec: {a: string | requird=true, b: string | nullable=true, c: string | required, d: 'string | default="x', e: integer | minimum=1 minimum=2, f: string | maximum=1, g: string | required=yes}`,
			[]string{
				`.spec.a: there is no marker "requird": did you mean required?`,
				`.spec.b: there is no marker "nullable": markers are default, description, enum, immutable, listMapKey, listType, maxItems, maxLength, maximum, minItems, minLength, minimum, pattern, required, uniqueItems, validation`,
				`.spec.c: the marker "required" has no value: write NAME=VALUE, separated by spaces, and text with spaces in double quotes`,
				`.spec.d: in the value of default, a quote, bracket or brace is not closed: write NAME=VALUE, separated by spaces, and text with spaces in double quotes`,
				`.spec.e: the marker minimum is given twice: remove one of them`,
				`.spec.f: the marker maximum is for integer and number, not for string: remove it, or change the type`,
				`.spec.g: required=yes: write true or false`,
			}, "markers"},
		{`spec: {a: integer | default=x, b: boolean | default=yes, c: '[]string | default=x', d: '[]string | default={}', e: float | default=NaN, f: 'string | enum="a,,b"', g: 'string | enum=a,a', h: string | minLength=-1, i: string | pattern="(", j: '[]string | uniqueItems=true listType=map', k: '[]string | listMapKey=a', l: integer | enum=a}`,
			[]string{
				`.spec.a: default=x: it is not an integer`,
				`.spec.b: default=yes: write true or false`,
				`.spec.c: default=x: it is not JSON: write such as []`,
				`.spec.d: default={}: it does not fit the type: write JSON of an array`,
				`.spec.e: default=NaN: it is not a number`,
				`.spec.f: enum=a,,b: one of the values is empty: separate them by commas`,
				`.spec.g: enum=a,a: "a" is given twice`,
				`.spec.h: minLength=-1: write a number of 0 or more`,
				".spec.i: pattern=(: it is not a regular expression (error parsing regexp: missing closing ): `(`)",
				`.spec.j: listType=map: another marker makes it a set: uniqueItems=true is listType=set`,
				`.spec.k: listMapKey has no effect without listType=map: add listType=map`,
				`.spec.l: enum=a: "a": it is not an integer`,
			}, "values"},
		{`spec: {a: 'string | enum=[a,b]', b: 'string | enum="a","b"', c: 'integer | enum=[1,2]', d: integer | minimum=5 maximum=1, e: float | minimum=0.5 maximum=0.25, f: string | minLength=5 maxLength=3, g: '[]string | minItems=5 maxItems=2'}`,
			[]string{
				`.spec.a: enum=[a,b]: write the values separated by commas, without brackets and quotes in between: enum="A,B"`,
				`.spec.b: enum=a","b: write the values separated by commas, without brackets and quotes in between: enum="A,B"`,
				`.spec.c: enum=[1,2]: write the values separated by commas, without brackets and quotes in between: enum="A,B"`,
				`.spec.d: minimum=5 is more than maximum=1: no value is allowed: exchange them, or remove one`,
				`.spec.e: minimum=0.5 is more than maximum=0.25: no value is allowed: exchange them, or remove one`,
				`.spec.f: minLength=5 is more than maxLength=3: no value is allowed: exchange them, or remove one`,
				`.spec.g: minItems=5 is more than maxItems=2: no value is allowed: exchange them, or remove one`,
			}, "values that look like another notation, and bounds that nothing meets"},
		{`{types: {Port: {name: string, number: integer | required=true, more: object | required=true, proto: string | default=TCP}},
			spec: {a: '[]Port | uniqueItems=true', b: '[][]string | listType=set', c: '[]Port | listType=map',
				d: '[]string | listType=map listMapKey=name',
			e: '[]Port | listType=map listMapKey=name', f: '[]Port | listType=map listMapKey=nam', g: '[]Port | listType=map listMapKey=more',
			h: '[]Port | listType=map listMapKey=number listMapKey=proto', i: '[]Port | listType=map listMapKey=number listMapKey=number'}}`,
			[]string{
				`.spec.a: the items of a set must be text, numbers or booleans: use listType=map, or remove it`,
				`.spec.c: listType=map has no key: add listMapKey=FIELD`,
				`.spec.d: listType=map is for lists of objects with fields: declare their type in types`,
				`.spec.e: listMapKey=name: the field may be missing: add required=true or a default to the field`,
				`.spec.f: listMapKey=nam: the items have no such field: name one of their fields`,
				`.spec.g: listMapKey=more: the field is an object: name a field with text, a number or a boolean`,
				`.spec.i: listMapKey=number is given twice: remove one of them`,
			}, "lists that kro writes and no structural schema can have"},
		{`{types: {Person: {name: string, employer: Company}, Company: {employees: "[]Person"}, Self: "map[string]Self"}, spec: {ceo: Person}}`,
			[]string{
				`.types.Company: the type contains itself: Company → Person → Company: write object in one of them, whose fields are not checked`,
				`.types.Self: the type contains itself: Self → Self: write object in one of them, whose fields are not checked`,
			}, "recursion, once for each cycle"},
		{`{types: {string: {a: integer}, "a b": string, Bad: {x: strin}}, spec: {x: Bad, y: Bad, "c.d": string, "": string, on: string}}`,
			[]string{
				`.types.Bad.x: there is no type "strin": did you mean string?`,
				`.types['a b']: "a b" is not a valid name for a type: write letters, digits, _ and -, beginning with a letter or _`,
				`.types.string: string is a type that the notation has itself: choose another name`,
				`.spec['']: "" is not a valid name for a field: write letters, digits, _ and -, beginning with a letter or _`,
				`.spec['c.d']: "c.d" is not a valid name for a field: write letters, digits, _ and -, beginning with a letter or _`,
				`.spec.true: YAML does not read the name of the field as text, but as true: such names are y, n, yes, no, on and off: choose another name, which nobody has to quote`,
			}, "names; a mistake in a type is reported once, where it is declared"},
	} {
		made, problems := parse(t, test.schema)
		var got []string
		for _, p := range problems {
			text := p.Path.String() + ": " + p.Text
			if p.Fix != "" {
				text += ": " + p.Fix
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || made != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.reason, made, diff)
		}
	}
}

// TestLimits: what is too large is an error, soon.
func TestLimits(t *testing.T) {
	many, bomb, deep := map[string]any{}, map[string]any{"T0": "string"}, any("string")
	for i := range 90_000 {
		many[fmt.Sprintf("f%d", i)] = "string"
	}
	for i := 1; i < 40; i++ {
		bomb[fmt.Sprintf("T%d", i)] = map[string]any{"a": fmt.Sprintf("T%d", i-1), "b": fmt.Sprintf("T%d", i-1)}
	}
	for range 100 {
		deep = map[string]any{"a": deep}
	}
	for name, test := range map[string]struct{ spec, types map[string]any }{
		"1 MiB of fields":       {many, nil},
		"types that double":     {map[string]any{"a": "T39"}, bomb},
		"nesting":               {deep.(map[string]any), nil},
		"nesting of lists":      {map[string]any{"a": strings.Repeat("[]", 1<<19) + "string"}, nil},
		"1 MiB of description":  {map[string]any{"a": `string | description="` + strings.Repeat("x", 1<<20) + `"`}, nil},
		"an open quote":         {map[string]any{"a": `string | description="` + strings.Repeat(`\"`, 1<<19)}, nil},
		"1 MiB of one word":     {map[string]any{"a": strings.Repeat("x", 1<<20)}, nil},
		"1 MiB of bars":         {map[string]any{"a": "string" + strings.Repeat("|", 1<<20) + "x"}, nil},
		"1 MiB of backslashes":  {map[string]any{"a": `string | default="` + strings.Repeat(`\`, 1<<20)}, nil},
		"1 MiB of empty values": {map[string]any{"a": `string | enum="` + strings.Repeat(`,`, 1<<20) + `"`}, nil},
	} {
		began := time.Now()
		made, problems := simpleschema.Parse(test.spec, test.types)
		if made != nil || len(problems) == 0 || len(problems) > 3 {
			t.Errorf("%s: %d problems", name, len(problems))
			continue
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
		if n := len(problems[0].Text); n > 300 {
			t.Errorf("%s: a message of %d bytes", name, n)
		}
	}
}
