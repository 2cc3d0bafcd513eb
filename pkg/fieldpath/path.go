// Package fieldpath parses paths of fields in Kubernetes objects, and gets, sets and removes the values at them. Keys
// of Kubernetes objects contain dots and slashes, so a path is never split at dots. Config files, the command line,
// messages and events share the syntax described at Parse. It is not JSONPath: it has no wildcards, recursion or
// expressions, and a path names exactly one place.
package fieldpath

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StepKind says which field of a Step is set.
type StepKind int

const (
	// FieldStep enters a map at the key Step.Field.
	FieldStep StepKind = iota
	// SelectorStep enters the first list item whose keys have the values in Step.Selector.
	SelectorStep
	// IndexStep enters the list item at Step.Index, counted from 0.
	IndexStep
)

// Step is one step of a path: .spec or ['a.b/c'] | [name=app] or [containerPort=80,protocol=TCP] | [0]. The fields that
// Kind does not use are zero.
type Step struct {
	Field    string
	Selector map[string]string
	Index    int
	Kind     StepKind
}

// Path is a sequence of steps from the root of an object. The empty path is the root itself; Parse accepts no text for
// it, because a config never names a whole object.
type Path []Step

// New returns the path of nested fields: New("metadata", "name") is .metadata.name.
func New(fields ...string) Path {
	p := make(Path, 0, len(fields))
	for _, f := range fields {
		p = append(p, Step{Kind: FieldStep, Field: f})
	}
	return p
}

// Child returns p with one more field. It does not change p, and the result shares no memory with it.
func (p Path) Child(field string) Path {
	return append(slices.Clip(slices.Clone(p)), Step{Kind: FieldStep, Field: field})
}

// Equal reports whether both steps are written the same way, apart from the order of a selector's keys.
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

// HasPrefix reports whether p is q or is below it. It compares the written steps: [0] and [name=app] may be the same
// list item, but that depends on the object.
func (p Path) HasPrefix(q Path) bool {
	return len(p) >= len(q) && slices.EqualFunc(p[:len(q)], q, Step.Equal)
}

// Overlaps reports whether one path is a prefix of the other, so that writing one changes what the other reads.
func (p Path) Overlaps(q Path) bool { return p.HasPrefix(q) || q.HasPrefix(p) }

// Compare orders paths step by step: a path comes before those below it.
func Compare(a, b Path) int {
	for i := range min(len(a), len(b)) {
		if c := compareSteps(a[i], b[i]); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

func compareSteps(a, b Step) int {
	if c := cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Index, b.Index)); c != 0 {
		return c
	}
	if maps.Equal(a.Selector, b.Selector) {
		return 0
	}
	return cmp.Compare(a.String(), b.String())
}

// String returns the canonical text: plain keys after a dot, other keys quoted in brackets, a selector's keys sorted.
// Parse(p.String()) equals p for every non-empty p. The empty path is ".".
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

// quote also escapes characters that are not printable: a terminal would execute a control character in a key that
// someone else chose.
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

// isPlainKey reports whether a key needs no quotes after a dot or in a selector.
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
