package generator

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// distinctions are what the rules of a conversion and the schemas of its versions can distinguish values by.
type distinctions struct {
	texts    []string
	numbers  []int64
	patterns []*syntax.Regexp // texts that are regular expressions
	sizes    []int            // of texts, lists and maps
	long     []int            // what else expressions compare, which may be the size of a list
}

// maxSize bounds sizes that are tried; usualSizes are tried in any case: limits of names, and more than a few.
const maxSize = 1000

var usualSizes = []int{4, 11, 64, 254}

// distinctionsOf collects them from literals of rules, and from bounds and x-kubernetes-validations of versions.
func distinctionsOf(literals []any, versions []*kinds.Version) *distinctions {
	d := &distinctions{}
	for _, n := range usualSizes {
		d.size(int64(n))
	}
	d.compared(literals)
	var expressions []string
	for _, v := range versions {
		d.schema(v.Structural, &expressions)
	}
	slices.Sort(expressions)
	expressions = slices.Compact(expressions)
	if env, err := rules.NewEnv(rules.EnvOptions{}); err == nil {
		for _, expression := range expressions {
			d.compared(env.Literals(expression))
		}
	}
	slices.Sort(d.sizes)
	d.sizes = slices.Compact(d.sizes)
	return d
}

// compared adds the literals of expressions.
func (d *distinctions) compared(literals []any) {
	d.add(literals)
	for _, literal := range literals {
		if n, ok := literal.(int64); ok && n >= maxMany && n < maxLong {
			d.long = append(d.long, int(n), int(n)+1)
		}
	}
}

func (d *distinctions) add(literals []any) {
	for _, literal := range literals {
		switch literal := literal.(type) {
		case int64:
			if !slices.Contains(d.numbers, literal) {
				d.numbers = append(d.numbers, literal)
			}
			d.size(literal)
		case string:
			if slices.Contains(d.texts, literal) {
				continue
			}
			d.texts = append(d.texts, literal)
			if pattern, err := syntax.Parse(literal, syntax.Perl); err == nil && strings.ContainsAny(literal, `[(*+?^$\|{`) {
				d.patterns = append(d.patterns, pattern)
			}
		}
	}
}

// size adds a bound: what has that size, and what has one more.
func (d *distinctions) size(n int64) {
	if n >= 0 && n <= maxSize {
		d.sizes = append(d.sizes, int(n), int(n)+1)
	}
}

// schema adds the bounds of a schema, and collects the expressions of its rules.
func (d *distinctions) schema(s *structuralschema.Structural, expressions *[]string) {
	for _, rule := range s.XValidations {
		*expressions = append(*expressions, rule.Rule)
	}
	if v := s.ValueValidation; v != nil {
		for _, bound := range []*int64{v.MinLength, v.MaxLength, v.MinItems, v.MaxItems, v.MinProperties, v.MaxProperties} {
			if bound != nil {
				d.size(*bound)
			}
		}
		for _, bound := range []*float64{v.Minimum, v.Maximum} {
			if bound != nil && *bound == float64(int64(*bound)) {
				d.add([]any{int64(*bound)})
			}
		}
		for _, e := range v.Enum {
			if text, ok := e.Object.(string); ok {
				d.add([]any{text})
			}
		}
		if v.Pattern != "" {
			d.add([]any{v.Pattern})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		d.schema(&property, expressions)
	}
	if s.Items != nil {
		d.schema(s.Items, expressions)
	}
	if a := kinds.ValuesOf(s); a != nil {
		d.schema(a, expressions)
	}
}

// sizeFrom chooses a size of at most limit. Large ones are rare: they take most of the time.
func (d *distinctions) sizeFrom(random *rand.Rand, limit int) int {
	n, _ := slices.BinarySearch(d.sizes, limit+1)
	if n == 0 {
		return limit
	}
	return d.sizes[random.IntN(n)]
}

// textFrom joins literals, what matches regular expressions, and letters, in any order. Some are filled up to a size,
// at any place.
func (g *Generator) textFrom() string {
	letters := []rune("abcXYZ019-_.:,/ =é")
	parts := make([]string, g.random.IntN(5))
	length := 0
	for i := range parts {
		var b strings.Builder
		switch choice := g.random.IntN(4); {
		case choice == 0 && len(g.patterns) > 0:
			g.match(g.patterns[g.random.IntN(len(g.patterns))], &b, 0)
		case choice <= 2 && len(g.texts) > 0:
			b.WriteString(g.texts[g.random.IntN(len(g.texts))])
		default:
			for range g.random.IntN(4) {
				b.WriteRune(letters[g.random.IntN(len(letters))])
			}
		}
		parts[i] = b.String()
		length += b.Len()
	}
	if missing := g.sizeFrom(g.random, maxSize) - length; missing > 0 && g.random.IntN(3) == 0 {
		parts = slices.Insert(parts, g.random.IntN(len(parts)+1), strings.Repeat("z", missing))
	}
	return strings.Join(parts, "")
}

// key is a key of a map.
func (g *Generator) key() string {
	switch g.random.IntN(6) {
	case 0:
		return strings.Repeat("k", max(1, g.sizeFrom(g.random, maxSize)))
	case 1:
		return cmp.Or(g.textFrom(), "a")
	}
	i := g.random.IntN(len(usualKeys) + len(g.texts))
	if i < len(usualKeys) {
		return usualKeys[i]
	}
	return g.texts[i-len(usualKeys)]
}

// usualKeys are keys that any map may have.
var usualKeys = []string{"a", "b.c/d", "E", "007", "x-y"}
