package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
)

// textOf returns a scalar as part of a text: numbers as in JSON (1500000, not 1.5e+06).
func (b *Budget) textOf(v any) (string, error) {
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
		return "", problemf("", "null cannot be used inside text")
	}
	if isStructure(v) {
		return "", problemf("write `| toJson`, or let the hole be the whole value",
			"%s cannot be used inside text", typeName(v))
	}
	c, err := b.copyValue(v)
	if err != nil {
		return "", err
	}
	return b.textOf(c)
}

func formatFloat(f float64) string {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// jsonStyle is one of the three ways in which sprig prints JSON.
type jsonStyle int

const (
	jsonEscaped jsonStyle = iota // toJson: <, > and & are escaped
	jsonRaw                      // toRawJson
	jsonPretty                   // toPrettyJson
)

func (b *Budget) jsonText(v any, style jsonStyle) (string, error) {
	c, err := b.copyValue(v)
	if err != nil {
		return "", err
	}
	if err := b.jsonCost(c, 0, style == jsonPretty); err != nil {
		return "", err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(style != jsonRaw)
	if style == jsonPretty {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(c); err != nil {
		return "", fmt.Errorf("printing JSON: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// yamlText returns v as Helm's toYaml prints it, without the last line break.
func (b *Budget) yamlText(v any) (string, error) {
	c, err := b.copyValue(v)
	if err != nil {
		return "", err
	}
	if err := b.yamlCost(c, 0); err != nil {
		return "", err
	}
	out, err := yamlv2.Marshal(integral(c))
	if err != nil {
		return "", fmt.Errorf("printing YAML: %w", err)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
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

// indentText indents every line of s.
func indentText(n int, s string) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad)
}
