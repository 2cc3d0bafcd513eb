// Package fieldpath names places inside a Kubernetes object as text and reads, sets and removes what stands
// there. Keys of Kubernetes objects contain dots and slashes, so a path is never split at dots: it has the one
// syntax described at Parse, used alike by config files, the command line, messages and events.
//
// It is not JSONPath: no wildcards, no recursion, no expressions. A path names exactly one place.
package fieldpath

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StepKind tells which of a Step's members counts.
type StepKind int

const (
	// FieldStep enters the map at key Step.Field.
	FieldStep StepKind = iota
	// SelectorStep enters the list's first item whose keys have the values in Step.Selector.
	SelectorStep
	// IndexStep enters the list's item number Step.Index, counted from 0.
	IndexStep
)

// Step is one step of a path: .spec or ['a.b/c'] | [name=app] or [containerPort=80,protocol=TCP] | [0].
// The members that Kind does not name are zero.
type Step struct {
	Field    string
	Selector map[string]string
	Index    int
	Kind     StepKind
}

// Path is a sequence of steps from an object's root. The empty path is the root itself; it has no text that
// Parse accepts, for nothing that a config names is a whole object.
type Path []Step

// New returns the path of nested fields: New("metadata", "name") is .metadata.name.
func New(fields ...string) Path {
	p := make(Path, 0, len(fields))
	for _, f := range fields {
		p = append(p, Step{Kind: FieldStep, Field: f})
	}
	return p
}

// Child returns p with one more field. p is not changed and shares no memory with the result's own steps.
func (p Path) Child(field string) Path {
	return append(slices.Clip(slices.Clone(p)), Step{Kind: FieldStep, Field: field})
}

// Equal reports whether both steps are written the same way. A selector's order does not count.
func (s Step) Equal(o Step) bool {
	if s.Kind != o.Kind {
		return false
	}
	switch s.Kind {
	case SelectorStep:
		return maps.Equal(s.Selector, o.Selector)
	case IndexStep:
		return s.Index == o.Index
	default:
		return s.Field == o.Field
	}
}

// Equal reports whether both paths have the same steps.
func (p Path) Equal(q Path) bool { return len(p) == len(q) && p.HasPrefix(q) }

// HasPrefix reports whether p is q or lies below it. It compares steps as they are written: [0] and [name=app]
// may name one item of a list, but only an object could tell.
func (p Path) HasPrefix(q Path) bool {
	return len(p) >= len(q) && slices.EqualFunc(p[:len(q)], q, Step.Equal)
}

// Overlaps reports whether one path is a prefix of the other, so that writing one changes what the other reads.
func (p Path) Overlaps(q Path) bool { return p.HasPrefix(q) || q.HasPrefix(p) }

// String returns the canonical text: plain keys after a dot, others quoted in brackets, a selector's keys
// sorted. Parse(p.String()) equals p for every non-empty p. The empty path is ".".
func (p Path) String() string {
	if len(p) == 0 {
		return "."
	}
	var b strings.Builder
	for _, s := range p {
		s.write(&b)
	}
	return b.String()
}

// String returns the step's canonical text.
func (s Step) String() string { return Path{s}.String() }

func (s Step) write(b *strings.Builder) {
	switch s.Kind {
	case IndexStep:
		b.WriteString("[" + strconv.Itoa(s.Index) + "]")
	case SelectorStep:
		b.WriteByte('[')
		for i, k := range slices.Sorted(maps.Keys(s.Selector)) {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(bareOr(k, isPlainKey) + "=" + bareOr(s.Selector[k], isBareValue))
		}
		b.WriteByte(']')
	default:
		if isPlainKey(s.Field) {
			b.WriteString("." + s.Field)
			return
		}
		b.WriteString("[" + quote(s.Field) + "]")
	}
}

func bareOr(s string, bare func(string) bool) string {
	if bare(s) {
		return s
	}
	return quote(s)
}

// quote escapes what does not print too: a terminal would obey a control character in a key that somebody else has chosen.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			b.WriteByte(s[i]) // not UTF-8
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}

// isPlainKey reports whether a key can follow a dot, or stand in a selector, without quotes.
func isPlainKey(s string) bool {
	for i := range len(s) {
		if !isKeyByte(s[i], i == 0) {
			return false
		}
	}
	return s != ""
}

func isKeyByte(c byte, first bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$':
		return true
	default:
		return !first && (c >= '0' && c <= '9' || c == '-')
	}
}

// isBareValue reports whether a selector's value needs no quotes.
func isBareValue(s string) bool {
	for i := range len(s) {
		if !isValueByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isValueByte(c byte) bool {
	return isKeyByte(c, false) || c == '.' || c == '/' || c == ':' || c == '+'
}
