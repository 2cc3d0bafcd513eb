package render

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The encoders have several buffers that grow by copying.
const (
	encodedFactor = 5
	// yamlValueBytes is the memory that the YAML library needs for a value besides its text.
	yamlValueBytes = 800
)

// jsonCost takes the cost of encoding v as JSON. v is a copy, so its nesting is limited.
func (b *Budget) jsonCost(v any, depth int, pretty bool) error {
	line := 2
	if pretty {
		line += 1 + 2*depth
	}
	switch v := v.(type) {
	case string:
		line += escapedSize(v)
	case map[string]any:
		for key, value := range v {
			if err := b.textCost(times(encodedFactor, 32+escapedSize(key))); err != nil {
				return err
			}
			if err := b.jsonCost(value, depth+1, pretty); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := b.jsonCost(item, depth+1, pretty); err != nil {
				return err
			}
		}
	default:
		line += 24
	}
	return b.textCost(times(encodedFactor, line))
}

// escapedSize returns an upper bound of the length of a text as a JSON string.
func escapedSize(s string) int {
	if !utf8.ValidString(s) {
		return 2 + times(6, len(s))
	}
	n := 2 + len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '"', c == '\\', c == '<', c == '>', c == '&', c == 0x7f:
			n += 5
		case c >= utf8.RuneSelf:
			n++
		}
	}
	return n
}

// yamlCost takes the cost of encoding v as YAML. Every line of a text is indented.
func (b *Budget) yamlCost(v any, depth int) error {
	indent := 2*depth + 4
	n := indent + 24
	switch v := v.(type) {
	case string:
		n = yamlText(v, indent)
	case map[string]any:
		for key, value := range v {
			if err := b.yamlCost(key, depth); err != nil {
				return err
			}
			if err := b.yamlCost(value, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := b.yamlCost(item, depth+1); err != nil {
				return err
			}
		}
	}
	if err := b.work(3); err != nil {
		return err
	}
	return b.textCost(plus(yamlValueBytes, times(encodedFactor, n)))
}

// yamlText returns an upper bound of the length of a text as YAML, which escapes some characters.
func yamlText(s string, indent int) int {
	n := len(s)
	if utf8.ValidString(s) {
		for i := range len(s) {
			if c := s[i]; c < ' ' && c != '\n' || c == '"' || c == '\\' || c >= 0x7f {
				n += 3
			}
		}
	} else {
		n = times(4, n)
	}
	// Long texts are folded at spaces, about every 80 columns.
	return plus(n, times(1+strings.Count(s, "\n")+len(s)/40, indent))
}

// quoted returns strconv.Quote(s), and takes its cost.
func (b *Budget) quoted(s string) (string, error) {
	n := len(s) + 2
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f || c >= utf8.RuneSelf {
			n += 6
		}
	}
	if err := b.textCost(times(2, n)); err != nil {
		return "", err
	}
	return strconv.Quote(s), nil
}
