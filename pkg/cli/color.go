package cli

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// painter colors text for a terminal; the zero painter leaves it as it is.
type painter struct{ on bool }

// The colors that a painter has.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	plain  = "\x1b[0m"
)

func (p painter) paint(color, text string) string {
	if !p.on || color == "" || text == "" {
		return text
	}
	return color + text + plain
}

// colorFlag is --color: never, always, or auto, which is where the output is a terminal and NO_COLOR is empty.
type colorFlag struct{ choice }

func (c *colorFlag) bind(cmd *cobra.Command) {
	c.words = []string{"auto", "always", "never"}
	bindChoice(cmd, &c.choice, "color", "", "Colors: auto (at a terminal, unless NO_COLOR is set), always or never")
}

func (c *colorFlag) painter(streams IO) painter {
	switch c.value {
	case "always":
		return painter{on: true}
	case "never":
		return painter{}
	}
	noColor := slices.ContainsFunc(streams.Env, func(e string) bool { return strings.HasPrefix(e, "NO_COLOR=") && e != "NO_COLOR=" })
	return painter{on: atTerminal(streams.Out) && !noColor}
}

func atTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// escapeControl spells out what a terminal would obey.
func escapeControl(line string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, line)
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }
