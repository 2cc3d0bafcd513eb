package document

import (
	"fmt"

	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

const (
	// maxNodes bounds what aliases may expand to: nine aliases of nine aliases of … is a bomb.
	maxNodes = 100_000
	// maxDepth bounds nesting; an alias to a map around itself has no end.
	maxDepth = 100
)

// converter turns parsed YAML into JSON values: map[string]any, []any, string, bool, int64, float64 and nil.
type converter struct {
	*Document
	budget int
	spent  bool               // the budget's error was given
	within []*yaml.Node       // the aliased nodes that are being converted
	known  map[*yaml.Node]any // scalars that were read already, for aliases repeat them
}

// convert returns the value of n, which is at p; line is where its key is. ok is false if nothing
// can be made of it, and then it was reported.
func (c *converter) convert(n *yaml.Node, p fieldpath.Path, line int) (v any, ok bool) {
	if c.budget--; c.budget < 0 || len(p) > maxDepth {
		if !c.spent {
			at := Display(p[:min(len(p), 2)])
			c.fail(c.Index.Find(at).Line, at, "write the values out", "aliases and nesting make the document too large")
		}
		c.spent = true
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		if slices.Contains(c.within, n.Alias) {
			c.fail(n.Line, Display(p), "write the value out", "the alias *%s is inside of what it names", n.Value)
			c.Broken = append(c.Broken, Display(p))
			return nil, false
		}
		c.within = append(c.within, n.Alias)
		defer func() { c.within = c.within[:len(c.within)-1] }()
		n = n.Alias
	}
	c.Index[Display(p)] = Position{Line: line, Node: n}
	if problem, fix := misreadNode(n, c.lines); problem != "" {
		c.fail(n.Line, Display(p), fix, "%s", problem)
		c.Broken = append(c.Broken, Display(p))
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, p)
	case yaml.SequenceNode:
		return c.sequence(n, p)
	default:
		return c.scalar(n, p)
	}
}

func (c *converter) scalar(n *yaml.Node, p fieldpath.Path) (any, bool) {
	if v, ok := c.known[n]; ok {
		return v, true
	}
	v, err := scalarValue(n)
	if err != nil {
		c.fail(n.Line, Display(p), "quote it if it is text", "%s is not a JSON value", Clip(n.Value))
		c.Broken = append(c.Broken, Display(p))
		return nil, false
	}
	c.known[n] = v
	return v, true
}

func (c *converter) sequence(n *yaml.Node, p fieldpath.Path) (any, bool) {
	list := make([]any, 0, len(n.Content))
	for i, item := range n.Content {
		// An item that is reported stays as null, so that the items after it keep their numbers.
		v, _ := c.convert(item, append(p[:len(p):len(p)], fieldpath.Step{Kind: fieldpath.IndexStep, Index: i}), item.Line)
		list = append(list, v)
	}
	return list, true
}

func (c *converter) mapping(n *yaml.Node, p fieldpath.Path) (any, bool) {
	out := make(map[string]any, len(n.Content)/2)
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if isMerge(key) {
			c.merge(value, p, out)
			continue
		}
		text, ok := c.key(key, p)
		if !ok {
			continue
		}
		at := p.Child(text)
		if line, twice := first[text]; twice {
			c.fail(key.Line, Display(at), "keep one of the two", "the field is given twice, first in line %d", line)
			continue
		}
		first[text] = key.Line
		line := key.Line
		if value.Kind == yaml.ScalarNode && value.Line > 0 {
			line = value.Line
		}
		if v, ok := c.convert(value, at, line); ok {
			out[text] = v
		} else {
			delete(out, text)
		}
	}
	return out, true
}

// key returns the text of a map's key, which kubectl makes of numbers and booleans too.
func (c *converter) key(n *yaml.Node, p fieldpath.Path) (string, bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if problem, fix := misreadNode(n, c.lines); problem != "" {
		c.fail(n.Line, Display(p), fix, "%s", problem)
		return "", false
	}
	if n.Kind != yaml.ScalarNode {
		c.fail(n.Line, Display(p), "quote it", "a map's key is %s", nodeName(n))
		return "", false
	}
	text, ok := keyText(n)
	switch {
	case !ok:
		c.fail(n.Line, Display(p), "quote it", "%s cannot be a key", Clip(n.Value))
		return "", false
	case strings.ContainsRune(text, 0):
		c.fail(n.Line, Display(p), "remove it", "the key %q contains a NUL character", text)
		return "", false
	}
	if text != n.Value && n.Style == 0 {
		c.MisreadKeys = append(c.MisreadKeys, &config.Error{File: c.Path, Line: n.Line, Path: Display(p.Child(text)),
			Problem: fmt.Sprintf("YAML 1.1 reads the key %s as %q", Clip(n.Value), Clip(text)),
			Fix:     "quote it: " + QuoteYAML(Clip(n.Value))})
	}
	return text, true
}

// isMerge recognizes the key <<, which takes in another map's entries.
func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && (key.Style == 0 || key.Tag == "!!merge")
}

// merge takes in the entries of an aliased map, or of several, of which earlier ones win. As in kubectl, what
// comes later in the map wins over what comes earlier, a merge key included.
func (c *converter) merge(value *yaml.Node, p fieldpath.Path, out map[string]any) {
	from := []*yaml.Node{value}
	if resolved(value).Kind == yaml.SequenceNode {
		from = resolved(value).Content
	}
	for i := len(from) - 1; i >= 0; i-- {
		if resolved(from[i]).Kind != yaml.MappingNode {
			c.fail(from[i].Line, Display(p), "name an anchor of a map", "<< takes in %s, not a map", nodeName(resolved(from[i])))
			continue
		}
		at := c.Index[Display(p)]
		v, ok := c.convert(from[i], p, from[i].Line)
		c.Index[Display(p)] = at
		if m, isMap := v.(map[string]any); ok && isMap {
			for k, v := range m {
				out[k] = v
			}
		}
	}
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
