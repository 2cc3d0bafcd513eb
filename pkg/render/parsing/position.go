package parsing

import (
	"strings"
	"text/template/parse"
)

// Position converts byte offsets in a template to lines and columns.
type Position struct {
	Text   string
	Starts []int // offsets of the starts of lines
}

// NewPosition returns the Position of a text.
func NewPosition(text string) *Position {
	p := &Position{Text: text, Starts: []int{0}}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			p.Starts = append(p.Starts, i+1)
		}
	}
	return p
}

// At returns the line and the column of an offset, from 1.
func (p *Position) At(pos parse.Pos) (line, column int) {
	offset := min(int(pos), len(p.Text))
	lo, hi := 0, len(p.Starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; p.Starts[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo + 1, offset - p.Starts[lo] + 1
}

// Action returns the source of the action whose pipeline begins at pos, with delimiters.
func (p *Position) Action(pos parse.Pos, left, right string) string {
	start := strings.LastIndex(p.Text[:pos], left)
	if start < 0 {
		return ""
	}
	for i := int(pos); i < len(p.Text); {
		rest := p.Text[i:]
		if strings.HasPrefix(rest, right) {
			return p.Text[start : i+len(right)]
		}
		i += tokenLength(rest)
	}
	return p.Text[start:]
}

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
