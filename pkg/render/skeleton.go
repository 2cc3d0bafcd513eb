package render

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// parseSkeleton parses a skeleton: exactly one document, whose root is a mapping.
func parseSkeleton(text []byte, budget *Budget) (*skeleton, error) {
	if marksEscaped.Match(text) { // composed of pieces, otherwise Compile would have found it
		return nil, &skeletonError{record: -1, line: 1, problem: "the characters U+E000 and U+E001 cannot be used in a template"}
	}
	root, err := decode(text, budget)
	if err != nil {
		return nil, err
	}
	if err := checkRoot(root); err != nil {
		return nil, err
	}
	b := &builder{text: text, tags: bytes.IndexByte(text, '!') >= 0, built: map[*yaml.Node]*node{}, size: len(text)}
	tree, err := b.node(root)
	if err != nil {
		return nil, err
	}
	return &skeleton{root: tree, size: b.size}, nil
}

func checkRoot(root *yaml.Node) error {
	fail := func(problem string) error {
		return &skeletonError{record: -1, line: root.Line, problem: problem, fix: "the document must be one mapping, such as `spec: …`"}
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
	built map[*yaml.Node]*node // nil while a node is being built: an alias inside its own anchor
	size  int
}

func (b *builder) fail(n *yaml.Node, problem, fix string) error {
	return &skeletonError{line: n.Line, record: -1, problem: problem, fix: fix}
}

// nodeWeight is the approximate size of a node in the cache, without its text.
const nodeWeight = 160

func (b *builder) node(n *yaml.Node) (*node, error) {
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
		out *node
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
	out.line = n.Line
	b.built[n] = out
	return out, nil
}

func (b *builder) scalar(n *yaml.Node) (*node, error) {
	plain := n.Style&^yaml.TaggedStyle == 0
	tagged := n.Style&yaml.TaggedStyle != 0
	if parts := splitParts(n.Value); parts != nil {
		b.size += len(parts) * nodeWeight / 2
		if err := checkParts(n, parts, plain); err != nil {
			return nil, err
		}
		switch {
		case tagged && n.Tag != "!!str":
			return nil, &skeletonError{line: n.Line, record: parts[0].record, problem: "the tag " + n.Tag + " cannot be put on a hole",
				fix: "convert the value in the template: `| int`, `| float64`, `| toString`"}
		case plain && !tagged && wholeHole(parts):
			return &node{kind: holeNode, record: parts[0].record}, nil
		}
		return &node{kind: textNode, parts: parts}, nil
	}
	value, err := b.authorScalar(n)
	if err != nil {
		return nil, b.fail(n, err.Error(), "")
	}
	if value, err = yamltext.JSON(value); err != nil {
		return nil, b.fail(n, err.Error(), "")
	}
	return &node{kind: constNode, value: value}, nil
}

// checkParts refuses holes whose value could change more than their own scalar: a line that ends up outside the scalar (after a
// comment), and a string where toYaml prints entries, which would become the end of the scalar before it.
func checkParts(n *yaml.Node, parts []part, plain bool) error {
	for i, p := range parts {
		switch {
		case p.kind == kindLine && (i == 0 || parts[i-1].record != p.record-1):
			return &skeletonError{line: n.Line, record: p.record, named: true, problem: "has several lines, which do not stay together here",
				fix: "indent them like the block that they are in; a comment takes only one"}
		case p.kind == kindScalar && plain && !wholeHole(parts):
			return &skeletonError{line: n.Line, record: p.record, named: true, problem: noStructureHere}
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

// bareTag reports whether a node has the tag `!` without a name, which makes any scalar a string. The parser does not report
// it.
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

func (b *builder) sequence(n *yaml.Node) (*node, error) {
	out := &node{kind: listNode, items: make([]*node, 0, len(n.Content))}
	for _, item := range n.Content {
		if item.Kind == yaml.ScalarNode && item.Style == 0 {
			if parts := splitParts(item.Value); wholeHole(parts) && (parts[0].kind == kindList || parts[0].kind == kindOmitted) {
				out.items = append(out.items, &node{kind: spliceNode, record: parts[0].record, line: item.Line})
				continue
			}
		}
		child, err := b.node(item)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, child)
	}
	return out, nil
}

func (b *builder) mapping(n *yaml.Node) (*node, error) {
	out := &node{kind: mapNode, entries: make([]entry, 0, len(n.Content)/2)}
	seen := make(map[string]string, len(n.Content)/2) // how each key is written
	for i := 0; i < len(n.Content); i += 2 {
		e, err := b.entry(n.Content[i], n.Content[i+1])
		if err != nil {
			return nil, err
		}
		first, isTwice := seen[e.key]
		switch {
		case e.splice >= 0 || e.holes != nil:
			out.checked = true
		case isTwice:
			return nil, b.twice(n.Content[i], e.key, first, n.Content[i].Value)
		default:
			seen[e.key] = n.Content[i].Value
		}
		out.entries = append(out.entries, e)
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

func (b *builder) entry(k, v *yaml.Node) (entry, error) {
	e := entry{splice: -1, line: k.Line}
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
	parts := splitParts(k.Value)
	if plain && wholeHole(parts) && (parts[0].kind == kindMap || parts[0].kind == kindOmitted) {
		if v.Kind != yaml.ScalarNode || v.Value != "" || v.Style != 0 {
			return e, &skeletonError{line: v.Line, record: parts[0].record, problem: "the entries that toYaml prints are followed by deeper text",
				fix: "indent what follows like the entries"}
		}
		e.splice = parts[0].record
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
	e.value = value
	return e, err
}

func (b *builder) holeKey(e *entry, k *yaml.Node, parts []part) error {
	if k.Style&yaml.TaggedStyle != 0 && k.Tag != "!!str" {
		return b.fail(k, "the tag "+k.Tag+" cannot be put on a hole", "")
	}
	e.holes = parts
	return checkParts(k, parts, k.Style == 0)
}

func (b *builder) constKey(e *entry, k *yaml.Node) error {
	resolved, err := b.authorScalar(k)
	if err != nil {
		return b.fail(k, err.Error(), "")
	}
	text, ok := yamltext.KeyText(resolved)
	if !ok {
		return b.fail(k, "a key cannot be "+strconv.Quote(k.Value), "write it in quotes")
	}
	b.size += nodeWeight
	if e.key = text; text != k.Value && k.Style == 0 {
		e.written = k.Value
	}
	return nil
}
