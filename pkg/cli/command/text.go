package command

import "strings"

// Indent puts prefix before each line.
func Indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}

// OneLine keeps a hole that spans lines on one.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
