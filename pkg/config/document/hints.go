package document

import (
	"fmt"
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config/tags"
)

// CEL and templates are full of characters that mean something to YAML. What follows recognizes the ways in
// which YAML breaks them, or silently reads something else, and says to quote them.

// misreadNode reports that YAML made something else of a text that was meant as CEL or as a template. problem is
// empty where it did not.
func misreadNode(n *yaml.Node, lines []string) (problem, fix string) {
	source := sourceAt(n, lines)
	switch {
	case n.Kind == yaml.ScalarNode && strings.HasPrefix(source, "!") && !strings.HasPrefix(source, "!!") &&
		!strings.HasPrefix(source, "!<"):
		text := Clip(strings.TrimRight(source, " \t\r"))
		return fmt.Sprintf("YAML reads the ! of %s as a tag", text), "quote the expression: " + QuoteYAML(text)
	case isBraces(n):
		text := source
		if i := strings.Index(text, "}}"); i >= 0 {
			text = text[:i+2]
		}
		return fmt.Sprintf("YAML reads %s as a map", Clip(text)), "quote the template: " + QuoteYAML(Clip(text))
	}
	return "", ""
}

// isBraces recognizes {{ … }}: a flow map whose only key is a flow map.
func isBraces(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 && len(n.Content) > 0 &&
		n.Content[0].Kind == yaml.MappingNode && n.Content[0].Style&yaml.FlowStyle != 0
}

// sourceAt returns the rest of the line where n begins.
func sourceAt(n *yaml.Node, lines []string) string {
	if n.Line < 1 || n.Line > len(lines) {
		return ""
	}
	r := []rune(lines[n.Line-1])
	if n.Column < 1 || n.Column > len(r) {
		return ""
	}
	return string(r[n.Column-1:])
}

// QuoteYAML writes text as a YAML scalar in the quotes that need the least escaping.
func QuoteYAML(s string) string {
	if !strings.Contains(s, `"`) && !strings.Contains(s, `\`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// keyAndText matches a line that gives a key its value.
var keyAndText = regexp.MustCompile(`^\s*(?:- +)*\{?\s*([A-Za-z]+|'[^']*'|"[^"]*"|\S+?):\s+(\S.*?)\s*$`)

// fixForSyntax says how to fix a line that the YAML parser could not read.
func fixForSyntax(line string) string {
	text := strings.TrimSpace(line)
	if entry := flowEntry(text); entry != "" {
		line = entry
	}
	switch m := keyAndText.FindStringSubmatch(line); {
	case strings.HasPrefix(line, "\t") || strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return "indent with spaces, YAML takes no tabs"
	case strings.HasPrefix(text, "{{") || strings.HasPrefix(text, "[["):
		return "indent a template's lines deeper than the key it belongs to"
	case m != nil && strings.Contains(m[2], "{{"):
		return fmt.Sprintf("quote the template: %s: %s", m[1], QuoteYAML(Clip(m[2])))
	case m != nil && strings.HasPrefix(m[2], "[]"):
		return fmt.Sprintf("quote the type: %s: %s", m[1], QuoteYAML(Clip(m[2])))
	case m != nil && tags.CEL[m[1]]:
		return fmt.Sprintf("quote the expression: %s: %s", m[1], QuoteYAML(Clip(m[2])))
	case strings.Contains(text, "{{"):
		return "quote the template"
	case m != nil && strings.Contains(m[2], ": ") && !strings.ContainsAny(m[2][:1], "'\"[{|>&*!%@`"):
		return fmt.Sprintf("quote the text: %s: %s", m[1], QuoteYAML(Clip(m[2])))
	default:
		return "check the indentation and quotes of this line and the one above"
	}
}

// flowEntry returns the first entry of a flow mapping on a line ("- {rule: a, message: b: c}") whose value holds a
// colon that YAML reads as another key: "message: b: c"; "" if there is none.
func flowEntry(text string) string {
	_, inside, isFlow := strings.Cut(text, "{")
	if !isFlow || strings.HasPrefix(inside, "{") || strings.ContainsAny(text[:len(text)-len(inside)-1], `"'`) {
		return ""
	}
	for _, entry := range splitFlow(inside) {
		m := keyAndText.FindStringSubmatch(entry)
		if m != nil && strings.Contains(m[2], ": ") && !strings.ContainsAny(m[2][:1], "'\"[{|>&*!%@`") {
			return m[1] + ": " + m[2]
		}
	}
	return ""
}

// splitFlow splits what is inside a flow mapping at its commas, up to its closing brace. Commas in quotes and in
// brackets do not count.
func splitFlow(inside string) []string {
	var entries []string
	depth, start, quote := 0, 0, byte(0)
	for i := 0; i < len(inside); i++ {
		switch c := inside[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.HasSuffix(strings.TrimRight(inside[:i], " "), ":"):
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case c == '}' && depth == 0:
			return append(entries, strings.TrimSpace(inside[start:i]))
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == ',' && depth == 0:
			entries, start = append(entries, strings.TrimSpace(inside[start:i])), i+1
		}
	}
	return append(entries, strings.TrimSpace(inside[start:]))
}

// CutByComment recognizes an expression whose rest YAML took for a comment: " #" ends a plain scalar even
// inside quotes that belong to CEL.
func CutByComment(n *yaml.Node) bool {
	if n == nil || n.Kind != yaml.ScalarNode || n.Style != 0 || n.LineComment == "" {
		return false
	}
	return strings.Count(n.Value, `"`)%2 == 1 || strings.Count(n.Value, "'")%2 == 1
}
