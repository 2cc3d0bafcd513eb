package parsing

import (
	"strings"
	"text/template/parse"
)

// Position converts byte offsets in a template to lines and columns, and finds the actions there.
type Position struct {
	Delimiters
	text   string
	starts []int // offsets of the starts of lines
}

// NewPosition returns the Position of a text.
func NewPosition(text string, d Delimiters) *Position {
	p := &Position{Delimiters: d, text: text, starts: []int{0}}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	return p
}

// At returns the line and the column of an offset, from 1.
func (p *Position) At(pos parse.Pos) (line, column int) {
	offset := min(int(pos), len(p.text))
	lo, hi := 0, len(p.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.starts[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1, offset - p.starts[lo] + 1
}

// Action returns the source of the action whose pipeline begins at pos, with delimiters.
func (p *Position) Action(pos parse.Pos) string {
	start := strings.LastIndex(p.text[:pos], p.Left)
	if start < 0 {
		return ""
	}
	for i := int(pos); i < len(p.text); {
		rest := p.text[i:]
		if strings.HasPrefix(rest, p.Right) {
			return p.text[start : i+len(p.Right)]
		}
		i += tokenLength(rest)
	}
	return p.text[start:]
}

// ActionAt returns the source of the action at a line and column, on one line, or "" if they are unknown.
func (p *Position) ActionAt(line, column int) string {
	if line < 1 || column < 1 || line > len(p.starts) {
		return ""
	}
	return OneLine(p.Action(parse.Pos(min(p.starts[line-1]+column-1, len(p.text)))))
}

// OneLine returns an action with single spaces in place of all white space.
func OneLine(action string) string { return strings.Join(strings.Fields(action), " ") }

// tokenLength returns the length of the string or character constant at the start of s, or 1.
func tokenLength(s string) int {
	quote := s[0]
	if quote != '"' && quote != '\'' && quote != '`' {
		return 1
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quote != '`':
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}
