package skeleton

import (
	"regexp"
	"strconv"
	"strings"
)

// A placeholder replaces the output of a hole in the skeleton: open, kind, the number of the record, close. The two
// marks are private-use characters: for YAML they are letters, so a placeholder is always one word of a scalar. A
// template may not contain them.
const (
	openMark  = "\uE000"
	closeMark = "\uE001"
)

// Kinds of placeholders. The kind is part of the skeleton and thus of the cache's key, because it decides the shape of
// the tree.
const (
	// KindValue is a word of a scalar.
	KindValue = 'v'
	// KindLine is a word that continues the text of the record before it, on a separate line.
	KindLine = 'n'
	// KindScalar is a whole scalar, if toYaml would print entries or items for a map or list.
	KindScalar = 's'
	// KindMap is the key of an entry that is replaced by the entries of a map; a colon follows.
	KindMap = 'm'
	// KindList is an item that is replaced by the items of a list; "- " precedes.
	KindList = 'l'
	// KindOmitted is an entry, or an item, that is removed.
	KindOmitted = 'o'
)

// marksEscaped matches the marks as YAML escapes, which would become marks when the skeleton is parsed.
var marksEscaped = regexp.MustCompile(`\\u[eE]00[01]|\\U0000[eE]00[01]`)

// MarksWritten matches the marks in a template, escaped or not.
var MarksWritten = regexp.MustCompile(`[\x{E000}\x{E001}]|` + marksEscaped.String())

// AppendPlaceholder appends the placeholder of a record.
func AppendPlaceholder(b []byte, kind byte, record int) []byte {
	if kind == KindList {
		b = append(b, "- "...)
	}
	b = append(b, openMark...)
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(record), 10)
	b = append(b, closeMark...)
	if kind == KindMap || kind == KindOmitted {
		b = append(b, ':')
	}
	return b
}

// Part is a piece of a scalar: literal text followed by a hole, or by nothing (Record < 0).
type Part struct {
	Text   string
	Record int
	Kind   byte
	// Indent is the white space before the hole on its line: it is added to each line of a text from a layout function
	// (toYaml, toPrettyJson).
	Indent string
}

// SplitParts splits a scalar at its placeholders; it returns nil if there are none.
func SplitParts(s string) []Part {
	var parts []Part
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
		p := Part{Text: rest[:start], Record: record, Kind: body[0]}
		rest = rest[start+end+len(closeMark):]
		switch p.Kind {
		case KindMap, KindOmitted:
			rest = strings.TrimPrefix(rest, ":")
		case KindList:
			p.Text = strings.TrimSuffix(p.Text, "- ")
		}
		p.Indent = blankTail(p.Text)
		parts = append(parts, p)
	}
	if parts == nil {
		return nil
	}
	if rest != "" {
		parts = append(parts, Part{Text: rest, Record: -1})
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

// WholeHole reports whether parts are a single hole.
func WholeHole(parts []Part) bool {
	return len(parts) == 1 && parts[0].Text == "" && parts[0].Record >= 0
}
