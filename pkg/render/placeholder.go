package render

import (
	"regexp"
	"strconv"
	"strings"
)

// A placeholder stands in the skeleton where a hole printed: open, kind, the number of the record, close. The two
// marks are private-use characters: YAML treats them as ordinary letters, so a placeholder is always one word of
// a scalar, whatever surrounds it. The author's text may not contain them.
const (
	openMark  = "\uE000"
	closeMark = "\uE001"
)

// Placeholder kinds. The kind is part of the skeleton, hence of the cache's key, because it decides the tree's shape.
const (
	kindValue   = 'v' // a word of a scalar
	kindLine    = 'n' // a word that continues the text of the record before it, on a line of its own
	kindScalar  = 's' // a whole scalar, where toYaml would print entries or items for a map or list
	kindMap     = 'm' // the key of an entry that stands for a map's entries; a colon follows
	kindList    = 'l' // an item that stands for a list's items; "- " precedes
	kindOmitted = 'o' // an entry, or an item, that stands for nothing
)

// marksEscaped finds the marks as YAML escapes, which would become marks when the skeleton is parsed.
var marksEscaped = regexp.MustCompile(`\\u[eE]00[01]|\\U0000[eE]00[01]`)

// marksWritten finds the marks in an author's text, escaped or not.
var marksWritten = regexp.MustCompile(`[\x{E000}\x{E001}]|` + marksEscaped.String())

func appendPlaceholder(b []byte, kind byte, record int) []byte {
	if kind == kindList {
		b = append(b, "- "...)
	}
	b = append(b, openMark...)
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(record), 10)
	b = append(b, closeMark...)
	if kind == kindMap || kind == kindOmitted {
		b = append(b, ':')
	}
	return b
}

// part is a piece of a scalar: literal text followed by a hole, or by nothing (record < 0).
type part struct {
	text   string
	record int
	kind   byte
	// indent is the blank text that precedes the hole on its line: text of several lines that a function laid out
	// (toYaml, toPrettyJson) is shifted by it.
	indent string
}

// splitParts cuts a scalar at its placeholders; nil when it has none.
func splitParts(s string) []part {
	var parts []part
	rest := s
	for {
		start := strings.Index(rest, openMark)
		if start < 0 {
			break
		}
		end := strings.Index(rest[start:], closeMark)
		if end < 0 {
			break
		}
		body := rest[start+len(openMark) : start+end]
		record, err := strconv.Atoi(body[1:])
		if err != nil {
			break
		}
		p := part{text: rest[:start], record: record, kind: body[0]}
		rest = rest[start+end+len(closeMark):]
		switch p.kind {
		case kindMap, kindOmitted:
			rest = strings.TrimPrefix(rest, ":")
		case kindList:
			p.text = strings.TrimSuffix(p.text, "- ")
		}
		p.indent = blankTail(p.text)
		parts = append(parts, p)
	}
	if parts == nil {
		return nil
	}
	if rest != "" {
		parts = append(parts, part{text: rest, record: -1})
	}
	return parts
}

// blankTail gives the last line of s when it is nothing but spaces.
func blankTail(s string) string {
	line := s[strings.LastIndexByte(s, '\n')+1:]
	if strings.Trim(line, " ") != "" {
		return ""
	}
	return line
}

// wholeHole reports whether parts are one hole and nothing else.
func wholeHole(parts []part) bool {
	return len(parts) == 1 && parts[0].text == "" && parts[0].record >= 0
}
