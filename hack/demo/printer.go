package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// teller prints the text of the demo, in colors on a terminal only.
type teller struct {
	out      io.Writer
	terminal bool
	colors   bool
}

func newTeller(file *os.File) *teller {
	terminal := term.IsTerminal(int(file.Fd()))
	return &teller{out: file, terminal: terminal, colors: terminal && os.Getenv("NO_COLOR") == ""}
}

const (
	bold  = "1"
	faint = "2"
	green = "32"
	blue  = "36"
)

// paint wraps a text in a color.
func (t *teller) paint(color, text string) string {
	if !t.colors {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (t *teller) title(number int, text string) {
	fmt.Fprintf(t.out, "\n%s\n\n", t.paint(bold, fmt.Sprintf("%d. %s", number, text)))
}

// say prints a paragraph.
func (t *teller) say(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

// done prints something that was checked.
func (t *teller) done(format string, args ...any) {
	fmt.Fprintf(t.out, "%s %s\n", t.paint(green, "✓"), fmt.Sprintf(format, args...))
}

// block prints an indented text.
func (t *teller) block(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if line = strings.TrimRight(line, "\n"); line != "" {
			line = "    " + t.paint(blue, line)
		}
		fmt.Fprintln(t.out, line)
	}
	fmt.Fprintln(t.out)
}

// note prints an aside.
func (t *teller) note(format string, args ...any) {
	fmt.Fprintln(t.out, t.paint(faint, "  ("+fmt.Sprintf(format, args...)+")"))
}

// took formats a duration.
func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
