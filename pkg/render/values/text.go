package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
)

// Text returns a scalar as part of a text: numbers as in JSON (1500000, not 1.5e+06).
func Text(b *Budget, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return formatFloat(v), checkFloat(v)
	case nil:
		return "", Problemf("", "null cannot be used inside text")
	}
	if IsStructure(v) {
		return "", Problemf("write `| toJson`, or let the hole be the whole value",
			"%s cannot be used inside text", TypeName(v))
	}
	c, err := Copy(b, v)
	if err != nil {
		return "", err
	}
	return Text(b, c)
}

func formatFloat(f float64) string {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// JSONStyle is one of the three ways in which sprig prints JSON.
type JSONStyle int

const (
	// JSONEscaped is toJson: <, > and & are escaped.
	JSONEscaped JSONStyle = iota
	// JSONRaw is toRawJson.
	JSONRaw
	// JSONPretty is toPrettyJson.
	JSONPretty
)

// JSON returns v as JSON.
func JSON(b *Budget, v any, style JSONStyle) (string, error) {
	c, err := Copy(b, v)
	if err != nil {
		return "", err
	}
	if err := b.print(c, 0, form{value: 100}); err != nil {
		return "", err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(style != JSONRaw)
	if style == JSONPretty {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(c); err != nil {
		return "", fmt.Errorf("printing JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// YAML returns v as Helm's toYaml prints it, without the last line break.
func YAML(b *Budget, v any) (string, error) {
	c, err := Copy(b, v)
	if err != nil {
		return "", err
	}
	if err := b.print(c, 0, form{value: 800, hasLines: true}); err != nil {
		return "", err
	}
	out, err := yamlv2.Marshal(integral(c))
	if err != nil {
		return "", fmt.Errorf("printing YAML: %w", err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Quoted returns strconv.Quote(s).
func Quoted(b *Budget, s string) (string, error) {
	if err := b.Text(Times(2, escaped(s))); err != nil {
		return "", err
	}
	return strconv.Quote(s), nil
}

// BufferFactor is the memory for a byte in a buffer that grows by copying.
const BufferFactor = 5

// form is a text form: the bytes that its library needs for a value, and whether each line of a text is a line of the
// result, where YAML folds long ones at spaces.
type form struct {
	value    int
	hasLines bool
}

// print takes the bytes and steps for printing v, a copy. The libraries print a value as a whole, and a shared one each
// time.
func (b *Budget) print(v any, depth int, in form) error {
	indent := 2*depth + 4
	n := indent
	switch v := v.(type) {
	case string:
		n = Plus(n, escaped(v))
		if in.hasLines {
			n = Plus(n, Times(strings.Count(v, "\n")+len(v)/40, indent))
		}
	case map[string]any:
		for key, value := range v {
			if err := b.print(key, depth, in); err != nil {
				return err
			}
			if err := b.print(value, depth+1, in); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := b.print(item, depth+1, in); err != nil {
				return err
			}
		}
	}
	if err := b.Work(in.value >> 8); err != nil {
		return err
	}
	return b.Text(Plus(in.value, Times(BufferFactor, n)))
}

// escaped returns the most bytes of a text as a string of JSON, YAML or Go.
func escaped(s string) int {
	if !utf8.ValidString(s) {
		return 2 + Times(6, len(s))
	}
	n := 2 + len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' && c != '\n', c == '"', c == '\\', c == '<', c == '>', c == '&', c == 0x7f:
			n += 5
		case c >= utf8.RuneSelf:
			n += 2
		}
	}
	return n
}

// integral converts floats without a fraction to integers, in place: YAML would print 1e+06 for 1000000.
func integral(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = integral(value)
		}
	case []any:
		for i, value := range v {
			v[i] = integral(value)
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v)
		}
	}
	return v
}

// Indent indents every line of s.
func Indent(n int, s string) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}
