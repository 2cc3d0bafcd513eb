package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/docdiff"
	"github.com/corollary-dev/corollary/pkg/drift"
)

// printDiffs writes differences, a line each where they fit on one:
//
//	~ .spec.replicas: 1 -> 3
//	+ .metadata.labels['a.b/c']: x
//	- .spec.strategy:
//	    type: Recreate
//
// Texts of several lines are compared line by line.
func printDiffs(w io.Writer, p command.Painter, indentation string, list []docdiff.Field) {
	for _, d := range list {
		printDiff(w, p, indentation, d)
	}
}

func printDiff(w io.Writer, p command.Painter, indentation string, d docdiff.Field) {
	path := d.Shown()
	switch d.Op() {
	case "add":
		printValue(w, p, command.Green, indentation, "+ "+path, d.After)
	case "remove":
		printValue(w, p, command.Red, indentation, "- "+path, d.Before)
	default:
		before, b := d.Before.(string)
		after, a := d.After.(string)
		if a && b && strings.Contains(before+after, "\n") {
			fmt.Fprintln(w, indentation+p.Paint(command.Yellow, "~ "+path+":"))
			printLines(w, p, indentation+"    ", before, after)
			return
		}
		oldText, newText := flow(d.Before), flow(d.After)
		if before == drift.Masked && after == drift.Masked {
			newText = "(masked, changed)"
		}
		if len(oldText)+len(newText) <= lineWidth {
			fmt.Fprintf(w, "%s%s %s -> %s%s\n", indentation, p.Paint(command.Yellow, "~ "+path+":"),
				p.Paint(command.Red, oldText),
				p.Paint(command.Green, newText), writtenBy(p, d))
			return
		}
		printValue(w, p, command.Red, indentation, "- "+path, d.Before)
		printValue(w, p, command.Green, indentation, "+ "+path, d.After)
	}
}

// writtenBy names who is to thank for the value that goes.
func writtenBy(p command.Painter, d docdiff.Field) string {
	if d.Writer == "" {
		return ""
	}
	return p.Paint(command.Dim, " (last written by "+command.EscapeControl(d.Writer)+")")
}

// lineWidth is how long values may be to stand on the line of their path.
const lineWidth = 100

func printValue(w io.Writer, p command.Painter, color, indentation, head string, value any) {
	if text := flow(value); len(text) <= lineWidth && !strings.Contains(text, "\n") {
		fmt.Fprintln(w, indentation+p.Paint(color, head+": "+text))
		return
	}
	fmt.Fprintln(w, indentation+p.Paint(color, head+":"))
	block := fmt.Sprint(value)
	if _, text := value.(string); !text {
		if y, err := yaml.Marshal(value); err == nil {
			block = string(y)
		}
	}
	for line := range strings.Lines(strings.TrimRight(block, "\n") + "\n") {
		fmt.Fprintln(w, indentation+"    "+p.Paint(color, command.EscapeControl(strings.TrimSuffix(line, "\n"))))
	}
}

// printLines writes the lines in which two texts differ, with some around them.
func printLines(w io.Writer, p command.Painter, indentation, before, after string) {
	text := string(diff.Diff("before", []byte(before), "after", []byte(after)))
	_, hunks, _ := strings.Cut(text, "\n+++ after\n")
	for line := range strings.Lines(hunks) {
		line = strings.TrimSuffix(line, "\n")
		color := ""
		switch {
		case strings.HasPrefix(line, "+"):
			color = command.Green
		case strings.HasPrefix(line, "-"):
			color = command.Red
		case strings.HasPrefix(line, "@@"):
			color = command.Dim
		}
		fmt.Fprintln(w, indentation+p.Paint(color, command.EscapeControl(line)))
	}
}

// flow is a value on one line: a text as it is where that is plain, anything else as JSON.
func flow(v any) string {
	if s, ok := v.(string); ok && isPlain(s) {
		return s
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// isPlain reports whether a text needs no quotes: it looks like no other value, and has nothing that a
// terminal would obey.
func isPlain(s string) bool {
	if s == "" || s != strings.TrimSpace(s) || strings.ContainsFunc(s, command.IsControl) {
		return false
	}
	var other any
	if json.Unmarshal([]byte(s), &other) == nil { // a number, true, null …
		return false
	}
	return true
}
