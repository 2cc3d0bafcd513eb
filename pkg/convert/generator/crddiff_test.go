package generator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/crddiff"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// TestCompatibleChangesHold changes random schemas at random. Where crddiff calls that compatible, each object that is
// valid by the old schema is valid by the new one and loses nothing, which the API server's own code decides; and back,
// unless a change says what is lost.
func TestCompatibleChangesHold(t *testing.T) {
	t.Parallel()
	compatible, refused := 0, 0
	for seed := range uint64(4000) {
		m := &schemaMaker{rand.New(rand.NewPCG(seed, 7))}
		was := m.schema(3)
		is := *was.DeepCopy()
		for range 1 + m.IntN(3) {
			m.change(&is)
		}
		from, to := m.definition(was), m.definition(is)
		old, err := kinds.Versions(from)
		if err != nil {
			continue // what was changed is not a schema
		}
		changed, err := kinds.Versions(to)
		if err != nil {
			continue
		}
		changes, err := crddiff.Diff([]*apiextensionsv1.CustomResourceDefinition{from}, []*apiextensionsv1.CustomResourceDefinition{to})
		if err != nil {
			t.Fatal(err)
		}
		if crddiff.Worst(changes, false) != crddiff.Compatible {
			refused++
			continue
		}
		compatible++
		checkAll(t, seed, m.Rand, old[0], changed[0], changes)
		if !slices.ContainsFunc(changes, func(c crddiff.Change) bool { return c.Rollback != "" }) {
			checkAll(t, seed, m.Rand, changed[0], old[0], changes) // nothing is said about the way back
		}
	}
	if compatible < 200 || refused < 200 {
		t.Errorf("%d changes were compatible and %d not: too few to say anything", compatible, refused)
	}
}

// checkAll takes objects of one version to another one.
func checkAll(t *testing.T, seed uint64, random *rand.Rand, from, to *kinds.Version, changes []crddiff.Change) {
	t.Helper()
	kind := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	g := &Generator{kind: kind, random: random, distinctions: &distinctions{}}
	for range 20 {
		if obj, ok := g.Make(context.Background(), from); ok {
			checkHolds(t, seed, obj, to, changes)
		}
	}
}

func checkHolds(t *testing.T, seed uint64, obj map[string]any, v *kinds.Version, changes []crddiff.Change) {
	t.Helper()
	there := runtime.DeepCopyJSON(obj)
	if gone := v.Coerce(there); len(gone) > 0 {
		t.Fatalf("seed %d: %v of %v is dropped: %+v", seed, gone, obj, changes)
	}
	if errs := v.Validate(context.Background(), there); len(errs) > 0 {
		t.Fatalf("seed %d: %v is refused: %v: %+v", seed, obj, errs.ToAggregate(), changes)
	}
	if !contains(there, obj) {
		t.Fatalf("seed %d: %v has become %v: %+v", seed, obj, there, changes)
	}
}

// contains reports whether all values of an object are in another one, which may have got defaults.
func contains(all, some any) bool {
	switch some := some.(type) {
	case map[string]any:
		fields, ok := all.(map[string]any)
		for key, value := range some {
			ok = ok && contains(fields[key], value)
		}
		return ok
	case []any:
		items, ok := all.([]any)
		return ok && slices.EqualFunc(items, some, contains)
	}
	return reflect.DeepEqual(all, some)
}

// schemaMaker makes schemas, and changes them.
type schemaMaker struct{ *rand.Rand }

type props = apiextensionsv1.JSONSchemaProps

func (m *schemaMaker) definition(spec props) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "things.example.com"
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props{Type: "object", Properties: map[string]props{"spec": spec}}}}},
	}
	return d
}

func (m *schemaMaker) schema(depth int) props {
	p := props{}
	switch kind := m.IntN(8); {
	case kind < 3 && depth > 0:
		p.Type, p.Properties = "object", map[string]props{}
		for range m.IntN(4) {
			p.Properties[m.name()] = m.schema(depth - 1)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			if m.IntN(3) == 0 {
				p.Required = append(p.Required, name)
			}
		}
	case kind == 3 && depth > 0:
		values := m.schema(depth - 1)
		p.Type, p.AdditionalProperties = "object", &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
	case kind == 4 && depth > 0:
		items := m.schema(depth - 1)
		p.Type, p.Items = "array", &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}
	case kind == 5:
		p.Type = "integer"
	case kind == 6:
		p.Type = "boolean"
	default:
		p.Type = "string"
	}
	for range m.IntN(3) {
		m.limit(&p)
	}
	return p
}

// name is one that the generator also gives the keys of maps, or unknown fields.
func (m *schemaMaker) name() string { return []string{"a", "b", "E", "unknownField"}[m.IntN(4)] }

// change changes something, at any depth.
func (m *schemaMaker) change(p *props) {
	if m.IntN(2) == 0 {
		switch {
		case p.Items != nil:
			m.change(p.Items.Schema)
			return
		case p.AdditionalProperties != nil:
			m.change(p.AdditionalProperties.Schema)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
			if m.IntN(2) > 0 {
				continue
			}
			child := p.Properties[name]
			m.change(&child)
			p.Properties[name] = child
			return
		}
	}
	switch {
	case m.IntN(8) == 0:
		*p = m.schema(2)
	case m.IntN(2) == 0:
		m.limit(p)
	case p.Type == "object" && p.AdditionalProperties == nil:
		m.changeFields(p)
	case p.Type == "object":
		p.AdditionalProperties = nil
	default:
		*p = props{Type: p.Type, Items: p.Items}
	}
}

func (m *schemaMaker) changeFields(p *props) {
	if p.Properties == nil {
		p.Properties = map[string]props{}
	}
	name := m.name()
	switch m.IntN(5) {
	case 0:
		delete(p.Properties, name)
		p.Required = slices.DeleteFunc(p.Required, func(r string) bool { return r == name })
	case 1:
		p.Required = nil
	case 2:
		if _, ok := p.Properties[name]; ok && !slices.Contains(p.Required, name) {
			p.Required = append(p.Required, name)
		}
	case 3:
		p.Properties = nil
		p.Required = nil
		values := m.schema(1)
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}
	default:
		if _, ok := p.Properties[name]; !ok {
			p.Properties[name] = m.schema(2)
		}
	}
}

// limit sets or changes one limit that fits the type.
func (m *schemaMaker) limit(p *props) {
	count, number, yes := int64(m.IntN(4)), float64(m.IntN(5)), true
	raw := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	limits := map[string][]func(){
		"string": {func() { p.MaxLength = &count }, func() { p.MinLength = &count }, func() { p.MinLength = nil },
			func() { p.Pattern = fmt.Sprintf("^[a-z]{0,%d}$", count+1) }, func() { p.Pattern = "" },
			func() { p.Format = []string{"", "date", "date-time", "ipv4", "uuid"}[m.IntN(5)] },
			func() { p.Enum = []apiextensionsv1.JSON{*raw(`"a"`), *raw(`"b"`), *raw(`"c"`)}[:1+m.IntN(3)] }, func() { p.Enum = nil },
			func() { p.Default = raw(`"a"`) },
			func() { p.XValidations = apiextensionsv1.ValidationRules{{Rule: "self != 'a'"}} }, func() { p.XValidations = nil }},
		"integer": {func() { p.Maximum = &number }, func() { p.Minimum = &number }, func() { p.Minimum = nil },
			func() { p.ExclusiveMaximum = p.Maximum != nil },
			func() { p.MultipleOf = []*float64{nil, ptr(2.0), ptr(3.0)}[m.IntN(3)] },
			func() { p.Format = []string{"", "int32", "int64"}[m.IntN(3)] },
			func() { p.Type = "number" }, func() { p.Default = raw("1") },
			func() { *p = props{XIntOrString: true} }},
		"array": {func() { p.MaxItems = &count }, func() { p.MinItems = &count }, func() { p.MinItems = nil },
			func() {
				if kind := p.Items.Schema.Type; (kind == "string" || kind == "boolean") && !p.Items.Schema.Nullable && p.Items.Schema.Default == nil {
					p.XListType = []*string{nil, ptr("set"), ptr("set")}[m.IntN(3)]
				}
			}},
		"object": {func() { p.MaxProperties = &count }, func() { p.MinProperties = &count },
			func() { p.MinProperties, p.MaxProperties = nil, nil },
			func() { p.XPreserveUnknownFields = []*bool{nil, &yes}[m.IntN(2)] },
			func() { p.OneOf = []props{{Required: []string{"a"}}, {Required: []string{"b"}}} }, func() { p.OneOf = nil },
			func() { p.AnyOf = []props{{Required: []string{"a"}}, {Required: []string{"b"}}}[:1+m.IntN(2)] }, func() { p.AnyOf = nil },
			func() { p.Not = &props{Required: []string{m.name()}} }, func() { p.Not = nil }},
	}[p.Type]
	limits = append(limits, func() { p.Nullable = !p.Nullable })
	if p.Type == "array" {
		limits = append(limits, limits[3], limits[3])
	}
	limits[m.IntN(len(limits))]()
}

func ptr[T any](v T) *T { return &v }
