package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page is a Markdown document whose commands are run, as a reader would type them. HTML comments, which no reader
// sees, say what the text says in words; each is on a line of its own before the block that it is about:
//
//	<!-- file: app.yaml -->      the block is saved under that name
//	<!-- exit: 2 -->             the block ends with this exit code
//	<!-- background -->          the block is typed into another terminal, and goes on
//	<!-- stop -->                Ctrl-C in the other terminals (about no block)
//	<!-- not run: REASON -->     the block cannot be run here
//	<!-- also: NAME/x.yaml -->   the block is that file's too, word for word, from any line of it on
//
// A block of ```sh is run line by line as one script; a block of ```console has commands behind "$ ", and what they
// print, or, without a command, what the block before it printed. There, a line "..." means any lines and … for any
// text.
type page struct {
	// path is the file, relative to docs.
	path   string
	blocks []block
}

// block is the text between two fences.
type block struct {
	line           int // of the opening fence
	language, text string
	file           string // saved under this name
	exit           int
	background     bool
	stop           bool // before this block, what runs in the background is stopped
	notRun         string
	also           string
}

var (
	fence     = regexp.MustCompile("^( *)```([a-z]*)$")
	remark    = regexp.MustCompile(`^<!-- [A-Z].*\. -->$`) // a sentence, for whoever edits the page
	directive = regexp.MustCompile(`^<!-- ([a-z ]+?)(?:: (.*))? -->$`)
)

// parsePage finds the blocks of a page. It returns an error where a fence is not closed, or a comment is not a
// directive.
func parsePage(path, text string) (page, error) {
	p, next, open, indent := page{path: path}, block{}, false, ""
	for i, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open && match != nil && match[2] == "":
			p.blocks, next, open = append(p.blocks, next), block{}, false
		case open:
			next.text += strings.TrimPrefix(line, indent) + "\n"
		case match != nil:
			next.line, indent, next.language, open = i+1, match[1], match[2], true
		case remark.MatchString(line):
		case strings.HasPrefix(line, "<!--"):
			if err := next.direct(line); err != nil {
				return p, fmt.Errorf("%s:%d: %w", path, i+1, err)
			}
		case line != "" && next != (block{}) && next != (block{stop: true}):
			return p, fmt.Errorf("%s:%d: the comment before this line stands before no block", path, i+1)
		}
	}
	if open {
		return p, fmt.Errorf("%s:%d: the block is not closed", path, next.line)
	}
	return p, nil
}

// direct reads a comment before a block.
func (b *block) direct(line string) error {
	match := directive.FindStringSubmatch(line)
	if match == nil {
		return fmt.Errorf("%s: a comment has the form <!-- WORD: VALUE -->", line)
	}
	switch match[1] {
	case "file":
		b.file = match[2]
	case "exit":
		if _, err := fmt.Sscan(match[2], &b.exit); err != nil {
			return fmt.Errorf("%s: reading the exit code: %w", line, err)
		}
	case "background":
		b.background = true
	case "stop":
		b.stop = true
	case "not run":
		b.notRun = match[2]
	case "also":
		b.also = match[2]
	default:
		return fmt.Errorf("%s: the word is not known", line)
	}
	return nil
}

// runs reports whether the block has commands.
func (b block) runs() bool { return b.language == "sh" || b.language == "console" }

// pages parses every page that has commands.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	for _, pattern := range []string{"*.md", "*/*.md", "../examples/configs/*.md", "../examples/configs/*/README.md",
		"../examples/conversions/*/README.md", "../examples/sources/*/README.md",
		"../charts/*/README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			p, err := parsePage(filepath.ToSlash(name), read(t, name))
			if err != nil {
				t.Error(err)
			}
			if slices.ContainsFunc(p.blocks, block.runs) {
				all = append(all, p)
			}
		}
	}
	return all
}

// command is a command of a console, and what it prints.
type command struct{ input, output string }

// console splits the text of a console. The first command's input is "" where the text begins with output.
func console(text string) []command {
	var all []command
	continued := false
	for line := range strings.Lines(text) {
		input, ok := strings.CutPrefix(line, "$ ")
		switch {
		case ok:
			all = append(all, command{input: input})
		case continued:
			all[len(all)-1].input += line
			input = line
		case len(all) == 0:
			all = append(all, command{output: line})
		default:
			all[len(all)-1].output += line
		}
		continued = (ok || continued) && strings.HasSuffix(input, "\\\n")
	}
	return all
}

var blanks = regexp.MustCompile(`(\S)[ \t]+`)

// matches reports whether printed is what a page shows. Trailing blanks do not count, and neither does how many blanks
// there are between two words: columns of a table move with the ages in it.
func matches(shown, printed string) bool {
	var pattern strings.Builder
	for line := range strings.Lines(shown) {
		if strings.TrimSpace(line) == "..." {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(tidy(line)), "…", ".*?") + `\n`)
	}
	return regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(tidyAll(printed))
}

// asides are what client-go notes on standard error where it is used by a program without a log of its own, such as
// kubectl and helm: that a watch ended, say, when the program that had seen enough ended it in the middle of an event.
var asides = regexp.MustCompile(`(?m)^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] .*\n`)

// withoutAsides returns what a reader goes by of what a block printed. corollary is silent about such things, so that
// what it prints is left whole.
func withoutAsides(typed, printed string) string {
	if strings.Contains(typed, "corollary ") {
		return printed
	}
	return asides.ReplaceAllString(printed, "")
}

func tidyAll(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(tidy(line) + "\n")
	}
	return out.String()
}

func tidy(line string) string {
	return blanks.ReplaceAllString(strings.TrimRight(line, " \t\n"), "$1 ")
}

func TestWithoutAsides(t *testing.T) {
	const aside = `I1122 07:02:28.123408   22592 reflector.go:664] "Warning: watch ended with error" err="context canceled"` + "\n"
	for _, test := range []struct{ typed, printed, want, reason string }{
		{"kubectl wait pod/a\n", aside + "pod/a condition met\n", "pod/a condition met\n", "client-go's, in kubectl"},
		{"helm upgrade a .\n", "a\n" + aside + "b\n", "a\nb\n", "in the middle"},
		{"corollary get\n", aside, aside, "ours must not say such things"},
		{"kubectl get pod\n", "I1122 is a name\nW: a warning\n", "I1122 is a name\nW: a warning\n", "what the page is about stays"},
	} {
		if got := withoutAsides(test.typed, test.printed); got != test.want {
			t.Errorf("%s: of %q %q is left, want %q", test.reason, test.printed, got, test.want)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, test := range []struct {
		shown, printed string
		want           bool
		reason         string
	}{
		{"a b\n", "a     b  \n", true, "blanks between words"},
		{"  a\n", "a\n", false, "indentation means something"},
		{"a …\n", "a 12s\n", true, "any text"},
		{"a …c\n", "a 12\nc\n", false, "any text is of one line"},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true, "any lines"},
		{"...\n", "", true, "any lines are none, too"},
		{"a\n", "a\nb\n", false, "a line more"},
		{"a.c\n", "abc\n", false, "no pattern otherwise"},
	} {
		if got := matches(test.shown, test.printed); got != test.want {
			t.Errorf("%s: matches(%q, %q) is %t", test.reason, test.shown, test.printed, got)
		}
	}
}

func TestParsePage(t *testing.T) {
	p, err := parsePage("x.md", strings.Join([]string{
		"Save this as `a.yaml`:", "<!-- file: a.yaml -->", "```yaml", "a: 1", "```", "<!-- stop -->", "Then:", "",
		"<!-- exit: 2 -->", "```sh", "false", "```", "1. Or", "   ```console", "   $ a \\", "     b", "   c", "   $ d", "   ```", ""}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{line: 3, language: "yaml", text: "a: 1\n", file: "a.yaml"},
		{line: 10, language: "sh", text: "false\n", exit: 2, stop: true},
		{line: 14, language: "console", text: "$ a \\\n  b\nc\n$ d\n"},
	}
	if !slices.Equal(p.blocks, want) {
		t.Errorf("the blocks are %+v", p.blocks)
	}
	if got := console(p.blocks[2].text); !slices.Equal(got, []command{{"a \\\n  b\n", "c\n"}, {"d\n", ""}}) {
		t.Errorf("the commands are %q", got)
	}
	for text, reason := range map[string]string{
		"```sh\nls\n":                    "a block that is not closed",
		"<!-- exti: 1 -->\n```sh\n```\n": "a word that is not known",
		"<!-- exit: 1 -->\nText.\n":      "a comment before no block",
		"<!-- exit: one -->\n":           "an exit code that is no number",
		"<!--- exit: one -->\n":          "another form, and no sentence",
	} {
		if _, err := parsePage("x.md", text); err == nil {
			t.Errorf("%s: there is no error for %q", reason, text)
		}
	}
}

// TestPagesSayFileNames: comments are invisible to readers, so the text must say under which name to save a block.
func TestPagesSayFileNames(t *testing.T) {
	for _, p := range pages(t) {
		lines := strings.Split(read(t, p.path), "\n")
		for _, b := range p.blocks {
			before := strings.Join(lines[max(0, b.line-6):b.line-1], "\n")
			if b.file != "" && !strings.Contains(strings.ReplaceAll(before, "<!-- file: "+b.file+" -->", ""), "`"+b.file+"`") {
				t.Errorf("%s:%d: nothing above the block says that it is saved as %s", p.path, b.line, b.file)
			}
			if b.also == "" {
				continue
			}
			if text, err := os.ReadFile(filepath.Join("..", b.also)); err != nil || !strings.Contains(string(text), b.text) {
				t.Errorf("%s:%d: the block is not what %s says (%v)", p.path, b.line, b.also, err)
			}
		}
	}
}
