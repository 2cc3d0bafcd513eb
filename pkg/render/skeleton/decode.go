package skeleton

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Error is an error in the YAML of a skeleton. It has a line of the skeleton, or the record of the hole that caused it;
// the execution translates both to the template.
type Error struct {
	Line, Record int
	Problem, Fix string
	Kind         string // the problem without values, if it quotes one
	Named        bool   // the sentence begins with the output of the hole
}

// WithoutValues returns the problem without values: the parser sees only the text of the template, never the values of
// an object.
func (e *Error) WithoutValues() string {
	if e.Kind != "" {
		return e.Kind
	}
	return e.Problem
}

// Error implements error.
func (e *Error) Error() string { return e.Problem }

// decode parses the one document of a skeleton. An `omitempty | toYaml` hole without a value does not show whether it
// is among entries or items, so decode tries both.
func decode(text []byte, b *values.Budget) (*yaml.Node, error) {
	if err := parsing(b, text); err != nil {
		return nil, err
	}
	root, err := decodeOnce(text)
	if err == nil {
		return root, nil
	}
	for _, other := range otherForms(text) {
		if parsing(b, other) != nil {
			break // the first error is reported
		}
		if root, err := decodeOnce(other); err == nil {
			return root, nil
		}
	}
	var known *Error
	if errors.As(err, &known) {
		return nil, err
	}
	return nil, syntaxError(text, err, b)
}

// parsedBytes is the parser's memory for a value besides its text, and that of what is built from it.
const parsedBytes = 700

// parsing takes the bytes and steps for parsing a text: each YAML value has one of these characters before or after it.
func parsing(b *values.Budget, text []byte) error {
	found := 1 + bytes.Count(text, openBracket) + bytes.Count(text, openBrace) + bytes.Count(text, comma) +
		bytes.Count(text, colon) + bytes.Count(text, dash) + bytes.Count(text, question) + bytes.Count(text, hash)
	holes := bytes.Count(text, openMarkBytes)
	if err := b.Work(values.Plus(len(text)/64, found)); err != nil {
		return err
	}
	return b.Spend(values.Plus(values.Times(found, parsedBytes),
		values.Plus(values.Times(8, len(text)), values.Times(200, holes))))
}

var (
	openBracket, openBrace, comma, colon, hash = []byte("["), []byte("{"), []byte(","), []byte(":"), []byte("#")
	dash, question, openMarkBytes              = []byte("-"), []byte("?"), []byte(openMark)
)

func decodeOnce(text []byte) (root *yaml.Node, err error) {
	defer func() {
		// The parser panics in states that it considers impossible. Report that as an error of the template, do not crash.
		if r := recover(); r != nil {
			root, err = nil, &Error{Record: -1, Line: 1, Problem: fmt.Sprintf("not YAML: %v", r)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &Error{Record: -1, Line: 1, Problem: "the template renders nothing",
			Fix: "one document is needed; to have none, use the downstream's `when`"}
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &Error{Record: -1, Line: second.Line, Problem: "the template renders two documents",
			Fix: "one template makes one document; give the other one its own downstream, and remove a last `---`"}
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	root = doc.Content[0]
	for root.Kind == yaml.AliasNode {
		root = root.Alias
	}
	return root, nil
}

// omittedMark matches an omitted hole in the form of an entry; as an item it has a dash instead.
var omittedMark = regexp.MustCompile(`(\x{E000}o\d+\x{E001}):`)

// otherForms returns the skeleton with each omitted entry as an item, one by one, and with all of them.
func otherForms(text []byte) [][]byte {
	const most = 10
	found := omittedMark.FindAllSubmatchIndex(text, most)
	var out [][]byte
	for _, m := range found {
		out = append(out, slices.Concat(text[:m[0]], []byte("- "), text[m[2]:m[3]], text[m[1]:]))
	}
	if len(found) > 1 {
		out = append(out, omittedMark.ReplaceAll(text, []byte("- $1")))
	}
	return out
}

var (
	errorLine = regexp.MustCompile(`line (\d+): `)
	// namedHole matches a hole that is part of an anchor, an alias or a tag.
	namedHole = regexp.MustCompile(`(?:^|[\s\[{,])[&*!][!\w-]*\x{E000}.(\d+)`)
	// tabIndent matches a line that is indented by a tab.
	tabIndent  = regexp.MustCompile(`(?m)^ *\t`)
	scalarMark = regexp.MustCompile(`\x{E000}s(\d+)`)
)

const noStructureHere = "is not a map or list, and the template puts entries or items there"

// syntaxError translates the parser's error. It uses only the line in the parser's message.
func syntaxError(text []byte, err error, b *values.Budget) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	out := &Error{Record: -1, Line: 1}
	if m := errorLine.FindStringSubmatch(message); m != nil {
		out.Line, _ = strconv.Atoi(m[1])
		message = strings.Replace(message, m[0], "", 1)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	near := bytes.Join(lines[min(max(out.Line-2, 0), len(lines)):min(out.Line+1, len(lines))], nil)
	if m := namedHole.FindSubmatch(near); m != nil {
		out.Record, _ = strconv.Atoi(string(m[1]))
		out.Problem = "a hole cannot be part of an anchor, an alias or a tag"
		return out
	}
	if m := scalarMark.FindSubmatch(near); m != nil {
		out.Record, _ = strconv.Atoi(string(m[1]))
		out.Problem, out.Named = noStructureHere, true
		return out
	}
	out.Problem, out.Fix = "not YAML: "+message,
		"check the indentation, quotes and brackets of this line and the lines around it"
	if tabIndent.Match(near) {
		out.Fix = "indent with spaces, YAML takes no tabs"
	}
	blameSplice(out, text, b)
	return out
}

var spliceMark = regexp.MustCompile(`- \x{E000}l(\d+)\x{E001}|\x{E000}m(\d+)\x{E001}:`)

// blameSplice looks for a hole whose toYaml printed a list where the template needs a map, or the reverse: in the other
// form the skeleton is valid YAML.
func blameSplice(out *Error, text []byte, b *values.Budget) {
	const most = 20
	for _, m := range spliceMark.FindAllSubmatchIndex(text, most) {
		have, room, digits := "a list", "the entries of a map", m[2:4]
		kind := byte(KindMap)
		if digits[0] < 0 {
			have, room, digits = "a map", "the items of a list", m[4:6]
			kind = KindList
		}
		record, _ := strconv.Atoi(string(text[digits[0]:digits[1]]))
		other := AppendPlaceholder(bytes.Clone(text[:m[0]]), kind, record)
		if parsing(b, text) != nil {
			return
		}
		var doc yaml.Node
		if yaml.Unmarshal(append(other, text[m[1]:]...), &doc) == nil {
			out.Record = record
			out.Problem, out.Fix = "is "+have+", and the template puts "+room+" there", ""
			out.Named = true
			return
		}
	}
}
