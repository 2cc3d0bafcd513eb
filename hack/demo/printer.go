package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// printer prints the text of the demo, in colors on a terminal only.
type printer struct {
	out      io.Writer
	terminal bool
	colors   bool
}

func newPrinter(file *os.File) *printer {
	terminal := term.IsTerminal(int(file.Fd()))
	return &printer{out: file, terminal: terminal, colors: terminal && os.Getenv("NO_COLOR") == ""}
}

const (
	bold  = "1"
	faint = "2"
	green = "32"
	blue  = "36"
)

// paint wraps a text in a color.
func (t *printer) paint(color, text string) string {
	if !t.colors {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (t *printer) title(number int, text string) {
	fmt.Fprintf(t.out, "\n%s\n\n", t.paint(bold, fmt.Sprintf("%d. %s", number, text)))
}

// say prints a paragraph.
func (t *printer) say(format string, args ...any) {
	fmt.Fprintf(t.out, format+"\n", args...)
}

// done prints something that was checked.
func (t *printer) done(format string, args ...any) {
	fmt.Fprintf(t.out, "%s %s\n", t.paint(green, "✓"), fmt.Sprintf(format, args...))
}

// block prints an indented text.
func (t *printer) block(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if line = strings.TrimRight(line, "\n"); line != "" {
			line = "    " + t.paint(blue, line)
		}
		fmt.Fprintln(t.out, line)
	}
	fmt.Fprintln(t.out)
}

// note prints an aside.
func (t *printer) note(format string, args ...any) {
	fmt.Fprintln(t.out, t.paint(faint, "  ("+fmt.Sprintf(format, args...)+")"))
}

// formatDuration formats a duration.
func formatDuration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
