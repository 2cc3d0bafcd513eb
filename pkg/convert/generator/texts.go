package generator

import (
	"encoding/base64"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// formats are texts of the formats that the API server checks: what it takes, in every spelling, up to what CEL does
// not read.
var formats = map[string][]string{
	"datetime": {
		"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789+02:00", "2026-01-02T03:04:05.500Z", "2026-01-02t03:04:05z",
		"2026-01-02T03:04:05.5-00:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z",
		"2016-12-31T23:59:60Z", "1969-12-31T23:59:59+23:59", "2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05.1234567891Z",
	},
	"date": {"2026-01-02", "0000-01-01", "0001-01-01", "9999-12-31", "2024-02-29"},
	"duration": {
		"1h30m", "90s", "1.5h", "0", "0s", "-1s", "1ns", "1us", "1µs", "100ms", "3 days", "2 weeks", "1 day 2h",
		"1d", "90 s", "0.1s", "+5s",
		"2562047h47m16.854775807s", "106751 days", "9999999 days", "99999999999999h", "8760h",
	},
	"byte": {
		"AAEC", "/w==", "//79", "AA==", "wA==", "YQ==", "YWI=", "AB==", "4oKs", "77+9", "AAAA",
		"7aCA", "YTpi", "Cg==", "IA==",
		"8J+YgA==", "gICAgA==", "/////w==",
	},
	"ipv4": {"10.0.0.1", "0.0.0.0", "255.255.255.255", "127.0.0.1"},
	"ipv6": {
		"::1", "fd00::1", "2001:DB8::1", "2001:0db8:0:0:0:0:0:1", "::ffff:10.0.0.1", "::", "::10.0.0.1", "fe80::1",
		"2001:db8:0:0:1:0:0:1",
	},
	"cidr": {"10.0.0.0/8", "10.1.2.3/8", "2001:DB8::/32", "::ffff:10.0.0.0/104", "0.0.0.0/0", "::/0", "10.0.0.1/32"},
	"uri": {
		"https://example.com/a?b=c", "https://example.com/a#b", "HTTPS://Example.com:443/%7ea", "/a",
		"urn:a:b", "http://[::1]:80/",
		"https://a:b@example.com/ä", "https://example.com", "mailto:a@example.com",
		"https://example.com/?a=b&a=c", "//a/b", "x:%2F",
	},
	"email": {"a@example.com", "A@Example.com", "Ä <a@example.com>", "\"a b\"@example.com",
		"a+b@example.com", "<a@b>"},
	"hostname": {"a.example.com", "A.Example.com", "a", "1.2.3.4", "xn--bcher-kva.example", "a-b", "a.example.com."},
	"mac": {"00:00:5e:00:53:01", "00:00:5E:00:53:01", "00-00-5e-00-53-01",
		"0000.5e00.5301", "02:00:5e:10:00:00:00:01"},
	"uuid": {"123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000",
		"123e4567e89b12d3a456426614174000"},
	"uuid3":        {"123e4567-e89b-32d3-a456-426614174000", "123E4567E89B32D3A456426614174000"},
	"uuid4":        {"123e4567-e89b-42d3-a456-426614174000", "123E4567E89B42D3A456426614174000"},
	"uuid5":        {"123e4567-e89b-52d3-a456-426614174000", "123E4567E89B52D3A456426614174000"},
	"isbn":         {"0321751043", "978-0321751041", "0-321-75104-3", "080442957X"},
	"isbn10":       {"0321751043", "0-321-75104-3", "080442957X"},
	"isbn13":       {"978-0321751041", "9780321751041"},
	"creditcard":   {"4111111111111111", "4111-1111-1111-1111", "4111 1111 1111 1111"},
	"ssn":          {"111-22-3333", "111 22 3333", "111223333"},
	"hexcolor":     {"#FFFFFF", "#fff", "abc", "ABCDEF"},
	"rgbcolor":     {"rgb(255,255,255)", "rgb( 0 , 0 , 0 )", "rgb(1, 2, 3)"},
	"k8sshortname": {"a", "a-b", "0"},
	"k8slongname":  {"a", "a.b-c.d", "0"},
}

// formatOf is the name of a format as the API server compares it; empty for one that it does not check, such as
// password.
func formatOf(v *structuralschema.ValueValidation) string {
	name := strings.ReplaceAll(v.Format, "-", "")
	if formats[name] == nil {
		return ""
	}
	return name
}

// awkward are texts that conversions lose: numbers with zeros before them, separators, what YAML reads as something
// else.
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
func (g *Generator) literalTexts() []string {
	var list []string
	for _, text := range g.texts {
		list = append(list, text, text+"a", strings.ToUpper(text))
	}
	return list
}

func (g *Generator) textsOf(v *structuralschema.ValueValidation) []any {
	var values []any
	pattern, err := regexp.Compile(v.Pattern)
	format := formatOf(v)
	add := func(text string) {
		isOfFormat := format == "" || strfmt.Default.Validates(format, text)
		if isOfFormat && (err != nil || pattern.MatchString(text)) && fits(v, text) && !slices.Contains(values, any(text)) {
			values = append(values, text)
		}
	}
	for _, text := range formats[format] {
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
	if format == "" {
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

func (g *Generator) text(s *structuralschema.Structural) any {
	v := s.ValueValidation
	if v == nil || v.Pattern == "" && formatOf(v) == "" {
		return g.textFrom()
	}
	if formatOf(v) == "byte" && v.Pattern == "" {
		made := make([]byte, g.random.IntN(8)+1)
		for i := range made {
			made[i] = byte(g.random.Uint32())
		}
		return base64.StdEncoding.EncodeToString(made)
	}
	if formatOf(v) == "" && g.random.IntN(2) == 0 {
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
func (g *Generator) matching(pattern string) (text string, ok bool) {
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
func (g *Generator) times(low, high int) int {
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

func (g *Generator) match(re *syntax.Regexp, b *strings.Builder, depth int) {
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
