// Package generator makes objects of a version as an API server would have stored them: with values at the bounds of
// their schemas, at what rules distinguish, and at random. It knows no conversion.
package generator

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Options say what objects are made of.
type Options struct {
	Seed       uint64
	Kind       schema.GroupKind
	Namespaced bool
	// Metadata are the labels and annotations that rules name, Literals the texts and numbers in rules.
	Metadata []fieldpath.Path
	Literals []any
	// Versions are those whose bounds make a difference; of Others, the names of fields are tried where unknown ones are
	// kept.
	Versions, Others []*kinds.Version
}

// Generator makes objects of a schema: those that are at its bounds, and random ones. One seed makes the same objects.
type Generator struct {
	kind       schema.GroupKind
	namespaced bool
	metadata   []fieldpath.Path
	random     *rand.Rand
	// chosen fixes what is at some places, by index into their values; see combinations.
	chosen map[string]int
	// given fixes the values at some places.
	given map[string]any
	// uniform is true while all optional fields are set, and choices of few values are made alike: all the first, or all
	// the last.
	uniform, last bool
	// unknown are fields that other versions declare, by name: where unknown fields are kept, they may have these names.
	unknown map[string]*structuralschema.Structural
	// values are the boundaries that were computed already.
	values map[scalar][]any
	*distinctions
}

// scalar is all that the boundaries of a schema depend on.
type scalar struct {
	validation                       *structuralschema.ValueValidation
	kind                             string
	nullable, intOrString, isUnknown bool
}

// maxItems is how many items most lists and maps have, maxMany how many some have: one of rarely, at most maxManyDepth
// deep. maxDepth is how deep they are in each other. Objects have two thirds of their optional fields, of many fields
// about usualFields.
const (
	maxItems     = 3
	usualFields  = 32
	maxMany      = 300
	maxManyDepth = 4
	rarely       = 30
	maxDepth     = 12
)

// value makes a value; ok is false where the schema allows none that this could find.
func (g *Generator) value(s *structuralschema.Structural, at string, depth int) any {
	if value, ok := g.given[at]; ok {
		return value
	}
	values := g.boundaries(s)
	if i, ok := g.chosen[at]; ok && i < len(values) {
		return runtime.DeepCopyJSONValue(values[i])
	}
	if s.Nullable && g.random.IntN(8) == 0 {
		return nil
	}
	switch {
	case s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0:
	case s.Type == "object" || len(s.Properties) > 0:
		return g.object(s, at, depth)
	case s.Type == "array":
		return g.list(s, at, depth)
	case (s.Type == "integer" || s.Type == "number" || s.Type == "string") && g.random.IntN(3) == 0:
		return g.scalar(s)
	}
	if len(values) == 0 {
		return "x"
	}
	return runtime.DeepCopyJSONValue(values[g.choose(s, len(values))])
}

// scalar makes a number or text beside the boundaries.
func (g *Generator) scalar(s *structuralschema.Structural) any {
	switch s.Type {
	case "integer":
		return g.integer(validationOf(s))
	case "number":
		return g.number(validationOf(s))
	}
	return g.text(s)
}

// choose chooses one of n values of a scalar.
func (g *Generator) choose(s *structuralschema.Structural, n int) int {
	switch isChoice := s.Type == "boolean" || s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0; {
	case g.uniform && isChoice && g.last:
		return n - 1
	case g.uniform && isChoice:
		return 0
	}
	return g.random.IntN(n)
}

func validationOf(s *structuralschema.Structural) *structuralschema.ValueValidation {
	if s.ValueValidation == nil {
		return &structuralschema.ValueValidation{}
	}
	return s.ValueValidation
}

// boundaries are the values of a scalar that are worth trying: bounds, and what is known to get lost.
func (g *Generator) boundaries(s *structuralschema.Structural) []any {
	key := scalar{s.ValueValidation, s.Type, s.Nullable, s.XIntOrString, s.XPreserveUnknownFields}
	values, ok := g.values[key]
	if !ok {
		if values = g.boundariesOf(s); g.values == nil {
			g.values = map[scalar][]any{}
		}
		g.values[key] = values
	}
	return values
}

func (g *Generator) boundariesOf(s *structuralschema.Structural) []any {
	v := validationOf(s)
	if len(v.Enum) > 0 {
		var values []any
		for _, e := range v.Enum {
			values = append(values, e.Object)
		}
		return values
	}
	var values []any
	switch {
	case s.XIntOrString:
		values = []any{int64(0), int64(1), "", "1", "007", "50%"}
	case s.Type == "boolean":
		values = []any{false, true}
	case s.Type == "integer":
		values = g.integersOf(v)
	case s.Type == "number":
		values = g.numbersOf(v)
	case s.Type == "string":
		values = g.textsOf(v)
	case s.XPreserveUnknownFields:
		values = []any{map[string]any{"unknown": map[string]any{"deep": []any{int64(1), "two"}}}, map[string]any{}}
	}
	if s.Nullable {
		values = append(values, nil)
	}
	return values
}

// object makes an object or a map.
func (g *Generator) object(s *structuralschema.Structural, at string, depth int) any {
	made := map[string]any{}
	if depth > maxDepth {
		return made
	}
	required := validationOf(s).Required
	optional := max(1, len(s.Properties)-len(required))
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		where := at + "." + name
		_, fixed := g.chosen[where]
		isLeftOut := g.random.IntN(3) == 0 || g.random.IntN(optional) >= usualFields
		if !fixed && !g.uniform && !slices.Contains(required, name) && isLeftOut {
			continue
		}
		if i, ok := g.chosen[where]; ok && i == absent {
			continue
		}
		made[name] = g.value(&property, where, depth+1)
	}
	g.addKeys(made, s, at, depth)
	if s.XPreserveUnknownFields {
		g.addUnknown(made, s, at, depth)
	}
	return made
}

// addKeys adds the keys of a map.
func (g *Generator) addKeys(made map[string]any, s *structuralschema.Structural, at string, depth int) {
	a := kinds.ValuesOf(s)
	if a == nil {
		return
	}
	for i := range g.count(0, maxItems, limitOf(s, func(v *structuralschema.ValueValidation) *int64 {
		return v.MaxProperties
	}), depth) {
		key := g.key()
		if i >= maxItems {
			key = fmt.Sprint("key-", i)
		}
		made[key] = g.value(a, at+"{}", depth+1)
	}
}

// addUnknown adds fields that the schema does not declare: under names that nobody declares, and that the other version
// does.
func (g *Generator) addUnknown(made map[string]any, s *structuralschema.Structural, at string, depth int) {
	if g.random.IntN(2) == 0 {
		made["unknownField"] = map[string]any{"n": int64(1<<53 + 1), "list": []any{"a", nil, 1.5}}
	}
	if at == "" || g.random.IntN(4) != 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(g.unknown)) {
		if _, declared := s.Properties[name]; !declared && g.random.IntN(3) == 0 {
			made[name] = g.value(g.unknown[name], at+"."+name, depth+1)
		}
	}
}

// limitOf is a bound of a schema; -1 if it has none.
func limitOf(s *structuralschema.Structural, of func(*structuralschema.ValueValidation) *int64) int {
	if s.ValueValidation == nil || of(s.ValueValidation) == nil {
		return -1
	}
	return int(min(*of(s.ValueValidation), maxSize))
}

// count is how many items a list or map gets: mostly few, rarely as many as make a difference. limit is -1 if there is
// none.
func (g *Generator) count(low, high, limit, depth int) int {
	if limit < 0 {
		limit = maxSize
	}
	if high = min(high, limit); depth <= maxManyDepth && g.random.IntN(rarely) == 0 {
		return max(low, g.sizeFrom(g.random, min(limit, maxMany)))
	}
	return low + g.random.IntN(max(1, high-low+1))
}

// list makes a list, whose items differ where they have to.
func (g *Generator) list(s *structuralschema.Structural, at string, depth int) any {
	made := []any{}
	if s.Items == nil || depth > maxDepth {
		return made
	}
	low := max(0, limitOf(s, func(v *structuralschema.ValueValidation) *int64 { return v.MinItems }))
	limit := limitOf(s, func(v *structuralschema.ValueValidation) *int64 { return v.MaxItems })
	seen := map[string]bool{}
	for range g.count(low, max(low, maxItems), limit, depth) {
		item := g.value(s.Items, at+"[]", depth+1)
		identity := identityOf(item, s)
		if identity != "" && seen[identity] {
			continue
		}
		seen[identity] = true
		made = append(made, item)
	}
	return made
}

// identityOf is what must differ between the items of a set or a map; empty where nothing must.
func identityOf(item any, s *structuralschema.Structural) string {
	if s.XListType == nil || *s.XListType == "atomic" {
		return ""
	}
	key := item
	if fields, ok := item.(map[string]any); ok && *s.XListType == "map" {
		var parts []any
		for _, name := range s.XListMapKeys {
			parts = append(parts, fields[name])
		}
		key = parts
	}
	text, err := json.Marshal(key)
	if err != nil {
		return fmt.Sprint(key)
	}
	return string(text)
}
