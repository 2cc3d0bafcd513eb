package convert

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

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

// fits reports whether a text has a length that is allowed.
func fits(v *structuralschema.ValueValidation, text string) bool {
	n := int64(len([]rune(text)))
	return (v.MaxLength == nil || n <= *v.MaxLength) && (v.MinLength == nil || n >= *v.MinLength)
}

func (g *generator) text(s *structuralschema.Structural) any {
	v := s.ValueValidation
	if v == nil || v.Pattern == "" && v.Format == "" {
		return g.textFrom()
	}
	if v.Format == "" && g.random.IntN(2) == 0 {
		if text, ok := g.matching(v.Pattern); ok && fits(v, text) {
			return text
		}
	}
	if values := g.boundaries(s); len(values) > 0 {
		return values[g.random.IntN(len(values))]
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

// times is how often something is repeated: at most high times; without end where that is negative: then
// mostly few times, and some times as many as make a difference.
func (g *generator) times(low, high int) int {
	switch limited := high >= 0 && high <= 1000; {
	case limited && g.random.IntN(3) == 0:
		return high
	case limited:
		return low + g.random.IntN(high-low+1)
	case g.random.IntN(8) == 0:
		return low + g.sizeFrom(g.random, maxSize)
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
