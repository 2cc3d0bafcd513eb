package generator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules/cost"
)

// triesOfSize bounds how many objects are made to get one that is valid: half of them have only what is required.
const triesOfSize = 8

// Sized makes objects in which one list, map or text is at a bound, or just outside of one of the other version.
// isLarge: one is so large that the object would not get smaller otherwise.
func (g *Generator) Sized(
	ctx context.Context, v, other *kinds.Version,
) func(func(obj map[string]any, isLarge bool) bool) {
	own := *g
	own.chosen, own.random = nil, rand.New(rand.NewPCG(1, 2))
	return func(yield func(map[string]any, bool) bool) {
		for _, want := range own.places(v.Structural, other.Structural) {
			for n := range triesOfSize {
				if ctx.Err() != nil {
					return
				}
				maker := &largeMaker{Generator: &own, want: want, optional: n >= triesOfSize/2}
				obj, ok := maker.value(v.Structural, "", 0).(map[string]any)
				if !ok || !isStorable(obj) || !g.stored(ctx, v, obj) {
					continue
				}
				if !yield(obj, want.size > maxMany) {
					return
				}
				break
			}
		}
	}
}

// isStorable reports whether etcd takes an object of that size.
func isStorable(obj map[string]any) bool {
	text, err := json.Marshal(obj)
	return err == nil && len(text) <= cost.MaxStored
}

// largeMaker makes small objects with one large list, map or text.
type largeMaker struct {
	*Generator
	want sized
	// optional: some fields are set that are not required.
	optional bool
}

func (m *largeMaker) value(s *structuralschema.Structural, at string, depth int) any {
	low, size := 0, 0
	if at == m.want.at {
		size = m.want.size
	}
	v := validationOf(s)
	switch {
	case len(v.Enum) > 0 || depth > maxDepth:
	case s.Type == "object" || len(s.Properties) > 0:
		if v.MinProperties != nil {
			low = int(min(*v.MinProperties, maxLong))
		}
		return m.object(s, at, depth, max(low, size))
	case s.Type == "array":
		if v.MinItems != nil {
			low = int(min(*v.MinItems, maxLong))
		}
		return m.list(s, at, depth, max(low, size))
	case s.Type == "string" && at == m.want.at:
		return m.text(v, size)
	}
	return m.scalar(s)
}

// leadsTo reports whether the large value is at a place, or in it.
func (m *largeMaker) leadsTo(at string) bool {
	rest, ok := strings.CutPrefix(m.want.at, at)
	return ok && (rest == "" || strings.ContainsRune(".[{", rune(rest[0])))
}

func (m *largeMaker) object(s *structuralschema.Structural, at string, depth, size int) any {
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property, where := s.Properties[name], at+"."+name
		isRequired := slices.Contains(validationOf(s).Required, name) && (at != "" || !kinds.IsHead(name))
		if isRequired || m.leadsTo(where) || m.optional && m.random.IntN(2) == 0 {
			made[name] = m.value(&property, where, depth+1)
		}
	}
	if a := kinds.ValuesOf(s); a != nil {
		for i, item := range m.items(a, at+"{}", depth, size) {
			made[fmt.Sprint("key-", i)] = item
		}
	}
	return made
}

func (m *largeMaker) list(s *structuralschema.Structural, at string, depth, size int) any {
	made := []any{}
	if s.Items == nil {
		return made
	}
	for i, item := range m.items(s.Items, at+"[]", depth, size) {
		if s.XListType != nil && *s.XListType != "atomic" {
			item = m.distinct(s, item, i)
		}
		made = append(made, item)
	}
	return made
}

// items are that many small values, or the first of them has the large one.
func (m *largeMaker) items(s *structuralschema.Structural, at string, depth, size int) []any {
	if m.leadsTo(at) {
		size = max(size, 1)
	}
	if size == 0 {
		return nil
	}
	without := *m
	without.want = sized{}
	small := without.value(s, at, depth+1)
	list := make([]any, size)
	for i := range list {
		list[i] = runtime.DeepCopyJSONValue(small)
	}
	if m.leadsTo(at) {
		list[0] = m.value(s, at, depth+1)
	}
	return list
}

// distinct makes item i of a set or map differ from the others, as far as its schema lets it.
func (m *largeMaker) distinct(s *structuralschema.Structural, item any, i int) any {
	fields, ok := item.(map[string]any)
	if !ok {
		return m.numbered(s.Items, item, i)
	}
	for _, name := range s.XListMapKeys {
		key := s.Items.Properties[name]
		if fields[name] = m.numbered(&key, fields[name], i); i == 0 ||
			!places.Equal(fields[name], m.numbered(&key, fields[name], i-1)) {
			break
		}
	}
	return fields
}

// numbered is a value of a scalar for a number; value where there is none.
func (m *largeMaker) numbered(s *structuralschema.Structural, value any, i int) any {
	v := validationOf(s)
	switch {
	case len(v.Enum) > 0:
	case s.Type == "integer" && v.Minimum != nil:
		return int64(*v.Minimum) + int64(i) + 1
	case s.Type == "integer" || s.XIntOrString:
		return int64(i)
	case s.Type == "string":
		for _, form := range []string{"a%d", "%d", "%04d", "A%d", "a%04d.example.com", "10.1.%[2]d.%[3]d", "a/%d", "/a%d"} {
			text := fmt.Sprintf(form+"%.0[2]d%.0[3]d", i, i/256, i%256)
			if fits(v, text) && matches(v, text) {
				return text
			}
		}
	}
	return value
}

// scalar is a short value.
func (m *largeMaker) scalar(s *structuralschema.Structural) any {
	values := m.boundaries(s)
	short := slices.DeleteFunc(slices.Clone(values), func(value any) bool {
		text, ok := value.(string)
		return value == nil || ok && (text == "" || len(text) > 20)
	})
	switch {
	case len(short) > 0:
		return runtime.DeepCopyJSONValue(short[m.random.IntN(len(short))])
	case len(values) > 0:
		return runtime.DeepCopyJSONValue(values[0])
	}
	return "x"
}

// text is a text of a size: a letter so many times or, to match a pattern, a text that matches with one of its letters
// repeated.
func (m *largeMaker) text(v *structuralschema.ValueValidation, size int) any {
	for _, letter := range []string{"z", "1", "A"} {
		if text := strings.Repeat(letter, size); matches(v, text) {
			return text
		}
	}
	for range triesOfSize {
		text, _ := m.matching(v.Pattern)
		letters := []rune(text)
		for i := range letters {
			if missing := size - len(letters); missing >= 0 {
				text := string(slices.Insert(slices.Clone(letters), i, slices.Repeat(letters[i:i+1], missing)...))
				if matches(v, text) {
					return text
				}
			}
		}
	}
	return strings.Repeat("z", size)
}

func matches(v *structuralschema.ValueValidation, text string) bool {
	if formatOf(v) != "" {
		return false
	}
	pattern, err := regexp.Compile(v.Pattern)
	return err != nil || pattern.MatchString(text)
}
