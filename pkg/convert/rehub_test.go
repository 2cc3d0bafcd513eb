package convert_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/prove"
	"github.com/corollary-dev/corollary/pkg/convert/rehub"
)

// threeVersions is a CRD with the schemas of spec in v1beta1, v1 and v2.
func threeVersions(oldest, hub, next string) []byte {
	const version = `
    - name: %s
      served: true
      storage: %t
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, properties: %s}}}}
`
	return []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
` + fmt.Sprintf(version, "v1beta1", false, oldest) + fmt.Sprintf(version, "v1", true, hub) + fmt.Sprintf(version, "v2", false, next))
}

// A conversion with another hub converts every object as it did, and so does the one with the first hub again.
func TestRehub(t *testing.T) {
	t.Parallel()
	const hostPort = `{hostPort: {type: string, default: "a:1", pattern: "^[a-z]{1,9}:[1-9][0-9]{0,3}$"}}`
	const split = `{host: {type: string, default: a, pattern: "^[a-z]{1,9}$"}, port: {type: integer, default: 1, minimum: 1, maximum: 9999}}`
	const splitOther = `{server: {type: string, default: a, pattern: "^[a-z]{1,9}$"}, port: {type: integer, default: 1, minimum: 1, maximum: 9999}}`
	const toHostPort = `toHub: [{set: .spec.host, expression: "self.spec.hostPort.split(':')[0]"}, ` +
		`{set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}], ` +
		`fromHub: [{set: .spec.hostPort, expression: "self.spec.host + ':' + string(self.spec.port)"}]`
	for _, row := range []struct {
		reason            string
		oldest, hub, next string
		// fromOldest and fromNext are the spokes of v1beta1 and v2 with the hub v1; want is that of v1beta1 with the hub v2.
		fromOldest, fromNext, want string
		// problem is part of what cannot be said; differs of how an object is converted otherwise than before.
		problem, differs string
	}{
		{"nothing differs", `{a: {type: string}}`, `{a: {type: string}}`, `{a: {type: string}}`, `{}`, `{}`, `{}`, "", ""},
		{"a rename in the oldest", `{a: {type: string}}`, `{b: {type: string}}`, `{b: {type: string}}`,
			`{rules: [{move: .spec.a, to: .spec.b}]}`, `{}`, `{rules: [{move: .spec.a, to: .spec.b}]}`, "", ""},
		{"a rename in the next", `{b: {type: string}}`, `{b: {type: string}}`, `{c: {type: string}}`,
			`{}`, `{rules: [{move: .spec.c, to: .spec.b}]}`, `{rules: [{move: .spec.b, to: .spec.c}]}`, "", ""},
		{"renamed twice", `{a: {type: string}}`, `{b: {type: string}}`, `{c: {type: string}}`,
			`{rules: [{move: .spec.a, to: .spec.b}]}`, `{rules: [{move: .spec.c, to: .spec.b}]}`, `{rules: [{move: .spec.a, to: .spec.c}]}`, "", ""},
		{"and back to what it was", `{a: {type: string}}`, `{b: {type: string}}`, `{a: {type: string}}`,
			`{rules: [{move: .spec.a, to: .spec.b}]}`, `{rules: [{move: .spec.a, to: .spec.b}]}`, `{}`, "", ""},
		{"an object around it is renamed", `{a: {type: string}}`,
			`{o: {type: object, properties: {b: {type: string}}}}`, `{p: {type: object, properties: {b: {type: string}}}}`,
			`{rules: [{move: .spec.a, to: .spec.o.b}]}`, `{rules: [{move: .spec.p, to: .spec.o}]}`, "",
			".spec.p: .spec.o comes from more than one field: .spec.o.b is another", ""},
		{"a field of what was moved", `{o: {type: object, properties: {a: {type: string}}}}`,
			`{p: {type: object, properties: {a: {type: string}}}}`, `{a: {type: string}}`,
			`{rules: [{move: .spec.o.a, to: .spec.p.a}]}`, `{rules: [{move: .spec.a, to: .spec.p.a}]}`, `{rules: [{move: .spec.o.a, to: .spec.a}]}`, "", ""},
		{"words of an enum, twice", `{a: {type: string, enum: [on, off]}}`, `{a: {type: string, enum: [Enabled, Disabled]}}`,
			`{a: {type: string, enum: [Yes, No]}}`, `{rules: [{move: .spec.a, values: {"on": Enabled, "off": Disabled}}]}`,
			`{rules: [{move: .spec.a, values: {"Yes": Enabled, "No": Disabled}}]}`, `{rules: [{move: .spec.a, values: {"on": "Yes", "off": "No"}}]}`, "", ""},
		{"a list of one that is one value again", `{a: {type: string}}`, `{l: {type: array, minItems: 1, maxItems: 1, items: {type: string}}}`,
			`{b: {type: string}}`, `{rules: [{wrap: .spec.a, to: .spec.l}]}`, `{rules: [{wrap: .spec.b, to: .spec.l}]}`,
			`{rules: [{move: .spec.a, to: .spec.b}]}`, "", ""},
		{"a constant", `{a: {type: string}}`, `{a: {type: string}, c: {type: string, enum: [x]}}`, `{a: {type: string}, d: {type: string, enum: [x]}}`,
			`{rules: [{default: .spec.c, value: x}]}`, `{rules: [{move: .spec.d, to: .spec.c}]}`, `{rules: [{default: .spec.d, value: x}]}`, "", ""},
		{"a constant that only the hub had", `{a: {type: string}}`, `{a: {type: string}, c: {type: string, enum: [x]}}`, `{a: {type: string}}`,
			`{rules: [{default: .spec.c, value: x}]}`, `{rules: [{default: .spec.c, value: x}]}`, `{}`, "", ""},
		{"an expression in the oldest", hostPort, split, splitOther, "{" + toHostPort + "}", `{rules: [{move: .spec.server, to: .spec.host}]}`,
			`{toHub: [{set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}, {set: .spec.server, expression: "self.spec.hostPort.split(':')[0]"}], ` +
				`fromHub: [{set: .spec.hostPort, expression: "self.spec.server + ':' + string(self.spec.port)"}]}`, "", ""},
		{"an expression in the next", splitOther, split, hostPort, `{rules: [{move: .spec.server, to: .spec.host}]}`, "{" + toHostPort + "}",
			`{toHub: [{set: .spec.hostPort, expression: "self.spec.server + ':' + string(self.spec.port)"}], ` +
				`fromHub: [{set: .spec.port, expression: "int(self.spec.hostPort.split(':')[1])"}, {set: .spec.server, expression: "self.spec.hostPort.split(':')[0]"}]}`, "", ""},
		{"expressions in both", hostPort, split, `{url: {type: string, default: "http://a:1", pattern: "^http://[a-z]{1,9}:[1-9][0-9]{0,3}$"}}`, "{" + toHostPort + "}",
			`{toHub: [{set: .spec.host, expression: "self.spec.url.substring(7).split(':')[0]"}, {set: .spec.port, expression: "int(self.spec.url.split(':')[2])"}],
				fromHub: [{set: .spec.url, expression: "'http://' + self.spec.host + ':' + string(self.spec.port)"}]}`,
			`{toHub: [{set: .spec.url, expression: "'http://' + (self.spec.hostPort.split(':')[0]) + ':' + string((int(self.spec.hostPort.split(':')[1])))"}],
				fromHub: [{set: .spec.hostPort, expression: "(self.spec.url.substring(7).split(':')[0]) + ':' + string((int(self.spec.url.split(':')[2])))"}]}`, "", ""},
		{"an expression about a field that may be missing", `{o: {type: object, properties: {z: {type: string}}}}`, `{z: {type: string}}`,
			`{zone: {type: string, default: ""}}`, `{rules: [{move: .spec.o.z, to: .spec.z}]}`,
			`{toHub: [{set: .spec.z, expression: "self.spec.zone"}], fromHub: [{set: .spec.zone, expression: "has(self.spec.z) ? self.spec.z : self.?spec.?z.orValue('')"}]}`,
			`{toHub: [{set: .spec.zone, expression: "(has(self.spec) && has(self.spec.o) && has(self.spec.o.z)) ? self.spec.o.z : self.?spec.?o.?z.orValue('')"}],
				fromHub: [{set: .spec.o.z, expression: "self.spec.zone"}]}`, "",
			`from v1beta1 to v1: .spec.z is absent now, and would be ""`},
		{"the items of a list, in both", `{l: {type: array, items: {type: object, properties: {a: {type: string}}}}}`,
			`{l: {type: array, items: {type: object, properties: {b: {type: string}}}}}`, `{m: {type: array, items: {type: object, properties: {c: {type: string}}}}}`,
			`{rules: [{forEach: .spec.l, rules: [{move: .a, to: .b}]}]}`, `{rules: [{forEach: .spec.m, to: .spec.l, rules: [{move: .c, to: .b}]}]}`,
			`{rules: [{forEach: .spec.l, to: .spec.m, rules: [{move: .a, to: .c}]}]}`, "", ""},
		{"the items of a map, in one", `{l: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}}`,
			`{m: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}}`,
			`{m: {type: object, additionalProperties: {type: object, properties: {c: {type: string}}}}}`,
			`{rules: [{move: .spec.l, to: .spec.m}]}`, `{rules: [{forEach: .spec.m, rules: [{move: .c, to: .a}]}]}`,
			`{rules: [{forEach: .spec.l, to: .spec.m, rules: [{move: .a, to: .c}]}]}`, "", ""},
		{"expressions for items", `{l: {type: array, items: {type: object, required: [a], properties: {a: {type: string, pattern: "^[1-9]$"}}}}}`,
			`{l: {type: array, items: {type: object, required: [b], properties: {b: {type: integer, minimum: 1, maximum: 9}}}}}`,
			`{l: {type: array, items: {type: object, required: [c], properties: {c: {type: integer, minimum: 1, maximum: 9}}}}}`,
			`{rules: [{forEach: .spec.l, toHub: [{set: .b, expression: int(self.a)}], fromHub: [{set: .a, expression: string(self.b)}]}]}`,
			`{rules: [{forEach: .spec.l, rules: [{move: .c, to: .b}]}]}`,
			`{rules: [{forEach: .spec.l, toHub: [{set: .c, expression: int(self.a)}], fromHub: [{set: .a, expression: string(self.c)}]}]}`, "", ""},
		{"a loss", `{a: {type: string}, b: {type: string}}`, `{a: {type: string}}`, `{a: {type: string}}`,
			`{lost: [{path: .spec.b, reason: nobody uses it}]}`, `{}`, `{lost: [{path: .spec.b, reason: nobody uses it}]}`, "", ""},
		{"a label that becomes a field", `{b: {type: string}}`, `{a: {type: string}, b: {type: string}}`, `{c: {type: string}, b: {type: string}}`,
			`{rules: [{move: .metadata.labels.a, to: .spec.a}], lost: [{path: .metadata.labels.a, reason: nobody sets it}]}`,
			`{rules: [{move: .spec.c, to: .spec.a}]}`,
			`{rules: [{move: .metadata.labels.a, to: .spec.c}], lost: [{path: .metadata.labels.a, reason: nobody sets it}]}`, "", ""},
		{"an expression that uses everything", `{a: {type: string, default: ""}}`, `{b: {type: string, default: ""}}`, `{c: {type: string, default: ""}}`,
			`{rules: [{move: .spec.a, to: .spec.b}]}`, `{toHub: [{set: .spec.b, expression: self.spec.c}], fromHub: [{set: .spec.c, expression: "self.spec == self.spec ? self.spec.b : ''"}]}`,
			"", ".spec.c: .spec comes from more than one field", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			definition, versions := define(t, threeVersions(row.oldest, row.hub, row.next))
			conf := &conversion.Conversion{Hub: "v1", Spokes: []conversion.Spoke{spokeOf(t, "v1beta1", row.fromOldest),
				spokeOf(t, "v2", row.fromNext)}}
			options := convert.Options{Kind: schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}, Versions: versions}
			before := compileConfig(t, conf, options)
			next, problems, err := rehub.Rehub(conf, "v2", versions)
			if err != nil {
				t.Fatal(err)
			}
			if row.problem != "" {
				if len(problems) == 0 || !strings.Contains(problems[0].Message, row.problem) {
					t.Fatalf("problems: %v, want %q", problems, row.problem)
				}
				return
			}
			if diff := cmp.Diff(spokeOf(t, "v1beta1", row.want), next.Spokes[0]); diff != "" || len(problems) > 0 {
				t.Errorf("problems: %v; (-want +got):\n%s", problems, diff)
			}
			if agrees(t, before, compileConfig(t, next, options), row.differs); row.differs != "" {
				return
			}
			again, _, err := rehub.Rehub(next, "v1", versions)
			if err != nil {
				t.Fatal(err)
			}
			agrees(t, before, compileConfig(t, again, options), "")
		})
	}
}

func spokeOf(t *testing.T, version, text string) conversion.Spoke {
	t.Helper()
	made := conversion.Spoke{}
	must.Do(t, yaml.UnmarshalStrict([]byte(text), &made))
	made.Version = version
	return made
}

func compileConfig(t *testing.T, conf *conversion.Conversion, o convert.Options) *convert.Converter {
	t.Helper()
	made, problems := convert.Compile(conf, o)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Path, p.Message)
	}
	if made == nil {
		text, _ := yaml.Marshal(conf)
		t.Fatalf("%s", text)
	}
	return made
}

func agrees(t *testing.T, before, after *convert.Converter, but string) {
	t.Helper()
	found := must.Get(prove.Compare(t.Context(), before, after, prove.Options{Seed: 1, Objects: 300})).In(t)
	switch {
	case found == nil && but != "":
		t.Errorf("they agree, but: %s", but)
	case found != nil && (but == "" || !strings.Contains(found.Problem, but)):
		t.Errorf("%s: %v", found.Problem, found.Object)
	}
}

// What a comparison is there for: it finds a conversion that is another one.
func TestCompareFindsDifferences(t *testing.T) {
	t.Parallel()
	crd := crdOf(`{a: {type: string}, b: {type: string}}`, `{a: {type: string}, b: {type: string}}`)
	same, _ := compile(t, crd, conversionOf(""))
	swapped, _ := compile(t, crd, conversionOf("    rules: [{move: .spec.a, to: .spec.b}, {move: .spec.b, to: .spec.a}]"))
	found, err := prove.Compare(t.Context(), same, swapped, prove.Options{Seed: 1, Objects: 100})
	if err != nil || found == nil || !strings.Contains(found.Problem, "converting from v1beta1 to v1: .spec.") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestRehubFindsDifferences: whatever the new rules convert to something else is found.
func TestRehubFindsDifferences(t *testing.T) {
	t.Parallel()
	const cut = "self.spec.a.size() > 63 ? self.spec.a.substring(0, 63) : self.spec.a"
	for _, row := range []struct{ reason, oldest, hub, next, fromOldest, fromNext, differs string }{
		{"a field of two spokes, which the hub lacks", `{a: {type: string}, x: {type: string}}`, `{a: {type: string}}`, `{a: {type: string}, x: {type: string}}`,
			`{}`, `{}`, "converting from v1beta1 to v2: .spec.x is absent now, and would be "},
		{"an unknown field that a rule overwrites", `{a: {type: string}}, x-kubernetes-preserve-unknown-fields: true`,
			`{c: {type: string}}, x-kubernetes-preserve-unknown-fields: true`, `{b: {type: string}}, x-kubernetes-preserve-unknown-fields: true`,
			`{rules: [{move: .spec.a, to: .spec.c}]}`, `{rules: [{move: .spec.b, to: .spec.c}]}`, "converting from "},
		{"a text that one spoke cuts", `{a: {type: string, default: a}}`, `{a: {type: string, default: a}}`, `{a: {type: string, default: a}}`,
			`{}`, `{toHub: [{set: .spec.a, expression: "` + cut + `"}], fromHub: [{set: .spec.a, expression: "` + cut + `"}]}`,
			".spec.a is "},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			definition, versions := define(t, threeVersions(row.oldest, row.hub, row.next))
			conf := &conversion.Conversion{Hub: "v1", Spokes: []conversion.Spoke{spokeOf(t, "v1beta1", row.fromOldest),
				spokeOf(t, "v2", row.fromNext)},
				Preserve: &conversion.Preserve{Annotation: "example.com/data"}}
			options := convert.Options{Kind: schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}, Versions: versions}
			before := compileConfig(t, conf, options)
			next, _, err := rehub.Rehub(conf, "v2", versions)
			if err != nil {
				t.Fatal(err)
			}
			agrees(t, before, compileConfig(t, next, options), row.differs)
		})
	}
}
