package check

import (
	"maps"
	"slices"
	"strings"
	template "text/template/parse"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

// Walked is what a template reads and prints, by the schemas of what it begins with.
type Walked struct {
	// Reads are what is read of the upstream, and Variables the config's variables that are.
	Reads     []Read
	Variables []string
	// Findings are fields that no schema has, and calls that their values never fit. Unsure means that the template may
	// work without.
	Findings []Finding
	printed  map[place]*printed
}

// place is a line and a column, both from 1.
type place struct{ line, column int }

// printed is what an action prints, and what is read for that.
type printed struct {
	shape
	reads     []Read
	variables []string
}

// Walk walks a template. Of a text that does not parse nothing is found.
func Walk(text string, o render.Options, in Roots) *Walked {
	w := &walk{text: parsing.Joined(text, o.Helpers), roots: in, assigned: map[string]bool{}, Walked: &Walked{}}
	var err error
	if w.trees, _, err = parsing.Trees(text, o.Helpers, o.Delimiters.WithDefaults()); err != nil {
		return w.Walked
	}
	for range 2 { // a variable that is assigned to again may have any value, so a first walk collects their names
		w.Walked, w.undeclared, w.calls = &Walked{printed: map[place]*printed{}}, map[template.Pos]Finding{}, map[call]bool{}
		w.call("", upstreamShape(in.Upstream))
	}
	for _, pos := range slices.Sorted(maps.Keys(w.undeclared)) {
		w.Findings = append(w.Findings, w.undeclared[pos])
	}
	return w.Walked
}

type walk struct {
	*Walked
	text       string
	roots      Roots
	undeclared map[template.Pos]Finding
	inDefine   bool // the walk is in a define block, which may be called for several kinds
	optional   bool // the template may work without what is read
	assigned   map[string]bool
	trees      map[string]*template.Tree
	calls      map[call]bool // that were walked
}

func (w *walk) place(pos template.Pos) place {
	before := w.text[:pos]
	return place{1 + strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n")}
}

// lack records what never works. What is found there again counts if one of both has to work.
func (w *walk) lack(pos template.Pos, problem string) {
	before, again := w.undeclared[pos]
	w.undeclared[pos] = Finding{Line: w.place(pos).line, Problem: problem, Unsure: w.optional && (!again || before.Unsure)}
}

// scope is what dot and variables hold at a place of the template.
type scope struct {
	dot  shape
	vars map[string]shape
}

// with is a scope for a block, whose variables are its own.
func (s scope) with(dot shape) scope { return scope{dot, maps.Clone(s.vars)} }

// call is a define block with the schema, and the place, of what it is handed as its dot.
type call struct {
	name     string
	schema   *spec.Schema
	at       string
	optional bool
}

// maxCalls bounds how many different calls are followed; of the dot in others nothing is known.
const maxCalls = 200

// call walks a tree with the dot that it is handed.
func (w *walk) call(name string, dot shape) {
	if dot.schema == nil || len(w.calls) > maxCalls {
		w.read(dot, true)
		dot = shape{}
	}
	made := call{name, dot.schema, strings.Join(dot.at, "."), w.optional}
	if tree := w.trees[name]; tree != nil && !w.calls[made] {
		w.calls[made] = true
		before := w.inDefine
		w.inDefine = name != ""
		w.list(tree.Root, scope{dot, map[string]shape{"$": dot}})
		w.inDefine = before
	}
}

// list walks one block.
func (w *walk) list(l *template.ListNode, in scope) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *template.ActionNode:
			w.action(n, in)
		case *template.TemplateNode:
			handed := shape{}
			if n.Pipe != nil {
				handed = w.declare(n.Pipe, in, nil)
			}
			w.call(n.Name, handed)
		case *template.IfNode:
			w.branch(&n.BranchNode, in, func(shape) shape { return in.dot }, nil)
		case *template.WithNode:
			w.branch(&n.BranchNode, in, func(s shape) shape { return s }, nil)
		case *template.RangeNode:
			w.branch(&n.BranchNode, in, shape.item, shape.item)
		}
	}
}

func (w *walk) action(n *template.ActionNode, in scope) {
	reads, variables := len(w.Reads), len(w.Variables)
	s := w.declare(withoutLayout(n.Pipe), in, nil)
	if len(n.Pipe.Decl) > 0 {
		return
	}
	w.read(s, true)
	at := w.place(n.Pos)
	if p := w.printed[at]; p == nil {
		w.printed[at] = &printed{shape: s}
	} else {
		p.shape = shape{either: []shape{p.shape, s}, constant: p.constant && s.constant}
	}
	p := w.printed[at]
	p.reads, p.variables = append(p.reads, w.Reads[reads:]...), append(p.variables, w.Variables[variables:]...)
}

// withoutLayout is a pipeline without the functions at its end that print a value as YAML or JSON: the hole gives the
// value.
func withoutLayout(p *template.PipeNode) *template.PipeNode {
	if len(p.Decl) > 0 {
		return p
	}
	for last := len(p.Cmds) - 1; last >= 0; last-- {
		cmd := p.Cmds[last]
		name := parsing.Function(cmd)
		prints := slices.Contains([]string{"toYaml", "toJson", "mustToJson"}, name)
		switch {
		case !prints && !slices.Contains([]string{"indent", "nindent", "trim"}, name):
			return p
		case prints && last > 0:
			whole := *p
			whole.Cmds = p.Cmds[:last]
			return &whole
		case prints && len(cmd.Args) == 2:
			whole, value := *p, *cmd
			value.Args = cmd.Args[1:]
			whole.Cmds = []*template.CommandNode{&value}
			return &whole
		}
	}
	return p
}

// branch walks both blocks of an if, with or range. inner gives the dot of the first one, each what a range's variables
// hold of its value.
func (w *walk) branch(n *template.BranchNode, in scope, inner, each func(shape) shape) {
	in = in.with(in.dot)
	optional, known := w.optional, len(w.undeclared)
	w.optional = true
	value := w.declare(n.Pipe, in, each)
	w.read(value, false)
	w.optional = optional || w.inDefine || len(w.undeclared) > known // its blocks may be for another kind
	defer func() { w.optional = optional }()
	w.list(n.List, in.with(inner(value)))
	w.list(n.ElseList, in.with(in.dot))
}

// declare evaluates a pipeline and gives its variables their shapes: the value's, or of a range an item's and, of two
// variables, the first the key's.
func (w *walk) declare(p *template.PipeNode, in scope, each func(shape) shape) shape {
	value := w.pipe(p, in)
	for i, v := range p.Decl {
		name := v.Ident[0]
		if p.IsAssign || w.assigned[name] { // where it leads to is not followed
			w.read(value, true)
		}
		switch {
		case p.IsAssign:
			w.assigned[name] = true
		case each == nil:
			in.vars[name] = value
		case i == 0 && len(p.Decl) == 2:
			in.vars[name] = shape{scalar: true}
		default:
			in.vars[name] = each(value)
		}
	}
	return value
}

func (w *walk) node(n template.Node, in scope) shape {
	switch n := n.(type) {
	case *template.DotNode:
		return in.dot
	case *template.FieldNode:
		return w.field(n.Pos, in.dot, "", n.Ident)
	case *template.VariableNode:
		if w.assigned[n.Ident[0]] {
			return shape{}
		}
		return w.field(n.Pos, in.vars[n.Ident[0]], "", n.Ident[1:])
	case *template.ChainNode:
		return w.field(n.Pos, w.node(n.Node, in), w.rootName(n.Node), n.Field)
	case *template.PipeNode:
		return w.pipe(n, in)
	case *template.IdentifierNode:
		if n.Ident == nameOfItem {
			return shape{schema: w.roots.Item}
		}
	case *template.StringNode:
		return shape{typed: "string", constant: true}
	case *template.BoolNode:
		return shape{typed: "boolean", constant: true}
	case *template.NumberNode:
		if n.IsInt {
			return shape{typed: "integer", constant: true}
		}
		return shape{typed: "number", constant: true}
	}
	return shape{}
}

// rootName is what a path begins with: the item, or an object whose schema is known.
func (w *walk) rootName(n template.Node) string {
	switch n := n.(type) {
	case *template.IdentifierNode:
		return n.Ident
	case *template.PipeNode:
		if len(n.Cmds) == 1 && w.objectOf(n.Cmds[0]) != "" {
			return "(" + w.objectOf(n.Cmds[0]) + ")"
		}
	}
	return ""
}

// field is the shape of what a path leads to. root is what the path begins with; empty for the dot and for variables.
func (w *walk) field(pos template.Pos, s shape, root string, names []string) shape {
	if len(names) > 0 && len(s.either) > 0 {
		w.read(s, true)
	}
	for i, name := range names {
		if fix := s.lacks(name); fix != "" {
			w.lack(pos, "the schema has no "+root+"."+strings.Join(names[:i+1], ".")+": "+fix)
		}
		s = s.below(name)
	}
	return s
}
