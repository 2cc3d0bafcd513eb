package simpleschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// marker is NAME=VALUE behind the type of a field.
type marker struct{ name, value string }

// markerRule is what a marker does to the schema of its field, and which types of OpenAPI it is for; none: any. The
// error says what is wrong with the value.
type markerRule struct {
	types  []string
	repeat bool
	apply  func(s schema, value string) error
}

var numeric, text, list = []string{"integer", "number"}, []string{"string"}, []string{"array"}

// markerRules are the markers of the notation.
var markerRules = map[string]markerRule{
	"required":    {apply: func(_ schema, v string) error { _, err := truth(v); return err }},
	"description": {apply: func(s schema, v string) error { s["description"] = v; return nil }},
	"default":     {apply: func(s schema, v string) (err error) { s["default"], err = valueOf(s, v); return err }},
	"enum":        {types: []string{"string", "integer"}, apply: enum},
	"minimum":     {types: numeric, apply: number("minimum")},
	"maximum":     {types: numeric, apply: number("maximum")},
	"minLength":   {types: text, apply: size("minLength")},
	"maxLength":   {types: text, apply: size("maxLength")},
	"pattern":     {types: text, apply: pattern},
	"minItems":    {types: list, apply: size("minItems")},
	"maxItems":    {types: list, apply: size("maxItems")},
	"uniqueItems": {types: list, apply: func(s schema, v string) error {
		unique, err := truth(v)
		if unique {
			return listType(s, "set")
		}
		return err
	}},
	"listType": {types: list, apply: listType},
	"listMapKey": {types: list, repeat: true, apply: func(s schema, v string) error {
		return appendTo(s, "x-kubernetes-list-map-keys", v)
	}},
	"immutable": {apply: func(s schema, v string) error {
		immutable, err := truth(v)
		if immutable {
			return appendTo(s, "x-kubernetes-validations", schema{"rule": immutableRule, "message": "the field is immutable"})
		}
		return err
	}},
	"validation": {repeat: true, apply: func(s schema, v string) error {
		if strings.TrimSpace(v) == "" {
			return fmt.Errorf("it is empty: write a CEL expression over self")
		}
		return appendTo(s, "x-kubernetes-validations", schema{"rule": v})
	}},
}

// mark applies markers to the schema of a field. It returns whether the field must be set: where no marker says, as its
// type says.
func (p *parser) mark(s schema, markers string, needed bool) bool {
	found, problem := split(markers)
	if problem != "" {
		p.fail(`write NAME=VALUE, separated by spaces, and text with spaces in double quotes`, "%s", problem)
		return needed
	}
	// The default is read by the type, and says nothing of the order in which the markers are written.
	used := map[string]bool{}
	for _, m := range found {
		rule, known := markerRules[m.name]
		switch {
		case !known:
			p.fail(fixForMarker(m.name), "there is no marker %q", clip(m.name))
			continue
		case used[m.name] && !rule.repeat:
			p.fail("remove one of them", "the marker %s is given twice", m.name)
			continue
		case len(rule.types) > 0 && !slices.Contains(rule.types, fmt.Sprint(s["type"])):
			p.fail("remove it, or change the type", "the marker %s is for %s, not for %s", m.name,
				strings.Join(rule.types, " and "), s["type"])
			continue
		}
		used[m.name] = true
		if err := rule.apply(s, m.value); err != nil {
			p.fail("", "%s=%s: %v", m.name, clip(m.value), err)
		}
		if m.name == "required" {
			needed = m.value == "true"
		}
	}
	p.checkList(s)
	p.checkBounds(s)
	return needed
}

// checkBounds reports bounds that no value can meet.
func (p *parser) checkBounds(s schema) {
	for _, bounds := range [][2]string{{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}} {
		least, hasLeast := s[bounds[0]]
		most, hasMost := s[bounds[1]]
		if hasLeast && hasMost && asFloat(least) > asFloat(most) {
			p.fail("exchange them, or remove one", "%s=%v is more than %s=%v: no value is allowed",
				bounds[0], least, bounds[1], most)
		}
	}
}

func asFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	f, _ := v.(float64)
	return f
}

func fixForMarker(name string) string {
	known := slices.Sorted(maps.Keys(markerRules))
	if near := spelling.Closest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "markers are " + strings.Join(known, ", ")
}

// split splits the text behind a type into markers. A value is one word, text in double quotes, or JSON in brackets or
// braces. problem says what cannot be split; then there are none.
func split(text string) (markers []marker, problem string) {
	rest := strings.TrimSpace(text)
	for rest != "" {
		if after, isBar := strings.CutPrefix(rest, "|"); isBar { // a bar is allowed between markers, too
			rest = strings.TrimSpace(after)
			continue
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r == '=' || unicode.IsSpace(r) })
		if end < 0 || rest[end] != '=' {
			word, _, _ := strings.Cut(rest, " ")
			return nil, fmt.Sprintf("the marker %q has no value", clip(word))
		}
		name := rest[:end]
		value, after, ok := word(rest[end+1:])
		if !ok {
			return nil, fmt.Sprintf("in the value of %s, a quote, bracket or brace is not closed", clip(name))
		}
		markers = append(markers, marker{name, value})
		rest = strings.TrimSpace(after)
	}
	return markers, ""
}

// word is the value at the beginning of a text, and what follows it.
func word(text string) (value, rest string, ok bool) {
	depth, quoted := 0, false
	for i, r := range text {
		switch {
		case quoted && r == '"' && !isEscaped(text[:i]):
			quoted = false
		case quoted:
		case r == '"':
			quoted = true
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			if depth--; depth < 0 {
				return "", "", false
			}
		case unicode.IsSpace(r) && depth == 0:
			return unquoted(text[:i]), text[i:], true
		}
	}
	return unquoted(text), "", !quoted && depth == 0
}

// isEscaped reports whether a text ends with an odd number of backslashes.
func isEscaped(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// unquoted is text without its quotes, with \" and \\ unescaped. A pattern keeps its other backslashes.
func unquoted(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[1 : len(text)-1])
}

func truth(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, fmt.Errorf("write true or false")
	}
	return value == "true", nil
}

// valueOf reads a value as the type of a schema.
func valueOf(s schema, text string) (any, error) {
	switch s["type"] {
	case "string":
		return text, nil
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("it is not an integer")
		}
		return n, nil
	case "number":
		n, err := decimal(text)
		return n, err
	case "boolean":
		return truth(text)
	}
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("it is not JSON: write such as []")
	}
	_, isList := value.([]any)
	_, isMap := value.(map[string]any)
	if wantsList := s["type"] == "array"; wantsList && !isList || !wantsList && !isMap {
		return nil, fmt.Errorf("it does not fit the type: write JSON of an %s", s["type"])
	}
	return value, nil
}

func decimal(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) || !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("it is not a number")
	}
	return n, nil
}

func number(key string) func(schema, string) error {
	return func(s schema, v string) (err error) { s[key], err = decimal(v); return err }
}

func size(key string) func(schema, string) error {
	return func(s schema, v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("write a number of 0 or more")
		}
		s[key] = n
		return nil
	}
}

func pattern(s schema, v string) error {
	if v == "" {
		return fmt.Errorf("it is empty: write a regular expression")
	}
	if _, err := regexp.Compile(v); err != nil {
		return fmt.Errorf("it is not a regular expression (%w)", err)
	}
	s["pattern"] = v
	return nil
}

func enum(s schema, v string) error {
	var values []any
	if strings.HasPrefix(v, "[") || strings.Contains(v, `"`) {
		return fmt.Errorf(`write the values separated by commas, without brackets and quotes in between: enum="A,B"`)
	}
	for _, item := range strings.Split(v, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			return fmt.Errorf("one of the values is empty: separate them by commas")
		}
		value, err := valueOf(s, item)
		if err != nil {
			return fmt.Errorf("%q: %w", clip(item), err)
		}
		if slices.Contains(values, value) {
			return fmt.Errorf("%q is given twice", clip(item))
		}
		values = append(values, value)
	}
	s["enum"] = values
	return nil
}

func listType(s schema, v string) error {
	const key = "x-kubernetes-list-type"
	if !slices.Contains([]string{"atomic", "set", "map"}, v) {
		return fmt.Errorf("write atomic, set or map")
	}
	if have, given := s[key]; given && have != v {
		return fmt.Errorf("another marker makes it a %s: uniqueItems=true is listType=set", have)
	}
	s[key] = v
	return nil
}

func appendTo(s schema, key string, value any) error {
	have, _ := s[key].([]any)
	s[key] = append(slices.Clip(have), value)
	return nil
}
