package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// generator makes objects of a schema: those that are at its bounds, and random ones.
type generator struct {
	random *rand.Rand
	// chosen fixes what is at some places, by index into their values; see combinations.
	chosen map[string]int
	// uniform is true while all optional fields are set, and choices of few values are made alike: all the first, or all the last.
	uniform, last bool
	// unknown are fields that the other version declares, by name: where unknown fields are kept, they may have these names.
	unknown map[string]*structuralschema.Structural
	*distinctions
}

// maxItems is how many items most lists and maps have, maxMany how many some have: one of rarely, at most maxManyDepth deep. maxDepth is
// how deep they are in each other.
const (
	maxItems     = 3
	maxMany      = 300
	maxManyDepth = 4
	rarely       = 30
	maxDepth     = 12
)

// value makes a value; ok is false where the schema allows none that this could find.
func (g *generator) value(s *structuralschema.Structural, at string, depth int) any {
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
	case s.Type == "integer" && g.random.IntN(3) == 0:
		return g.integer(s)
	case s.Type == "string" && g.random.IntN(3) == 0:
		return g.text(s)
	}
	if len(values) == 0 {
		return "x"
	}
	return runtime.DeepCopyJSONValue(values[g.choose(s, len(values))])
}

// choose chooses one of n values of a scalar.
func (g *generator) choose(s *structuralschema.Structural, n int) int {
	switch isChoice := s.Type == "boolean" || s.ValueValidation != nil && len(s.ValueValidation.Enum) > 0; {
	case g.uniform && isChoice && g.last:
		return n - 1
	case g.uniform && isChoice:
		return 0
	}
	return g.random.IntN(n)
}

// boundaries are the values of a scalar that are worth trying: bounds, and what is known to get lost.
func (g *generator) boundaries(s *structuralschema.Structural) []any {
	v := s.ValueValidation
	if v == nil {
		v = &structuralschema.ValueValidation{}
	}
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
		values = []any{int64(0), 0.5, -1.5, int64(1), 1e21, 0.1}
		if v.Minimum != nil {
			values = append(values, *v.Minimum)
		}
		if v.Maximum != nil {
			values = append(values, *v.Maximum)
		}
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

func (g *generator) integersOf(v *structuralschema.ValueValidation) []any {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if v.Format == "int32" {
		low, high = math.MinInt32, math.MaxInt32
	}
	if v.Minimum != nil {
		low = max(low, int64(math.Ceil(*v.Minimum)))
	}
	if v.Maximum != nil && *v.Maximum < math.MaxInt64 {
		high = min(high, int64(math.Floor(*v.Maximum)))
	}
	var values []any
	wanted := []int64{0, 1, -1, low, low + 1, high - 1, high, 1<<53 + 1, -(1<<53 + 1), 7}
	for _, n := range g.numbers {
		wanted = append(wanted, n-1, n, n+1)
	}
	for i, n := range g.numbers { // and between any two
		if i > 0 {
			wanted = append(wanted, n/2+g.numbers[i-1]/2)
		}
	}
	for _, n := range wanted {
		if n >= low && n <= high && !slices.Contains(values, any(n)) {
			values = append(values, n)
		}
	}
	return values
}

func (g *generator) integer(s *structuralschema.Structural) any {
	v := s.ValueValidation
	if v == nil || v.Minimum == nil || v.Maximum == nil || *v.Maximum < *v.Minimum {
		return int64(g.random.IntN(1000))
	}
	return int64(*v.Minimum) + g.random.Int64N(max(1, int64(*v.Maximum)-int64(*v.Minimum)+1))
}

// formats are texts of formats that the API server checks.
var formats = map[string][]string{
	"date-time": {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+02:00", "2026-01-02T03:04:05.500Z", "2026-01-02t03:04:05z"},
	"date":      {"2026-01-02"},
	"duration":  {"1h30m", "90s", "1.5h"},
	"byte":      {"", "AAEC"},
	"ipv4":      {"10.0.0.1"},
	"ipv6":      {"::1", "fd00::1", "2001:DB8::1", "2001:0db8:0:0:0:0:0:1", "::ffff:10.0.0.1"},
	"cidr":      {"10.0.0.0/8", "10.1.2.3/8", "2001:DB8::/32"},
	"uri": {
		"https://example.com/a?b=c",
		"https://example.com/a#b",
		"HTTPS://Example.com:443/%7ea",
	},
	"email":    {"a@example.com", "A@Example.com"},
	"hostname": {"a.example.com", "A.Example.com"},
	"mac":      {"00:00:5e:00:53:01", "00:00:5E:00:53:01", "00-00-5e-00-53-01"},
	"uuid":     {"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"},
}

// awkward are texts that conversions lose: numbers with zeros before them, separators, what YAML reads as something else.
var awkward = []string{
	"",
	"a",
	"007",
	"1",
	"1.0",
	"true",
	"null",
	"~",
	" a ",
	"a,b",
	"a:b",
	"a:b:c",
	",",
	":",
	"a b",
	"a/b",
	"a=b",
	"ä€😀",
	"a\nb",
	"-",
	"1e3",
	"0x10",
	"9007199254740993",
}

// literalTexts are the literals that are texts, and others close to them.
func (g *generator) literalTexts() []string {
	var list []string
	for _, text := range g.texts {
		list = append(list, text, text+"a", strings.ToUpper(text))
	}
	return list
}

func (g *generator) textsOf(v *structuralschema.ValueValidation) []any {
	var values []any
	pattern, err := regexp.Compile(v.Pattern)
	add := func(text string) {
		if (err != nil || pattern.MatchString(text)) && fits(v, text) && !slices.Contains(values, any(text)) {
			values = append(values, text)
		}
	}
	for _, text := range formats[v.Format] {
		add(text)
	}
	if v.Pattern != "" {
		for range 8 {
			if text, ok := g.matching(v.Pattern); ok {
				add(text)
			}
		}
	}
	for _, text := range g.literalTexts() {
		add(text)
	}
	if v.Format == "" || formats[v.Format] == nil {
		for _, text := range awkward {
			add(text)
		}
		for _, n := range g.sizes {
			add(strings.Repeat("z", n))
		}
	}
	return values
}

// fits tells whether a text has a length that is allowed.
func fits(v *structuralschema.ValueValidation, text string) bool {
	n := int64(len([]rune(text)))
	return (v.MaxLength == nil || n <= *v.MaxLength) && (v.MinLength == nil || n >= *v.MinLength)
}

func (g *generator) text(s *structuralschema.Structural) any {
	if v := s.ValueValidation; v != nil && (v.Pattern != "" || v.Format != "") {
		values := g.textsOf(v)
		if len(values) > 0 {
			return values[g.random.IntN(len(values))]
		}
	}
	return g.textFrom()
}

// matching makes a text that a pattern matches.
func (g *generator) matching(pattern string) (text string, ok bool) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	g.match(parsed, &b, 0)
	return b.String(), b.Len() <= 2000
}

// times is how often something is repeated: at most high times; without end where that is negative.
func (g *generator) times(low, high int) int {
	switch limited := high >= 0 && high <= 1000; {
	case limited && g.random.IntN(3) == 0:
		return high
	case limited:
		return low + g.random.IntN(high-low+1)
	}
	return low + g.random.IntN(4)
}

func (g *generator) match(re *syntax.Regexp, b *strings.Builder, depth int) {
	if depth > 50 || b.Len() > 2000 {
		return
	}
	repeat := func(low, high int) {
		for range g.times(low, high) {
			g.match(re.Sub[0], b, depth+1)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) >= 2 {
			i := 2 * g.random.IntN(len(re.Rune)/2)
			low, high := re.Rune[i], min(re.Rune[i+1], re.Rune[i]+100)
			b.WriteRune(low + g.random.Int32N(high-low+1))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("abc019.,:- "[g.random.IntN(11)])
	case syntax.OpCapture:
		g.match(re.Sub[0], b, depth+1)
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, re.Max)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			g.match(sub, b, depth+1)
		}
	case syntax.OpAlternate:
		g.match(re.Sub[g.random.IntN(len(re.Sub))], b, depth+1)
	default: // anchors and the like match nothing
	}
}

// object makes an object or a map.
func (g *generator) object(s *structuralschema.Structural, at string, depth int) any {
	made := map[string]any{}
	if depth > maxDepth {
		return made
	}
	var required []string
	if s.ValueValidation != nil {
		required = s.ValueValidation.Required
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		where := at + "." + name
		_, fixed := g.chosen[where]
		if !fixed && !g.uniform && !slices.Contains(required, name) && g.random.IntN(3) == 0 {
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
func (g *generator) addKeys(made map[string]any, s *structuralschema.Structural, at string, depth int) {
	a := additional(s)
	if a == nil {
		return
	}
	keys := append([]string{"a", "b.c/d", "E", "007", "x-y"}, g.texts...)
	for i := range g.count(0, maxItems, limitOf(s, func(v *structuralschema.ValueValidation) *int64 { return v.MaxProperties }), depth) {
		key := keys[g.random.IntN(len(keys))]
		if i >= maxItems {
			key = fmt.Sprint("key-", i)
		}
		made[key] = g.value(a, at+"{}", depth+1)
	}
}

// addUnknown adds fields that the schema does not declare: under names that nobody declares, and that the other version does.
func (g *generator) addUnknown(made map[string]any, s *structuralschema.Structural, at string, depth int) {
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

// count is how many items a list or map gets: mostly few, rarely as many as make a difference. limit is -1 if there is none.
func (g *generator) count(low, high, limit, depth int) int {
	if limit < 0 {
		limit = maxSize
	}
	if high = min(high, limit); depth <= maxManyDepth && g.random.IntN(rarely) == 0 {
		return max(low, g.sizeFrom(g.random, min(limit, maxMany)))
	}
	return low + g.random.IntN(max(1, high-low+1))
}

// list makes a list, whose items differ where they have to.
func (g *generator) list(s *structuralschema.Structural, at string, depth int) any {
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

// absent is the choice that a field is not there.
const absent = -1

// fieldChoice is a scalar field that is always reached, with how many values there are to try.
type fieldChoice struct {
	at     string
	values int
	absent bool // it may be absent
}

// choices lists the fields whose combinations are tried.
func (g *generator) choices(s *structuralschema.Structural, at string, depth int) []fieldChoice {
	var list []fieldChoice
	if depth > maxDepth {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		where := at + "." + name
		if at == "" && slices.Contains(head, name) {
			continue
		}
		optional := s.ValueValidation == nil || !slices.Contains(s.ValueValidation.Required, name)
		if n := len(g.boundaries(&property)); n > 0 && property.Type != "object" {
			list = append(list, fieldChoice{where, n, optional})
			continue
		}
		list = append(list, g.choices(&property, where, depth+1)...)
	}
	return list
}
