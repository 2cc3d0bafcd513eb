package skeleton

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/render/values"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// Skeleton is a parsed skeleton with its weight in the cache.
type Skeleton struct {
	Root *Node
	size int
}

// Parse parses a skeleton: exactly one document, whose root is a mapping.
func Parse(text []byte, budget *values.Budget) (*Skeleton, error) {
	if marksEscaped.Match(text) { // composed of pieces, otherwise Compile would have found it
		return nil, &Error{Record: -1, Line: 1, Problem: "the characters U+E000 and U+E001 cannot be used in a template"}
	}
	root, err := decode(text, budget)
	if err != nil {
		return nil, err
	}
	if err := checkRoot(root); err != nil {
		return nil, err
	}
	b := &builder{text: text, tags: bytes.IndexByte(text, '!') >= 0, built: map[*yaml.Node]*Node{}, size: len(text)}
	tree, err := b.node(root)
	if err != nil {
		return nil, err
	}
	return &Skeleton{Root: tree, size: b.size}, nil
}

func checkRoot(root *yaml.Node) error {
	fail := func(problem string) error {
		return &Error{Record: -1, Line: root.Line, Problem: problem, Fix: "the document must be one mapping, such as `spec: …`"}
	}
	switch {
	case root.Kind == yaml.SequenceNode:
		return fail("the template renders a list")
	case root.Kind == yaml.ScalarNode && root.Value == "":
		return fail("the template renders nothing")
	case root.Kind == yaml.ScalarNode:
		return fail("the template renders a single value")
	}
	return nil
}

// builder turns YAML nodes into a tree.
type builder struct {
	text  []byte
	tags  bool // the text may have tags
	seen  place
	built map[*yaml.Node]*Node // nil while a node is being built: an alias inside its own anchor
	size  int
}

func (b *builder) fail(n *yaml.Node, problem, fix string) error {
	return &Error{Line: n.Line, Record: -1, Problem: problem, Fix: fix}
}

// nodeWeight is the approximate size of a node in the cache, without its text.
const nodeWeight = 160

func (b *builder) node(n *yaml.Node) (*Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if done, started := b.built[n]; started {
		if done == nil {
			return nil, b.fail(n, "the anchor "+strconv.Quote(n.Anchor)+" contains itself", "")
		}
		return done, nil
	}
	b.built[n] = nil
	b.size += nodeWeight
	var (
		out *Node
		err error
	)
	switch n.Kind {
	case yaml.MappingNode:
		out, err = b.mapping(n)
	case yaml.SequenceNode:
		out, err = b.sequence(n)
	default:
		out, err = b.scalar(n)
	}
	if err != nil {
		return nil, err
	}
	out.Line = n.Line
	b.built[n] = out
	return out, nil
}

func (b *builder) scalar(n *yaml.Node) (*Node, error) {
	plain := n.Style&^yaml.TaggedStyle == 0
	tagged := n.Style&yaml.TaggedStyle != 0
	if parts := SplitParts(n.Value); parts != nil {
		b.size += len(parts) * nodeWeight / 2
		if err := checkParts(n, parts, plain); err != nil {
			return nil, err
		}
		switch {
		case tagged && n.Tag != "!!str":
			return nil, &Error{Line: n.Line, Record: parts[0].Record, Problem: "the tag " + n.Tag + " cannot be put on a hole",
				Fix: "convert the value in the template: `| int`, `| float64`, `| toString`"}
		case plain && !tagged && WholeHole(parts):
			return &Node{Kind: HoleNode, Record: parts[0].Record}, nil
		}
		return &Node{Kind: TextNode, Parts: parts}, nil
	}
	value, err := b.authorScalar(n)
	if err != nil {
		return nil, b.fail(n, err.Error(), "")
	}
	if value, err = yamltext.JSON(value); err != nil {
		return nil, b.fail(n, err.Error(), "")
	}
	return &Node{Kind: ConstNode, Value: value}, nil
}

// checkParts refuses holes whose value could change more than their own scalar: a line that ends up outside the scalar
// (after a comment), and a string where toYaml prints entries, which would become the end of the scalar before it.
func checkParts(n *yaml.Node, parts []Part, plain bool) error {
	for i, p := range parts {
		switch {
		case p.Kind == KindLine && (i == 0 || parts[i-1].Record != p.Record-1):
			return &Error{Line: n.Line, Record: p.Record, Named: true,
				Problem: "has several lines, which do not stay together here",
				Fix:     "indent them like the block that they are in; a comment takes only one"}
		case p.Kind == KindScalar && plain && !WholeHole(parts):
			return &Error{Line: n.Line, Record: p.Record, Named: true, Problem: noStructureHere}
		}
	}
	return nil
}

// authorScalar resolves a scalar without holes to the types of a document.
func (b *builder) authorScalar(n *yaml.Node) (any, error) {
	if n.Style == 0 && b.bareTag(n) {
		return n.Value, nil
	}
	return yamltext.Resolve(n)
}

// place is the position of a byte in a text: its offset, line and column, counted in runes.
type place struct{ offset, line, column int }

// lineBreak returns the length of the line break at the start of text, 0 if there is none.
func lineBreak(text []byte) int {
	c, n := utf8.DecodeRune(text)
	switch {
	case !strings.ContainsRune(yamltext.LineBreaks, c):
		return 0
	case c == '\r' && len(text) > 1 && text[1] == '\n':
		return 2
	}
	return n
}

// at returns the offset of a line and column. Nodes come in the order of the text, so it continues from the last one.
func (b *builder) at(line, column int) int {
	p := b.seen
	if p.line == 0 || p.line > line || p.line == line && p.column > column {
		p = place{line: 1, column: 1}
	}
	for p.offset < len(b.text) && (p.line < line || p.column < column) {
		if n := lineBreak(b.text[p.offset:]); n > 0 {
			if p.line == line {
				break
			}
			p = place{offset: p.offset + n, line: p.line + 1, column: 1}
			continue
		}
		_, n := utf8.DecodeRune(b.text[p.offset:])
		p.offset, p.column = p.offset+n, p.column+1
	}
	b.seen = p
	return p.offset
}

// bareTag reports whether a node has the tag `!` without a name, which makes any scalar a string. The parser does not
// report it.
func (b *builder) bareTag(n *yaml.Node) bool {
	if !b.tags {
		return false
	}
	at := b.text[b.at(n.Line, n.Column):]
	if n.Anchor != "" {
		at = bytes.TrimLeft(bytes.TrimPrefix(at, []byte("&"+n.Anchor)), " \t")
	}
	return bytes.HasPrefix(at, []byte("!"))
}

func (b *builder) sequence(n *yaml.Node) (*Node, error) {
	out := &Node{Kind: ListNode, Items: make([]*Node, 0, len(n.Content))}
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode && item.Style == 0 {
			if parts := SplitParts(item.Value); WholeHole(parts) && (parts[0].Kind == KindList || parts[0].Kind == KindOmitted) {
				out.Items = append(out.Items, &Node{Kind: SpliceNode, Record: parts[0].Record, Line: item.Line})
				continue
			}
		}
		child, err := b.node(item)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, child)
	}
	return out, nil
}

func (b *builder) mapping(n *yaml.Node) (*Node, error) {
	out := &Node{Kind: MapNode, Entries: make([]Entry, 0, len(n.Content)/2)}
	seen := make(map[string]string, len(n.Content)/2) // how each key is written
	for i := 0; i < len(n.Content); i += 2 {
		e, err := b.entry(n.Content[i], n.Content[i+1])
		if err != nil {
			return nil, err
		}
		first, isTwice := seen[e.Key]
		switch {
		case e.Splice >= 0 || e.Holes != nil:
			out.Checked = true
		case isTwice:
			return nil, b.twice(n.Content[i], e.Key, first, n.Content[i].Value)
		default:
			seen[e.Key] = n.Content[i].Value
		}
		out.Entries = append(out.Entries, e)
	}
	return out, nil
}

// twice is about a key that a mapping has already; first and second are how the two are written.
func (b *builder) twice(n *yaml.Node, key, first, second string) error {
	problem, fix := "the key "+strconv.Quote(key)+" is given twice", ""
	switch {
	case first != second:
		problem += ": YAML 1.1 reads the keys " + first + " and " + second + " as " + strconv.Quote(key)
		fix = "quote them"
	case second != key:
		problem += ": YAML 1.1 reads the key " + second + " as " + strconv.Quote(key)
		fix = "leave one of the two out, and quote the other"
	}
	return b.fail(n, problem, fix)
}

func (b *builder) entry(k, v *yaml.Node) (Entry, error) {
	e := Entry{Splice: -1, Line: k.Line}
	for k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind != yaml.ScalarNode {
		return e, b.fail(k, "a key must be a scalar, not a mapping or list", "")
	}
	plain := k.Style == 0
	if k.Tag == "!!merge" && (plain || k.Style&yaml.TaggedStyle != 0) {
		return e, b.fail(k, "the merge key << is not supported", "write the entries out, or use `toYaml (merge …) | nindent N`")
	}
	parts := SplitParts(k.Value)
	if plain && WholeHole(parts) && (parts[0].Kind == KindMap || parts[0].Kind == KindOmitted) {
		if v.Kind != yaml.ScalarNode || v.Value != "" || v.Style != 0 {
			return e, &Error{Line: v.Line, Record: parts[0].Record,
				Problem: "the entries that toYaml prints are followed by deeper text",
				Fix:     "indent what follows like the entries"}
		}
		e.Splice = parts[0].Record
		return e, nil
	}
	if parts == nil {
		if err := b.constKey(&e, k); err != nil {
			return e, err
		}
	} else if err := b.holeKey(&e, k, parts); err != nil {
		return e, err
	}
	value, err := b.node(v)
	e.Value = value
	return e, err
}

func (b *builder) holeKey(e *Entry, k *yaml.Node, parts []Part) error {
	if k.Style&yaml.TaggedStyle != 0 && k.Tag != "!!str" {
		return b.fail(k, "the tag "+k.Tag+" cannot be put on a hole", "")
	}
	e.Holes = parts
	return checkParts(k, parts, k.Style == 0)
}

func (b *builder) constKey(e *Entry, k *yaml.Node) error {
	resolved, err := b.authorScalar(k)
	if err != nil {
		return b.fail(k, err.Error(), "")
	}
	text, ok := yamltext.KeyText(resolved)
	if !ok {
		return b.fail(k, "a key cannot be "+strconv.Quote(k.Value), "write it in quotes")
	}
	b.size += nodeWeight
	if e.Key = text; text != k.Value && k.Style == 0 {
		e.Written = k.Value
	}
	return nil
}
