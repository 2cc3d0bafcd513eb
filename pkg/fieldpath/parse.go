package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseError says why a text is not a path. Offset is the byte in Text where parsing stopped.
type ParseError struct {
	Text    string
	Offset  int
	Problem string
	Fix     string
}

// Error returns "path TEXT: at OFFSET: problem: how to fix it".
func (e *ParseError) Error() string {
	return fmt.Sprintf("path %q: at character %d: %s: %s", e.Text, e.Offset+1, e.Problem, e.Fix)
}

// Parse parses a path. The syntax:
//
//	.spec.replicas                     keys of letters, digits, _, $ and -, not beginning with a digit or -
//	.metadata.labels['a.b/c']          any other key, in single quotes; \' and \\ are ' and \, \u{9} is U+0009
//	.spec.containers[name=app].image   a list item, by the values of its keys, as in a map list
//	.spec.ports[containerPort=80,protocol=TCP]
//	.spec.ports[name='a, b']           a value with characters other than letters, digits and - _ $ . / : + is quoted
//	.spec.ports[0]                     a list item, by index
//
// The first key may be in brackets too (['a.b']). White space is not allowed outside quotes. The error is a
// *ParseError.
func Parse(s string) (Path, error) {
	p := &parser{text: s}
	if s == "" {
		return nil, p.fail("the path is empty", "write a path such as .spec.replicas")
	}
	var path Path
	for p.pos < len(s) {
		step, err := p.step()
		if err != nil {
			return nil, err
		}
		path = append(path, step)
	}
	return path, nil
}

// MustParse is Parse for texts that are known to be valid paths; it panics if one is not.
func MustParse(s string) Path {
	p, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return p
}

type parser struct {
	text string
	pos  int
}

func (p *parser) fail(problem, fix string) *ParseError {
	return &ParseError{Text: p.text, Offset: p.pos, Problem: problem, Fix: fix}
}

// peek returns the byte at the reading position, or 0 at the end. A NUL byte in the text ends the current token and is
// then reported as an unexpected character.
func (p *parser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) step() (Step, error) {
	switch {
	case p.take('.'):
		return p.dotted()
	case p.take('['):
		return p.bracketed()
	case p.pos == 0:
		return Step{}, p.fail("a path begins with a dot", "write ."+p.text)
	default:
		return Step{}, p.unexpected("a step begins with . or [", "quote a key that has other characters: ['a.b/c']")
	}
}

func (p *parser) dotted() (Step, error) {
	key := p.while(func(c byte, i int) bool { return isKeyByte(c, i == 0) })
	if key != "" {
		return Step{Kind: FieldStep, Field: key}, nil
	}
	if p.peek() == '[' {
		p.pos--
		return Step{}, p.fail("there is a dot before a bracket", "leave out the dot")
	}
	if p.pos == len(p.text) {
		return Step{}, p.fail("no key follows the dot", "name a key or leave out the dot")
	}
	return Step{}, p.unexpected("a key begins with a letter, _ or $", "quote other keys: ['a.b/c']")
}

func (p *parser) bracketed() (Step, error) {
	if c := p.peek(); c >= '0' && c <= '9' {
		return p.index()
	}
	if p.peek() != '\'' {
		return p.selector("", false)
	}
	key, err := p.quoted()
	if err != nil {
		return Step{}, err
	}
	if p.take(']') {
		return Step{Kind: FieldStep, Field: key}, nil
	}
	return p.selector(key, true)
}

func (p *parser) index() (Step, error) {
	start := p.pos
	digits := p.while(func(c byte, _ int) bool { return c >= '0' && c <= '9' })
	n, err := strconv.Atoi(digits)
	if err != nil || digits != strconv.Itoa(n) {
		p.pos = start
		return Step{}, p.fail("bad list index "+digits, "write a number from 0 without leading zeros")
	}
	if !p.take(']') {
		return Step{}, p.unexpected("a list index ends with ]", "quote a key that begins with a digit: ['1st']")
	}
	return Step{Kind: IndexStep, Index: n}, nil
}

// selector reads key=value pairs up to the closing bracket. If have is true, the first key has been read already.
func (p *parser) selector(key string, have bool) (Step, error) {
	sel := map[string]string{}
	for {
		if !have {
			var err error
			if key, err = p.word(isPlainKeyByte, "a key"); err != nil {
				return Step{}, err
			}
		}
		if !p.take('=') {
			return Step{}, p.unexpected("brackets hold 'key', key=value or a number", "write ['a.b/c'], [name=app] or [0]")
		}
		if _, twice := sel[key]; twice {
			return Step{}, p.fail("the selector names "+key+" twice", "name each key once")
		}
		value, err := p.word(func(c byte, _ int) bool { return isValueByte(c) }, "a value")
		if err != nil {
			return Step{}, err
		}
		sel[key] = value
		if p.take(']') {
			return Step{Kind: SelectorStep, Selector: sel}, nil
		}
		if !p.take(',') {
			return Step{}, p.unexpected("a pair ends with , or ]", "quote a value that has other characters: [name='a, b']")
		}
		have = false
	}
}

func isPlainKeyByte(c byte, i int) bool { return isKeyByte(c, i == 0) }

// word reads a bare or a quoted word. Only a quoted word can be empty.
func (p *parser) word(bare func(c byte, i int) bool, what string) (string, error) {
	if p.peek() == '\'' {
		return p.quoted()
	}
	if w := p.while(bare); w != "" {
		return w, nil
	}
	return "", p.unexpected("expected "+what, "quote it in single quotes if it has other characters")
}

func (p *parser) while(ok func(c byte, i int) bool) string {
	start := p.pos
	for p.pos < len(p.text) && ok(p.text[p.pos], p.pos-start) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *parser) quoted() (string, error) {
	start := p.pos
	p.pos++
	var b strings.Builder
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		p.pos++
		switch c {
		case '\'':
			return b.String(), nil
		case '\\':
			r, err := p.escaped()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
		}
	}
	p.pos = start
	return "", p.fail("the quote is not closed", "close it with '")
}

// escaped reads the rest of an escape sequence, after the backslash.
func (p *parser) escaped() (rune, error) {
	switch e := p.peek(); e {
	case '\'', '\\':
		p.pos++
		return rune(e), nil
	case 'u':
		digits, ok := strings.CutPrefix(p.text[p.pos:], "u{")
		digits, _, closed := strings.Cut(digits, "}")
		if n, err := strconv.ParseUint(digits, 16, 32); ok && closed && err == nil &&
			utf8.ValidRune(rune(n)) && len(digits) <= 6 {
			p.pos += len("u{}") + len(digits)
			return rune(n), nil
		}
		return 0, p.fail(`\u is not followed by the number of a character`, `write it in hexadecimal digits, such as \u{9}`)
	}
	return 0, p.fail(`a backslash is followed by something other than ', \ or u`, `write \\ for a backslash`)
}

// unexpected returns the error for the character at the reading position, where the grammar expects want.
func (p *parser) unexpected(want, fix string) *ParseError {
	if p.pos >= len(p.text) {
		return p.fail("the path ends too early, "+want, fix)
	}
	if p.peek() == '"' {
		return p.fail("double quotes are not used", "write single quotes: ['a.b/c']")
	}
	for _, r := range p.text[p.pos:] {
		return p.fail(fmt.Sprintf("unexpected %q, %s", r, want), fix)
	}
	return p.fail(want, fix)
}
