package render

import (
	"regexp"
	"strconv"
	"strings"
)

// A placeholder replaces the output of a hole in the skeleton: open, kind, the number of the record, close. The two marks are
// private-use characters: for YAML they are letters, so a placeholder is always one word of a scalar. A template may not
// contain them.
const (
	openMark  = "\uE000"
	closeMark = "\uE001"
)

// Kinds of placeholders. The kind is part of the skeleton and thus of the cache's key, because it decides the shape of the
// tree.
const (
	kindValue   = 'v' // a word of a scalar
	kindLine    = 'n' // a word that continues the text of the record before it, on a separate line
	kindScalar  = 's' // a whole scalar, if toYaml would print entries or items for a map or list
	kindMap     = 'm' // the key of an entry that is replaced by the entries of a map; a colon follows
	kindList    = 'l' // an item that is replaced by the items of a list; "- " precedes
	kindOmitted = 'o' // an entry, or an item, that is removed
)

// marksEscaped matches the marks as YAML escapes, which would become marks when the skeleton is parsed.
var marksEscaped = regexp.MustCompile(`\\u[eE]00[01]|\\U0000[eE]00[01]`)

// marksWritten matches the marks in a template, escaped or not.
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
	// indent is the white space before the hole on its line: it is added to each line of a text from a layout function (toYaml,
	// toPrettyJson).
	indent string
}

// splitParts splits a scalar at its placeholders; it returns nil if there are none.
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

// blankTail returns the last line of s if it consists of spaces.
func blankTail(s string) string {
	line := s[strings.LastIndexByte(s, '\n')+1:]
	if strings.Trim(line, " ") != "" {
		return ""
	}
	return line
}

// wholeHole reports whether parts are a single hole.
func wholeHole(parts []part) bool {
	return len(parts) == 1 && parts[0].text == "" && parts[0].record >= 0
}
