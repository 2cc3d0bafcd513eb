package crddiff_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/crddiff"
)

// definition is a CustomResourceDefinition with lines of its spec.
func definition(t *testing.T, spec string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	text := "metadata: {name: things.example.com}\nspec:\n  group: example.com\n  names: {plural: things, kind: Thing, shortNames: [th]}\n" +
		"  scope: Namespaced\n" + spec
	if err := yaml.UnmarshalStrict([]byte(text), d); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return d
}

// version is a version with the fields of spec.
func version(name, fields, more string) string {
	return fmt.Sprintf(
		"  - {name: %s, served: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, %s}}}}, %s}\n",
		name,
		fields,
		more,
	)
}

// Each way in which a schema can change in place.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason, was, is string
		level, worst    crddiff.Level
		path, text      string // path is empty for no change
		ratcheted       bool
		rollback        string
	}{
		{reason: "nothing has changed", was: "properties: {a: {type: string}}", is: "properties: {a: {type: string, description: new}}"},
		{reason: "a new optional field is lost on the way back only", was: "properties: {}", is: "properties: {a: {type: string}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "does not declare the field"},
		{reason: "a removed field is pruned", was: "properties: {a: {type: string}}", is: "properties: {}",
			level: crddiff.Conversion, path: ".spec.a", text: "does not declare the field"},
		{reason: "one removed below a list, too", was: "properties: {l: {type: array, items: {type: object, properties: {a: {type: string}}}}}",
			is: "properties: {l: {type: array, items: {type: object}}}", level: crddiff.Conversion, path: ".spec.l[*].a",
			text: "does not declare the field"},
		{reason: "one removed where unknown fields are kept is kept", was: "properties: {a: {type: string}}",
			is:    "x-kubernetes-preserve-unknown-fields: true",
			level: crddiff.Compatible, path: ".spec", text: "more is allowed", rollback: "unknown fields are not kept"},
		{reason: "unknown fields are not kept any more", was: "x-kubernetes-preserve-unknown-fields: true", is: "properties: {}",
			level: crddiff.Conversion, path: ".spec", text: "unknown fields are not kept"},
		{reason: "a field is typed that was kept as it came", was: "x-kubernetes-preserve-unknown-fields: true",
			is: "x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}", level: crddiff.Breaking,
			path: ".spec.a", text: "any value was kept"},
		{reason: "part of what was kept as it came is described", was: "x-kubernetes-preserve-unknown-fields: true",
			is:    "x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}}",
			level: crddiff.Conversion, worst: crddiff.Breaking, path: ".spec.a", text: "unknown fields are not kept"},
		{reason: "a map becomes fixed fields", was: "additionalProperties: {type: string}", is: "properties: {a: {type: string}}",
			level: crddiff.Conversion, path: ".spec", text: "additionalProperties was removed"},
		{reason: "fixed fields become a map", was: "properties: {a: {type: string}}", is: "additionalProperties: {type: string}",
			level: crddiff.Compatible, path: ".spec", text: "more is allowed", rollback: "additionalProperties was removed"},
		{reason: "the values of a map are narrowed", was: "additionalProperties: {type: string}",
			is:    "additionalProperties: {type: string, maxLength: 3}",
			level: crddiff.Breaking, path: ".spec[*]", text: "maxLength was not set and is 3", ratcheted: true},
		{reason: "a field is required that objects may lack", was: "properties: {a: {type: string}}",
			is:    "required: [a], properties: {a: {type: string}}",
			level: crddiff.Breaking, path: ".spec.a", text: "newly required and has no default"},
		{reason: "a new required field with a default", was: "properties: {}", is: "required: [a], properties: {a: {type: string, default: x}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "does not declare the field"},
		{reason: "a required field loses its default", was: "required: [a], properties: {a: {type: string, default: x}}",
			is: "required: [a], properties: {a: {type: string}}", level: crddiff.Breaking, path: ".spec.a", text: "has lost its default"},
		{reason: "a field is not required any more", was: "required: [a], properties: {a: {type: string}}",
			is:    "properties: {a: {type: string}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "newly required"},
		{reason: "a default changes what objects mean", was: "properties: {a: {type: string, default: x}}",
			is:    "properties: {a: {type: string, default: z}}",
			level: crddiff.Conversion, path: ".spec.a", text: `the default was "x" and is "z"`},
		{reason: "so does one that is added", was: "properties: {a: {type: string}}", is: "properties: {a: {type: string, default: z}}",
			level: crddiff.Conversion, path: ".spec.a", text: `the default "z" was added`},
		{reason: "another type", was: "properties: {a: {type: string}}", is: "properties: {a: {type: integer}}",
			level: crddiff.Conversion, path: ".spec.a", text: "the type was string and is integer"},
		{reason: "a number takes every integer", was: "properties: {a: {type: integer}}", is: "properties: {a: {type: number}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "the type was number and is integer"},
		{reason: "an integer does not take every number", was: "properties: {a: {type: number}}", is: "properties: {a: {type: integer}}",
			level: crddiff.Conversion, path: ".spec.a", text: "the type was number"},
		{reason: "integer or string takes strings", was: "properties: {a: {type: string}}",
			is:    "properties: {a: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "the type was integer or string"},
		{reason: "null is not allowed any more", was: "properties: {a: {type: string, nullable: true}}", is: "properties: {a: {type: string}}",
			level: crddiff.Breaking, path: ".spec.a", text: "nullable was taken away"},
		{reason: "null is allowed", was: "properties: {a: {type: string}}", is: "properties: {a: {type: string, nullable: true}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "nullable was taken away"},
		{reason: "an enum loses a value", was: "properties: {a: {type: string, enum: [x, z]}}",
			is:    "properties: {a: {type: string, enum: [x]}}",
			level: crddiff.Breaking, path: ".spec.a", text: `enum has lost "z"`, ratcheted: true},
		{reason: "an enum has one more", was: "properties: {a: {type: string, enum: [x]}}", is: "properties: {a: {type: string, enum: [x, z]}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: `enum has lost "z"`},
		{reason: "an enum where there was none", was: "properties: {a: {type: string}}", is: "properties: {a: {type: string, enum: [x]}}",
			level: crddiff.Breaking, path: ".spec.a", text: "enum was added", ratcheted: true},
		{reason: "another pattern", was: "properties: {a: {type: string, pattern: a+}}", is: "properties: {a: {type: string, pattern: b+}}",
			level: crddiff.Breaking, path: ".spec.a", text: `the pattern was "a+" and is "b+"`, ratcheted: true},
		{reason: "no pattern any more", was: "properties: {a: {type: string, pattern: a+}}", is: "properties: {a: {type: string}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "the pattern was not set"},
		{reason: "another format", was: "properties: {a: {type: string, format: date}}",
			is:    "properties: {a: {type: string, format: date-time}}",
			level: crddiff.Breaking, path: ".spec.a", text: "the format was", ratcheted: true},
		{reason: "64 bits take what 32 bits do", was: "properties: {a: {type: integer, format: int32}}",
			is:    "properties: {a: {type: integer, format: int64}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: `the format was "int64"`},
		{reason: "a higher minimum", was: "properties: {a: {type: integer, minimum: 1}}", is: "properties: {a: {type: integer, minimum: 2}}",
			level: crddiff.Breaking, path: ".spec.a", text: "minimum was 1 and is 2", ratcheted: true},
		{reason: "a higher maximum", was: "properties: {a: {type: integer, maximum: 1}}", is: "properties: {a: {type: integer, maximum: 2}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "maximum was 2 and is 1"},
		{reason: "a bound that is not in it any more", was: "properties: {a: {type: integer, maximum: 1}}",
			is:    "properties: {a: {type: integer, maximum: 1, exclusiveMaximum: true}}",
			level: crddiff.Breaking, path: ".spec.a", text: "exclusiveMaximum was added", ratcheted: true},
		{reason: "multiples only", was: "properties: {a: {type: integer}}", is: "properties: {a: {type: integer, multipleOf: 2}}",
			level: crddiff.Breaking, path: ".spec.a", text: "multipleOf was not set and is 2", ratcheted: true},
		{reason: "fewer items", was: "properties: {a: {type: array, maxItems: 3, items: {type: string}}}",
			is: "properties: {a: {type: array, maxItems: 2, items: {type: string}}}", level: crddiff.Breaking, path: ".spec.a",
			text: "maxItems was 3 and is 2", ratcheted: true},
		{reason: "fewer keys", was: "additionalProperties: {type: string}", is: "maxProperties: 2, additionalProperties: {type: string}",
			level: crddiff.Breaking, path: ".spec", text: "maxProperties was not set and is 2", ratcheted: true},
		{reason: "one of several", was: "properties: {a: {type: string}, b: {type: string}}",
			is:    "properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]",
			level: crddiff.Breaking, path: ".spec", text: "oneOf changed"},
		{reason: "a list becomes a set", was: "properties: {a: {type: array, items: {type: string}}}",
			is:    "properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}",
			level: crddiff.Breaking, path: ".spec.a", text: "x-kubernetes-list-type was atomic and is set"},
		{reason: "other keys of a list", was: "properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], " +
			"items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}}",
			is: "properties: {a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [l], " +
				"items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}}",
			level: crddiff.Breaking, path: ".spec.a", text: "x-kubernetes-list-map-keys were [k] and are [l]"},
		{reason: "an atomic map", was: "additionalProperties: {type: string}",
			is:    "x-kubernetes-map-type: atomic, additionalProperties: {type: string}",
			level: crddiff.Breaking, path: ".spec", text: "x-kubernetes-map-type was granular and is atomic"},
		{reason: "an object of Kubernetes", was: "properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}}",
			is:    "properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}}",
			level: crddiff.Breaking, path: ".spec.a", text: "x-kubernetes-embedded-resource was added"},
		{reason: "no object of Kubernetes any more",
			was:   "properties: {a: {type: object, x-kubernetes-embedded-resource: true, properties: {b: {type: string}}}}",
			is:    "properties: {a: {type: object, properties: {b: {type: string}}}}",
			level: crddiff.Conversion, path: ".spec.a.metadata", text: "does not declare the field"},
		{reason: "one that declares some of its metadata",
			was: "properties: {a: {type: object, x-kubernetes-embedded-resource: true, properties: {b: {type: string}}}}",
			is: "properties: {a: {type: object, properties: {b: {type: string}, apiVersion: {type: string}, kind: {type: string}, " +
				"metadata: {type: object, properties: {name: {type: string}}}}}}",
			level: crddiff.Conversion, path: ".spec.a.metadata", text: "unknown fields are not kept"},
		{reason: "one that keeps all fields",
			was:   "properties: {a: {type: object, x-kubernetes-embedded-resource: true, properties: {b: {type: string}}}}",
			is:    "properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "x-kubernetes-embedded-resource was added"},
		{reason: "a list in what was kept as it came is described", was: "x-kubernetes-preserve-unknown-fields: true",
			is: "x-kubernetes-preserve-unknown-fields: true, " +
				"properties: {a: {type: array, items: {type: object, properties: {b: {type: string}}}}}",
			level: crddiff.Conversion, worst: crddiff.Breaking, path: ".spec.a[*]", text: "unknown fields are not kept"},
		{reason: "the values of a map that was kept as it came are described", was: "x-kubernetes-preserve-unknown-fields: true",
			is:    "additionalProperties: {type: object, properties: {b: {type: string}}}",
			level: crddiff.Conversion, worst: crddiff.Breaking, path: ".spec[*]", text: "unknown fields are not kept"},
		{reason: "a rule that stored objects may fail", was: "properties: {a: {type: integer}}",
			is:    "properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: '!has(self.a) || self.a > 1'}]",
			level: crddiff.Breaking, path: ".spec", text: "ratcheting", ratcheted: true},
		{reason: "one that compares with the stored value is never ratcheted", was: "properties: {a: {type: integer}}",
			is:    "properties: {a: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}",
			level: crddiff.Breaking, path: ".spec.a", text: "each change is checked"},
		{reason: "another message of a rule", was: "properties: {a: {type: integer, x-kubernetes-validations: [{rule: self > 1}]}}",
			is: "properties: {a: {type: integer, x-kubernetes-validations: [{rule: self > 1, message: no}]}}"},
		{reason: "a rule less", was: "properties: {a: {type: integer, x-kubernetes-validations: [{rule: self > 1}]}}",
			is:    "properties: {a: {type: integer}}",
			level: crddiff.Compatible, path: ".spec.a", text: "more is allowed", rollback: "the rule"},
	} {
		t.Run(strings.ReplaceAll(row.reason, " ", "-"), func(t *testing.T) {
			t.Parallel()
			changes := must.Get(crddiff.Diff(
				[]*apiextensionsv1.CustomResourceDefinition{definition(t, "  versions:\n"+version("v1", row.was, "storage: true"))},
				[]*apiextensionsv1.CustomResourceDefinition{definition(t, "  versions:\n"+version("v1", row.is, "storage: true"))},
			)).In(t)
			if row.path == "" {
				if len(changes) > 0 {
					t.Fatalf("there are changes: %v", changes)
				}
				return
			}
			if worst := max(row.level, row.worst); crddiff.Worst(changes, false) != worst {
				t.Fatalf("is %s, not %s: %v", crddiff.Worst(changes, false), worst, changes)
			}
			for _, c := range changes {
				if c.Path == row.path && c.Level == row.level && c.Ratcheted == row.ratcheted &&
					strings.Contains(c.Reason, row.text) && strings.Contains(c.Rollback, row.rollback) && c.Fix != "" {
					return
				}
			}
			t.Fatalf("not among %+v", changes)
		})
	}
}

// TestLimitsByMeaning: a limit is narrower if it refuses a value that was allowed, however it is written.
func TestLimitsByMeaning(t *testing.T) {
	t.Parallel()
	const keys = "items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}"
	const unknown = "type: object, x-kubernetes-preserve-unknown-fields: true"
	const rule = "type: integer, x-kubernetes-validations: [{rule: self > 1, "
	for _, row := range []struct {
		was, is  string // a field
		narrower bool
		back     bool // so is the way back
	}{
		{"type: integer, multipleOf: 4", "type: integer, multipleOf: 2", false, true},
		{"type: integer, multipleOf: 4", "type: integer, multipleOf: 3", true, true},
		{"type: number, multipleOf: 0.3", "type: number, multipleOf: 0.1", false, true},
		{"type: integer", "type: integer, multipleOf: 1", false, false},
		{"type: number", "type: number, multipleOf: 1", true, false},
		{"type: integer, minimum: 1, exclusiveMinimum: true", "type: integer, minimum: 2", false, false},
		{"type: integer, minimum: 1.5", "type: integer, minimum: 2", false, false},
		{"type: number, minimum: 1, exclusiveMinimum: true", "type: number, minimum: 2", true, false},
		{"type: integer, maximum: 2, exclusiveMaximum: true", "type: integer, maximum: 1", false, false},
		{"type: integer, maximum: 2", "type: integer, maximum: 3, exclusiveMaximum: true", false, false},
		{"type: number, maximum: 2", "type: number, maximum: 2, exclusiveMaximum: true", true, false},
		{"type: number, maximum: 2, exclusiveMaximum: true", "type: number, maximum: 1", true, false},
		{"type: array, items: {type: string}", "type: array, items: {type: string}, minItems: 0", false, false},
		{"type: array, items: {type: string}", "type: array, items: {type: string}, minItems: 1", true, false},
		{"type: array, items: {type: string}", "type: array, items: {type: string}, maxItems: 0", true, false},
		{"type: array, items: {type: string}", "type: array, items: {type: string}, x-kubernetes-list-type: atomic", false, false},
		{"type: string", "type: string, minLength: 0", false, false},
		{"type: string, minLength: 2", "type: string, minLength: 1", false, true},
		{"type: object", "type: object, minProperties: 0", false, false},
		{"type: object", "type: object, minProperties: 1", true, false},
		{"type: object", "type: object, x-kubernetes-map-type: granular", false, false},
		{"type: string", "type: string, pattern: '.*'", false, false},
		{"type: string", "type: string, pattern: 'a*'", false, false},
		{"type: string", "type: string, pattern: '^a*$'", true, false},
		{"type: string", `type: string, pattern: '\b|a'`, true, false},
		{"type: string", "type: string, format: unheard-of", false, false},
		{"type: string", "type: string, format: date-time", true, false},
		{"type: integer", "type: integer, format: date", false, false},
		{"type: integer", "type: integer, format: int32", true, false},
		{"type: boolean", "type: boolean, enum: [true, false]", false, false},
		{"type: boolean", "type: boolean, enum: [true]", true, false},
		{"type: number, enum: [1]", "type: number, enum: [1.0]", false, false},
		{"type: string, nullable: false", "type: string", false, false},
		{"type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l], " + keys,
			"type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [l, k], " + keys, false, false},
		{unknown, unknown + ", minProperties: 0", false, false},
		{rule + "message: a}]", rule + "optionalOldSelf: false, reason: FieldValueInvalid}]", false, false},
	} {
		for _, way := range []struct {
			was, is  string
			narrower bool
		}{{row.was, row.is, row.narrower}, {row.is, row.was, row.back}} {
			list := func(field string) []*apiextensionsv1.CustomResourceDefinition {
				return []*apiextensionsv1.CustomResourceDefinition{
					definition(t, "  versions:\n"+version("v1", "properties: {a: {"+field+"}}", "storage: true")),
				}
			}
			changes, err := crddiff.Diff(list(way.was), list(way.is))
			if err != nil || way.narrower != (crddiff.Worst(changes, false) > crddiff.Compatible) {
				t.Errorf("from %s to %s: %v, %v", way.was, way.is, changes, err)
			}
		}
	}
}

// TestInvalidDefinitions: what API servers refuse is breaking, unless the old definition has the same problem.
func TestInvalidDefinitions(t *testing.T) {
	t.Parallel()
	list := func(field string) []*apiextensionsv1.CustomResourceDefinition {
		return []*apiextensionsv1.CustomResourceDefinition{
			definition(t, "  versions:\n"+version("v1", "properties: {a: {"+field+"}}", "storage: true")),
		}
	}
	const costly = "type: array, MAX, items: {type: string, x-kubernetes-validations: [{rule: self.matches('a+b+')}]}"
	for _, row := range []struct{ was, is, text string }{
		{"type: string", "type: strnig", `unknown type "strnig"`},
		{"", "type: strnig", `unknown type "strnig"`},
		{"type: strnig", "type: strnig", ""},
		{"type: string", "type: string, default: 1", "the default does not fit"},
		{strings.ReplaceAll(costly, "MAX", "maxItems: 2"), strings.ReplaceAll(costly, "MAX, ", ""), "could cost more"},
	} {
		var was []*apiextensionsv1.CustomResourceDefinition
		if row.was != "" {
			was = list(row.was)
		}
		changes, err := crddiff.Diff(was, list(row.is))
		found := slices.ContainsFunc(changes, func(c crddiff.Change) bool {
			return c.Level == crddiff.Breaking && strings.Contains(c.Reason, "API servers refuse the definition: ") &&
				strings.Contains(c.Reason, row.text)
		})
		if err != nil || found != (row.text != "") {
			t.Errorf("from %q to %q: %v, %v", row.was, row.is, changes, err)
		}
	}
}

const webhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://a'}}}\n"

// Each way in which a definition can change as a whole, and the versions of it.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	const a, ab = "properties: {a: {type: string}}", "properties: {a: {type: string}, b: {type: string}}"
	one := "  versions:\n" + version("v1", a, "storage: true")
	two := one + version("v1beta1", a, "storage: false")
	for _, row := range []struct {
		reason, was, is string
		level           crddiff.Level
		path, text      string
	}{
		{"the scope", one, strings.Replace(one, "", "  scope: Cluster\n", 1), crddiff.Breaking, "spec.scope", "was Namespaced and is Cluster"},
		{"the kind", one, "  names: {plural: things, kind: Other, shortNames: [th]}\n" + one, crddiff.Breaking,
			"spec.names.kind", "was Thing and is Other"},
		{"a short name", one, "  names: {plural: things, kind: Thing, shortNames: []}\n" + one, crddiff.Breaking,
			"spec.names.shortNames", "th was removed"},
		{"the name of one", one, "  names: {plural: things, kind: Thing, singular: item, shortNames: [th]}\n" + one, crddiff.Breaking,
			"spec.names.singular", "was thing and is item"},
		{"the kind of lists", one, "  names: {plural: things, kind: Thing, listKind: Things, shortNames: [th]}\n" + one, crddiff.Breaking,
			"spec.names.listKind", "was ThingList and is Things"},
		{"which names are allowed", one,
			strings.Replace(one, "type: object, properties: {",
				"type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 3}}}, ", 1),
			crddiff.Breaking, ".metadata.name", "3"},
		{"the group", one, "  group: other.com\n" + one, crddiff.Breaking, "spec.group", "was example.com and is other.com"},
		{"unknown fields", "  preserveUnknownFields: true\n" + one, one, crddiff.Conversion, "spec.preserveUnknownFields", "are dropped"},
		{"a webhook that must answer", one, webhook + one, crddiff.Conversion, "spec.conversion.strategy", "was None and is Webhook"},
		{"no webhook any more", webhook + one, one, crddiff.Breaking, "spec.conversion.strategy", "was Webhook and is None"},
		{"a version that is stored", one, "  versions:\n" + version("v2", a, "storage: true"), crddiff.Breaking,
			"spec.versions", "status.storedVersions"},
		{"one that status names", two + "status: {storedVersions: [v1beta1, v1]}\n", one,
			crddiff.Breaking, "spec.versions", "status.storedVersions"},
		{"one that is served", two, one, crddiff.Breaking, "spec.versions", "answered 404"},
		{"one that nobody could use", one + "  - {name: v0, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", one,
			crddiff.Compatible, "spec.versions", "it was not served"},
		{"not served any more", two, one + strings.Replace(version("v1beta1", a, "storage: false"), "served: true", "served: false", 1),
			crddiff.Breaking, "served", "not served any more"},
		{"a new version that is the same", one, two, crddiff.Compatible, "spec.versions", "has the schema of v1"},
		{"a new version with another schema", one, one + version("v2", ab, "storage: false"),
			crddiff.Conversion, ".spec.b", "without a conversion"},
		{"a field in one of two versions only", two,
			"  versions:\n" + version("v1", ab, "storage: true") + version("v1beta1", a, "storage: false"),
			crddiff.Conversion, ".spec.b", "objects that are stored as v1 are served in this version without a conversion"},
		{"a new version that is converted", webhook + one, webhook + one + version("v2", ab, "storage: false"), crddiff.Compatible,
			"spec.versions", "the webhook converts it"},
		{"another stored version", two, "  versions:\n" + version("v1", a, "storage: false") + version("v1beta1", a, "storage: true"),
			crddiff.Compatible, "storage", "stay stored as they are"},
		{"a stored version that is not served",
			one, strings.Replace(one, "served: true", "served: false", 1) + version("v2", a, "storage: false"),
			crddiff.Breaking, "storage", "the stored version is not served"},
		{"deprecated without deprecationWarning", two, one + version("v1beta1", a, "storage: false, deprecated: true"),
			crddiff.Compatible, "deprecationWarning", "do not learn what to use"},
		{"no status subresource any more", "  versions:\n" + version("v1", a, "storage: true, subresources: {status: {}}"), one,
			crddiff.Breaking, "subresources.status", "was removed"},
		{"a status subresource", one, "  versions:\n" + version("v1", a, "storage: true, subresources: {status: {}}"),
			crddiff.Breaking, "subresources.status", "was added"},
		{"no scale subresource any more",
			"  versions:\n" + version("v1", a, "storage: true, subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .spec.a}}"),
			one,
			crddiff.Breaking, "subresources.scale", "autoscalers"},
		{"a field to select by", "  versions:\n" + version("v1", a, "storage: true, selectableFields: [{jsonPath: .spec.a}]"), one,
			crddiff.Breaking, "selectableFields", "cannot be selected"},
	} {
		t.Run(strings.ReplaceAll(row.reason, " ", "-"), func(t *testing.T) {
			t.Parallel()
			is := definition(t, "  versions: []\n")
			override(t, is, row.is)
			was := definition(t, "  versions: []\n")
			override(t, was, row.was)
			changes, err := crddiff.Diff([]*apiextensionsv1.CustomResourceDefinition{was}, []*apiextensionsv1.CustomResourceDefinition{is})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range changes {
				if c.Path == row.path && c.Level == row.level && strings.Contains(c.Reason, row.text) {
					return
				}
			}
			t.Fatalf("not among %+v", changes)
		})
	}
}

// TestStoredVersionKeepsFields tries all changes between definitions of two versions, each with .spec.b, without it, or
// absent. An object in the old stored version, written by the new definition, keeps .spec.b if a webhook converts it or
// the new stored version has it.
func TestStoredVersionKeepsFields(t *testing.T) {
	t.Parallel()
	schemas := map[bool]string{false: "properties: {a: {type: string}}", true: "properties: {a: {type: string}, b: {type: string}}"}
	type state struct {
		*apiextensionsv1.CustomResourceDefinition
		name    string
		stored  string
		has     bool // the stored version has .spec.b
		webhook bool
	}
	var states []state
	for _, conversion := range []string{"", webhook} {
		for stored, other := range map[string]string{"v1": "v2", "v2": "v1"} {
			for _, has := range []bool{false, true} {
				alone := conversion + "  versions:\n" + version(stored, schemas[has], "storage: true")
				for what, also := range map[string]string{"": "", " beside the same": version(other, schemas[has], "storage: false"),
					" beside another": version(other, schemas[!has], "storage: false")} {
					name := fmt.Sprintf("%s with b: %t%s, converted: %t", stored, has, what, conversion != "")
					states = append(states, state{definition(t, alone+also), name, stored, has, conversion != ""})
				}
			}
		}
	}
	for _, was := range states {
		for _, is := range states {
			changes, err := crddiff.Diff([]*apiextensionsv1.CustomResourceDefinition{was.CustomResourceDefinition},
				[]*apiextensionsv1.CustomResourceDefinition{is.CustomResourceDefinition})
			lost := was.has && !is.has && was.stored != is.stored && !is.webhook
			reported := slices.ContainsFunc(changes, func(c crddiff.Change) bool {
				return c.Path == ".spec.b" && c.Level == crddiff.Breaking && c.Version == is.stored && c.Fix != ""
			})
			if err != nil || lost != reported {
				t.Errorf("from %s to %s: %v, %v", was.name, is.name, changes, err)
			}
		}
	}
}

// override sets what lines of a spec say.
func override(t *testing.T, d *apiextensionsv1.CustomResourceDefinition, spec string) {
	t.Helper()
	if err := yaml.Unmarshal([]byte("spec:\n"+spec), d); err != nil {
		t.Fatalf("%v in %s", err, spec)
	}
}

// Whole definitions come and go by their names.
func TestNames(t *testing.T) {
	t.Parallel()
	thing := definition(t, "  versions:\n"+version("v1", "properties: {}", "storage: true"))
	moved := thing.DeepCopy()
	moved.Name, moved.Spec.Group = "things.other.com", "other.com"
	list := func(d ...*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
		return d
	}
	for _, row := range []struct {
		reason  string
		was, is []*apiextensionsv1.CustomResourceDefinition
		text    string
	}{
		{"a new definition", nil, list(thing), ""},
		{"one less", list(thing), nil, "deletes all objects"},
		{"another group", list(thing), list(moved), "now defined by things.other.com"},
	} {
		changes, err := crddiff.Diff(row.was, row.is)
		if err != nil || (row.text == "") != (len(changes) == 0) || row.text != "" && !strings.Contains(changes[0].Reason, row.text) {
			t.Errorf("%s: %v, %v", row.reason, changes, err)
		}
	}
	thing.Spec.Versions[0].Storage = false
	if _, err := crddiff.Diff(list(thing), list(thing)); err == nil || !strings.Contains(err.Error(), "exactly one") {
		t.Errorf("a definition that no API server takes: %v", err)
	}
}
