package document

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// Document is one YAML file: its values as kubectl reads them and where they stand.
type Document struct {
	Path   string // of the file as it was given, or joined to the directory that was given; <stdin> for standard input
	lines  []string
	Values map[string]any
	Index  Index
	Broken []string // display paths of values that could not be taken; nothing more is said of them
	Errs   config.Errors
	// MisreadKeys are the keys that YAML 1.1 reads as something else, such as y: nobody means that.
	MisreadKeys config.Errors
}

// ParseDocument reads one YAML document. It returns nil values where nothing can be made of the text at all;
// the reasons are in errs.
func ParseDocument(name string, data []byte) *Document {
	d := &Document{Path: name, lines: lineBreak.Split(string(data), -1), Index: Index{"": {Line: 1}}}
	root, err := d.soleNode(data)
	if err != nil {
		d.Errs = append(d.Errs, err)
		return d
	}
	if root.Kind != yaml.MappingNode {
		d.fail(root.Line, "", "begin with apiVersion: "+config.APIVersion, "the file holds %s, wanted a map", nodeName(root))
		return d
	}
	c := converter{Document: d, budget: maxNodes, known: map[*yaml.Node]any{}}
	if v, ok := c.convert(root, nil, root.Line); ok {
		d.Values, _ = v.(map[string]any)
	}
	d.Index[""] = Position{Line: 1}
	return d
}

func (d *Document) fail(line int, path, fix, format string, args ...any) {
	d.Errs = append(d.Errs, &config.Error{File: d.Path, Line: line, Path: path,
		Problem: fmt.Sprintf(format, args...), Fix: fix})
}

// soleNode parses the text and returns its only document.
func (d *Document) soleNode(data []byte) (*yaml.Node, *config.Error) {
	if line := invalidUTF8(data); line > 0 {
		return nil, &config.Error{File: d.Path, Line: line, Problem: "the text is not UTF-8", Fix: "save the file as UTF-8"}
	}
	feed := &lineReader{rest: data}
	dec := yaml.NewDecoder(feed)
	var docs []*yaml.Node
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, d.syntaxError(err, feed.lines)
		}
		docs = append(docs, &n)
	}
	// A file may end with --- and nothing more; a document after an empty one is not what
	// kubectl would read, which takes the first.
	for len(docs) > 0 && isEmpty(docs[len(docs)-1]) {
		docs = docs[:len(docs)-1]
	}
	switch {
	case len(docs) == 0:
		return nil, &config.Error{File: d.Path, Line: 1, Problem: "the file is empty",
			Fix: "begin with apiVersion: " + config.APIVersion}
	case len(docs) > 1:
		return nil, &config.Error{File: d.Path, Line: docs[1].Line, Problem: "a second YAML document begins here",
			Fix: "split the file, one operator each, and name the files or their directory"}
	}
	return docs[0].Content[0], nil
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null"
}

func invalidUTF8(data []byte) (line int) {
	if utf8.Valid(data) {
		return 0
	}
	line = 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line
}

// lineBreak matches what ends a line.
var lineBreak = regexp.MustCompile("\r\n|[" + yamltext.LineBreaks + "]")

// lineReader hands out a line at a time and counts them: the parser reads no further than it has to, so the
// count says where it stopped. The line in its own message is often that of the map around.
type lineReader struct {
	rest  []byte
	lines int
	mid   bool // the last Read ended inside a line
}

// Read implements io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	line := r.rest
	if at := lineBreak.FindIndex(line); at != nil {
		line = line[:at[1]]
	}
	if !r.mid {
		r.lines++
	}
	n := copy(p, line)
	r.mid = n < len(line)
	r.rest = r.rest[n:]
	return n, nil
}

// lookBack bounds how many lines above the place where the parser stopped are tried as the cause.
const lookBack = 40

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError says what the YAML parser could not read. read is the number of lines it had taken: the cause is
// the line after the longest beginning of the file that still parses.
func (d *Document) syntaxError(err error, read int) *config.Error {
	m := yamlLine.FindStringSubmatch(err.Error())
	line := max(read, 1)
	if m != nil && m[1] != "" {
		line, _ = strconv.Atoi(m[1])
	}
	for n := read; n > 0 && n > read-lookBack; n-- {
		if parses(strings.Join(d.lines[:n-1], "\n")) {
			line = n
			break
		}
	}
	line = min(line, len(d.lines))
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	if m != nil {
		problem = err.Error()[len(m[0]):]
	}
	return &config.Error{File: d.Path, Line: line, Problem: "YAML: " + problem, Fix: fixForSyntax(d.lines[line-1])}
}

func parses(text string) bool {
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func nodeName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a map"
	default:
		return "plain text"
	}
}

// StdinName is how standard input is called in errors.
const StdinName = "<stdin>"
