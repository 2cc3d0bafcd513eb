package parsing

import (
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

// Prefix matches the start of an error of text/template: "template: NAME:LINE:" or "template: NAME:LINE:COLUMN:". Only
// the position is used.
var Prefix = regexp.MustCompile(`^template: (?:[^\n]*?):(\d+)(?::(\d+))?: `)

// parseBegan matches the end of an error in an action of several lines; it has the first line of the action.
var parseBegan = regexp.MustCompile(`(?: in action)? started at [^\n]*:(\d+)$`)

// parseError translates an error of the template's syntax.
func (d Delimiters) parseError(text string, err error) error {
	out := &Error{Problem: err.Error()}
	if m := Prefix.FindStringSubmatchIndex(out.Problem); m != nil {
		out.Line, _ = strconv.Atoi(out.Problem[m[2]:m[3]])
		out.Problem = out.Problem[m[1]:]
	}
	out.Problem = strings.TrimPrefix(out.Problem, "template: ")
	if m := parseBegan.FindStringSubmatchIndex(out.Problem); m != nil {
		out.Line, _ = strconv.Atoi(out.Problem[m[2]:m[3]])
		out.Problem = out.Problem[:m[0]] + " in the action that begins here and continues below"
		out.Fix = "close it with " + d.Right
	}
	if regexp.MustCompile(regexp.QuoteMeta(d.Left) + `\{`).MatchString(text) {
		out.Fix = "a flow mapping's own brace needs a space before " + d.Left
	}
	if out.Fix == "" {
		out.Fix = d.syntaxFix(out.Problem)
	}
	if out.Fix == "" && d.lacksEnd(text) {
		out.Fix = "an if, range, with, define or block has no " + d.Left + " end " + d.Right
	}
	return out
}

// lacksEnd reports whether the text is a valid template after adding the missing ends.
func (d Delimiters) lacksEnd(text string) bool {
	const most = 5
	for range most {
		text += d.Left + "end" + d.Right
		if _, err := parseInto(map[string]*parse.Tree{}, text, d); err == nil {
			return true
		}
	}
	return false
}

// syntaxFixes are fixes for errors of text/template, by the start of the error. They are added to its text: an error
// that is not here is reported without a fix. LEFT and RIGHT are replaced by the delimiters.
var syntaxFixes = []struct{ complaint, fix string }{
	{"bad character U+002F '/'", "a key that is not a plain word is read by `index`: index .metadata.labels \"example.com/team\""},
	{"bad character U+002D '-'", "a key that is not a plain word is read by `index`: index .metadata.labels \"my-team\""},
	{"bad character U+005B '['", "a key or an item is read by `index`: index .metadata.labels \"team\", index .spec.hosts 0"},
	{`unexpected "}"`, "close it with RIGHT"},
	{`unexpected "="`, "write `eq A B`; a variable is set by $name := VALUE"},
	{`unexpected "!"`, "write `not A`, or `ne A B`"},
	{`unexpected "|"`, "write `or A B`, or `A | default B`"},
	{`unexpected "&"`, "write `and A B`"},
	{`unexpected "?"`, "write `ternary A B CONDITION`, or LEFT if … RIGHT"},
	{`unexpected "<"`, "write `lt A B`, or `le A B`"},
	{`unexpected ">"`, "write `gt A B`, or `ge A B`"},
	{`illegal number syntax: "+"`, "write `add A B`; texts are put together by writing one hole after the other"},
	{"malformed character constant", "write text in double quotes"},
	{"undefined variable", "set it earlier, in a scope that is visible here: LEFT $name := VALUE RIGHT"},
	{"missing value for command", "write a value or a function there"},
	{"multiple definition", "give one of them another name; the helpers' names count, too"},
	{"unexpected {{end}}", "there is no if, range, with, define or block that it would close"},
	{"unexpected {{else}}", "there is no if, range or with that it belongs to"},
}

// syntaxFix returns the fix for an error of text/template, "" if there is none.
func (d Delimiters) syntaxFix(complaint string) string {
	for _, m := range syntaxFixes {
		if strings.HasPrefix(complaint, m.complaint) {
			return strings.NewReplacer("LEFT", d.Left, "RIGHT", d.Right).Replace(m.fix)
		}
	}
	return ""
}
