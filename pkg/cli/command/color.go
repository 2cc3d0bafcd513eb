package command

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Painter colors text for a terminal; the zero painter leaves it as it is.
type Painter struct{ On bool }

// The colors that a painter has.
const (
	Red    = "\x1b[31m"
	Green  = "\x1b[32m"
	Yellow = "\x1b[33m"
	Bold   = "\x1b[1m"
	Dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

// Paint puts a text between the codes of a color, if there are colors.
func (p Painter) Paint(color, text string) string {
	if !p.On || color == "" || text == "" {
		return text
	}
	return color + text + plain
}

// Color is --color: never, always, or auto, which is where the output is a terminal and NO_COLOR is empty.
type Color struct{ Choice }

// Bind adds the flag --color.
func (c *Color) Bind(cmd *cobra.Command) {
	c.Words = []string{"auto", "always", "never"}
	BindChoice(cmd, &c.Choice, "color", "", "Colors: auto (at a terminal, unless NO_COLOR is set), always or never")
}

// Painter paints as the flag says, for the streams of the command.
func (c *Color) Painter(streams IO) Painter {
	switch c.Value {
	case "always":
		return Painter{On: true}
	case "never":
		return Painter{}
	}
	noColor := slices.ContainsFunc(streams.Env, func(e string) bool {
		return strings.HasPrefix(e, "NO_COLOR=") && e != "NO_COLOR="
	})
	return Painter{On: AtTerminal(streams.Out) && !noColor}
}

// AtTerminal reports whether a stream is a terminal.
func AtTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// EscapeControl spells out what a terminal would obey.
func EscapeControl(line string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, line)
}

// IsControl reports whether a terminal could take a character for a command.
func IsControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
