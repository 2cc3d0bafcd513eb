package yamltext

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	yaml "go.yaml.in/yaml/v3"
)

// Resolve returns what kubectl reads for a scalar: nil, bool, int, int64, uint64, float64 or string. YAML 1.1 and 1.2
// read on, 0o14 or 2026-11-20 differently, and so do the parsers. It returns an error if the value does not fit its
// tag.
func Resolve(n *yaml.Node) (any, error) {
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		return taggedScalar(n.ShortTag(), n.Value)
	case n.Style&^yaml.FlowStyle == 0:
		return plainScalar(n.Value), nil
	}
	return n.Value, nil
}

// JSON converts a resolved scalar to the types of JSON, as kubectl does: 1e3 becomes the integer 1000. It returns an
// error for a number that JSON cannot represent, such as .nan.
func JSON(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("the number %v cannot be used in a document", v)
		}
		if i, err := strconv.ParseInt(strconv.FormatFloat(v, 'f', -1, 64), 10, 64); err == nil {
			return i, nil
		}
	case string:
		return string([]rune(v)), nil
	}
	return v, nil
}

// KeyText returns a resolved scalar as the key of a map, as kubectl writes it: `1: a` has the key "1". It returns false
// if the value cannot be a key.
func KeyText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return string([]rune(v)), true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		// kubectl's library uses 32 bits here, so that 1e40 is infinite.
		switch text := strconv.FormatFloat(v, 'g', -1, 32); text {
		case "NaN":
			return ".nan", true
		case "+Inf":
			return ".inf", true
		case "-Inf":
			return "-.inf", true
		default:
			return text, true
		}
	}
	return "", false
}

// plainWords are the plain scalars that are not strings in YAML 1.1, as kubectl reads it: `on` is a boolean.
var plainWords = func() map[string]any {
	words := map[string]any{}
	add := func(value any, list ...string) {
		for _, w := range list {
			words[w] = value
		}
	}
	add(true, "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
	add(false, "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
	add(nil, "", "~", "null", "Null", "NULL")
	add(math.NaN(), ".nan", ".NaN", ".NAN")
	add(math.Inf(1), ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")
	add(math.Inf(-1), "-.inf", "-.Inf", "-.INF")
	return words
}()

var floatScalar = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// plainScalar resolves a plain scalar exactly as kubectl does (YAML 1.1 as in sigs.k8s.io/yaml).
func plainScalar(s string) any {
	if value, ok := plainWords[s]; ok {
		return value
	}
	switch c := s[0]; {
	case c == '.':
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	case c == '+' || c == '-' || c >= '0' && c <= '9':
		return plainNumber(s)
	}
	return s
}

// plainNumber resolves a scalar that begins like a number. A date is a string.
func plainNumber(s string) any {
	digits := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return u
	}
	if floatScalar.MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	return s
}

// taggedScalar resolves a scalar with an explicit tag, with the library that kubectl uses. Such scalars are rare.
func taggedScalar(tag, s string) (any, error) {
	if !strings.HasPrefix(tag, "!!") {
		return s, nil
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var out any
	if err := yamlv2.Unmarshal([]byte(tag+" "+string(quoted)), &out); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", tag, quoted, err)
	}
	return out, nil
}
