package sqltext

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Statement is one SQL statement. Values are never part of it: they are bound to its parameters.
type Statement struct {
	texts []string // before, between and after the parameters
	names []string // of the parameters, in their order
}

// Parse reads a statement with parameters such as $id. What is within text, a quoted name or a comment is not a
// parameter.
func Parse(text string) (*Statement, error) {
	p := &parser{rest: text}
	for p.rest != "" {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	p.texts = append(p.texts, p.text.String())
	return &p.Statement, nil
}

// Query returns a statement without parameters, and without the semicolons and comments that end it. It can be put in
// parentheses if they are on lines of their own.
func Query(text string) (string, error) {
	s, err := Parse(text)
	switch {
	case err != nil:
		return "", err
	case len(s.names) > 0:
		return "", fmt.Errorf("it has the parameter $%s, and there is no value for one", s.names[0])
	case s.Verb() == "":
		return "", errors.New("it is empty")
	}
	return s.texts[0], nil
}

// Names lists the parameters, each once, in the order of their first use.
func (s *Statement) Names() []string {
	var names []string
	for _, name := range s.names {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Verb is the first word, in capitals.
func (s *Statement) Verb() string {
	begin, _ := comments(s.texts[0]) // which have an end: they were read before
	if words := strings.Fields(s.texts[0][begin:]); len(words) > 0 {
		return strings.ToUpper(words[0])
	}
	return ""
}

// Numbered is the statement with the parameter Names()[i] as prefix and i+1, such as $1.
func (s *Statement) Numbered(prefix string) string {
	names := s.Names()
	var b strings.Builder
	for i, name := range s.names {
		fmt.Fprintf(&b, "%s%s%d", s.texts[i], prefix, slices.Index(names, name)+1)
	}
	return b.String() + s.texts[len(s.names)]
}

// Marked is the statement with a mark, such as ?, for each parameter: the one at i has the value of Names()[order[i]].
func (s *Statement) Marked(mark string) (text string, order []int) {
	names := s.Names()
	for _, name := range s.names {
		order = append(order, slices.Index(names, name))
	}
	return strings.Join(s.texts, mark), order
}

// parser reads a statement from its beginning.
type parser struct {
	Statement

	rest string
	text strings.Builder // since the last parameter
	// ended is true after the first semicolon: only comments and semicolons may follow.
	ended bool
}

// take moves n bytes to the text.
func (p *parser) take(n int) {
	p.text.WriteString(p.rest[:n])
	p.rest = p.rest[n:]
}

// next reads one token, or one byte of what does not matter.
func (p *parser) next() error {
	n, err := comments(p.rest)
	switch c := p.rest[min(n, len(p.rest)-1)]; {
	case err != nil:
		return err
	case n > 0 && p.ended:
		p.rest = p.rest[n:]
	case n > 0:
		p.take(n)
	case c == ';':
		p.ended, p.rest = true, p.rest[1:]
	case p.ended:
		return errors.New("it is more than one statement")
	case c == '\'' && p.endsWithEscapeMark():
		return p.escaped()
	case c == '\'', c == '"', c == '`':
		return p.until(1, string(c))
	case c == '$' && !p.endsWithName():
		return p.dollar()
	default:
		p.take(1)
	}
	return nil
}

// comments is the length of the comments and the space that a text begins with.
func comments(text string) (n int, err error) {
	for n < len(text) {
		switch rest := text[n:]; {
		case strings.ContainsRune(" \t\r\n\f\v", rune(rest[0])):
			n++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			n += end
		case strings.HasPrefix(rest, "/*"):
			inner, _, ends := strings.Cut(rest[2:], "*/")
			switch {
			case !ends:
				return n, noEnd(rest, "*/")
			case strings.Contains(inner, "/*"): // databases do not agree on where it ends
				return n, errors.New("a comment is within a comment")
			}
			n += len("/*") + len(inner) + len("*/")
		default:
			return n, nil
		}
	}
	return n, nil
}

func noEnd(text, end string) error { return fmt.Errorf("%s has no end %s", clip(text), end) }

// until takes everything to the end of what begins with n bytes.
func (p *parser) until(n int, end string) error {
	i := strings.Index(p.rest[n:], end)
	if i < 0 {
		return noEnd(p.rest, end)
	}
	p.take(n + i + len(end))
	return nil
}

// escaped takes text in which \ escapes the next byte.
func (p *parser) escaped() error {
	for i := 1; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '\'':
			p.take(i + 1)
			return nil
		}
	}
	return noEnd(p.rest, "'")
}

// dollar reads a parameter, or text such as $$text$$ and $tag$text$tag$.
func (p *parser) dollar() error {
	name := p.rest[1:]
	if end := strings.IndexFunc(name, func(r rune) bool { return r > 0x7f || !isNameByte(byte(r)) }); end >= 0 {
		name = name[:end]
	}
	switch mark := "$" + name + "$"; {
	case strings.HasPrefix(p.rest, mark):
		return p.until(len(mark), mark)
	case name == "" || '0' <= name[0] && name[0] <= '9':
		return fmt.Errorf("%s is not a parameter: parameters have names, such as $id", clip("$"+name))
	}
	p.texts, p.names = append(p.texts, p.text.String()), append(p.names, name)
	p.text.Reset()
	p.rest = p.rest[1+len(name):]
	return nil
}

// endsWithName reports whether the text ends within a name, of which $ may be a part.
func (p *parser) endsWithName() bool {
	text := p.text.String()
	return text != "" && (isNameByte(text[len(text)-1]) || text[len(text)-1] > 0x7f)
}

// endsWithEscapeMark reports whether the text ends with the E of E'text'.
func (p *parser) endsWithEscapeMark() bool {
	text := p.text.String()
	n := len(text)
	return n > 0 && (text[n-1] == 'e' || text[n-1] == 'E') && (n == 1 || !isNameByte(text[n-2]))
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

func clip(text string) string {
	const most = 20
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
