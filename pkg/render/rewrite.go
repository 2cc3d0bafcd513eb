package render

import (
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// rewrite rewrites all parse trees.
func (c *compiler) rewrite() {
	for _, name := range values.SortedKeys(c.Trees) {
		c.tree(c.Trees[name])
	}
}

// tree rewrites one template in place. It encloses the body in calls that count the nesting of templates.
func (c *compiler) tree(t *parse.Tree) {
	if t.Root == nil {
		t.Root = &parse.ListNode{NodeType: parse.NodeList}
	}
	c.current = t.Name
	c.list(t.Root)
	if t.Name == parsing.Main {
		return
	}
	c.used[program.FnLeave] = true
	enter, leave := c.countSteps(program.FnEnter, t.Root.Pos, t.Root), discardCall(program.FnLeave, t.Root.Pos)
	t.Root.Nodes = slices.Concat([]parse.Node{enter}, t.Root.Nodes, []parse.Node{leave})
}

func (c *compiler) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		c.statement(n)
	}
}

func (c *compiler) statement(n parse.Node) {
	switch n := n.(type) {
	case *parse.TextNode:
		c.text(n)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			c.assignment(n)
			return
		}
		c.hole(n)
	case *parse.IfNode:
		c.branch(&n.BranchNode)
	case *parse.WithNode:
		c.branch(&n.BranchNode)
	case *parse.RangeNode:
		c.branch(&n.BranchNode)
		c.used[program.FnOver] = true
		n.Pipe.Cmds = append(n.Pipe.Cmds, commandNode(n.Pos, identNode(program.FnOver, n.Pos)))
		n.List.Nodes = append([]parse.Node{c.countSteps(program.FnTick, n.Pos, n.List)}, n.List.Nodes...)
	case *parse.TemplateNode:
		c.templateName(n.Pos, n.Name)
		c.prints(n.Name)
		if n.Pipe != nil {
			c.pipe(n.Pipe)
		}
	}
}

// countSteps returns a call that counts the steps of a list of nodes, whatever branches are taken. The bodies of loops
// are counted separately.
func (c *compiler) countSteps(name string, pos parse.Pos, l *parse.ListNode) *parse.ActionNode {
	id, s := c.newSite(pos, "")
	s.Weight = 2 + weight(l)
	call := discardCall(name, pos)
	call.Pipe.Cmds = []*parse.CommandNode{c.callNode(name, id, pos)}
	return call
}

func weight(n parse.Node) int {
	total := 0
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return 0
		}
		for _, node := range n.Nodes {
			total += weight(node)
		}
	case *parse.PipeNode:
		if n == nil {
			return 0
		}
		for _, cmd := range n.Cmds {
			total++
			for _, arg := range cmd.Args {
				total += weight(arg)
			}
		}
	case *parse.ChainNode:
		total = weight(n.Node)
	case *parse.ActionNode:
		total = weight(n.Pipe)
	case *parse.TemplateNode:
		total = 1 + weight(n.Pipe)
	case *parse.IfNode:
		total = weight(n.Pipe) + weight(n.List) + weight(n.ElseList)
	case *parse.WithNode:
		total = weight(n.Pipe) + weight(n.List) + weight(n.ElseList)
	case *parse.RangeNode:
		total = weight(n.Pipe) + weight(n.ElseList)
	}
	return total
}

func (c *compiler) branch(n *parse.BranchNode) {
	c.pipe(n.Pipe)
	c.list(n.List)
	c.list(n.ElseList)
}

// text checks a piece of literal text and records its position.
func (c *compiler) text(n *parse.TextNode) {
	if len(n.Text) == 0 {
		return
	}
	c.TextLines[&n.Text[0]], _ = c.At(n.Pos)
	if !utf8.Valid(n.Text) {
		c.unprobed = true
		c.errorf(n.Pos, "save it as UTF-8", "the template is not UTF-8")
	}
	if at := skeleton.MarksWritten.FindIndex(n.Text); at != nil {
		c.unprobed = true
		c.errorf(n.Pos+parse.Pos(at[0]), "leave them out; in the values of an upstream they are harmless",
			"the characters U+E000 and U+E001 are used to mark holes and cannot be used in a template")
	}
}

// mutatingFunctions are the functions that change a map in sprig. Here they return a changed copy.
var mutatingFunctions = map[string]bool{
	"set": true, "unset": true, "merge": true, "mergeOverwrite": true, "mustMerge": true, "mustMergeOverwrite": true,
}

// assignment rewrites an action that sets a variable and prints nothing.
func (c *compiler) assignment(n *parse.ActionNode) {
	last := n.Pipe.Cmds[len(n.Pipe.Cmds)-1]
	if name := parsing.Function(last); mutatingFunctions[name] && n.Pipe.Decl[0].Ident[0] == "$_" {
		c.errorf(n.Pos, "keep the copy: $d = "+name+" $d …", "%s gives a changed copy here, and $_ throws it away", name)
	}
	c.pipe(n.Pipe)
}

// pipe rewrites a pipeline in place.
func (c *compiler) pipe(p *parse.PipeNode) {
	p.Cmds = c.commands(p.Cmds)
}

// commands rewrites the commands of a pipeline: fields are read by a function that treats a missing map as empty, and
// what must not be null is checked where its name is known.
func (c *compiler) commands(cmds []*parse.CommandNode) []*parse.CommandNode {
	var out []*parse.CommandNode
	text := ""
	for i, cmd := range cmds {
		need := false
		if i+1 < len(cmds) {
			next := cmds[i+1]
			need = !functions.ArgumentTakesNull(parsing.Function(next), len(next.Args)-1, len(next.Args))
		}
		if i > 0 {
			text += " | "
		}
		text += cmd.String()
		out = append(out, c.command(cmd, i > 0, need, text)...)
	}
	return out
}

// command rewrites one command; piped means that it takes the value of the previous one.
func (c *compiler) command(cmd *parse.CommandNode, piped, need bool, text string) []*parse.CommandNode {
	name := parsing.Function(cmd)
	if name == "" {
		if len(cmd.Args) > 1 || piped {
			c.errorf(cmd.Pos, "a call begins with its function: upper .a, or .a | upper", "%s is not a function", cmd.Args[0])
			return []*parse.CommandNode{cmd}
		}
		if call := c.value(cmd.Args[0], need); call != nil {
			return []*parse.CommandNode{call}
		}
		return []*parse.CommandNode{cmd}
	}
	total := len(cmd.Args) - 1
	if piped {
		total++
	}
	c.call(cmd, name, total)
	for i, arg := range cmd.Args[1:] {
		if call := c.value(arg, !functions.ArgumentTakesNull(name, i, total)); call != nil {
			cmd.Args[i+1] = pipeNode(arg.Position(), call)
			c.Sites[len(c.Sites)-1].IsMap = i == 0 && looksUpKey(name, cmd.Args)
		}
	}
	if need && functions.MayBeNull(name) {
		id, _ := c.newSite(cmd.Pos, text)
		return []*parse.CommandNode{cmd, c.callNode(program.FnNeed, id, cmd.Pos)}
	}
	return []*parse.CommandNode{cmd}
}

// prints records that the current template prints another one, with its holes.
func (c *compiler) prints(name string) {
	c.Printing[c.current] = append(c.Printing[c.current], name)
}

// newSite adds a site; it returns its number.
func (c *compiler) newSite(pos parse.Pos, text string) (int, *program.Site) {
	s := program.Site{Text: text}
	s.Line, s.Column = c.At(pos)
	c.Sites = append(c.Sites, s)
	return len(c.Sites) - 1, &c.Sites[len(c.Sites)-1]
}

// callNode returns a call of one of the rewrite's functions for a site. Each site has a function of its own: passing
// its number as an argument would make every call slower.
func (c *compiler) callNode(name string, id int, pos parse.Pos, args ...parse.Node) *parse.CommandNode {
	own := name + strconv.Itoa(id)
	c.Calls = append(c.Calls, program.Call{Name: own, Function: name, Site: id})
	return commandNode(pos, append([]parse.Node{identNode(own, pos)}, args...)...)
}

// value returns the call that reads the value of n, or nil if n needs no change.
func (c *compiler) value(n parse.Node, need bool) *parse.CommandNode {
	read := program.FnGet
	if need {
		read = program.FnNeed
	}
	text := n.String()
	base, path, pos := c.chain(n)
	if path == nil && !need {
		return nil
	}
	switch b := base.(type) {
	case *parse.DotNode, *parse.VariableNode:
	case *parse.PipeNode:
		if path == nil && !pipeMayBeNull(b) {
			return nil
		}
	default:
		return nil // a constant, or a function without arguments
	}
	id, s := c.newSite(pos, text)
	s.Path = path
	return c.callNode(read, id, pos, base)
}

// chain splits an expression into its base and the fields read from it. It rewrites pipelines in it.
func (c *compiler) chain(n parse.Node) (base parse.Node, path []string, pos parse.Pos) {
	switch n := n.(type) {
	case *parse.FieldNode:
		pos := fieldPos(n.Pos, n.Ident)
		return &parse.DotNode{NodeType: parse.NodeDot, Pos: pos}, n.Ident, pos
	case *parse.VariableNode:
		pos := fieldPos(n.Pos, n.Ident)
		if len(n.Ident) == 1 {
			return n, nil, pos
		}
		return &parse.VariableNode{NodeType: parse.NodeVariable, Pos: pos, Ident: n.Ident[:1]}, n.Ident[1:], pos
	case *parse.ChainNode:
		text := n.Node.String()
		inner, path, _ := c.chain(n.Node)
		if path != nil {
			id, s := c.newSite(n.Pos, text)
			s.Path = path
			inner = pipeNode(n.Pos, c.callNode(program.FnGet, id, n.Pos, inner))
		}
		if id, ok := inner.(*parse.IdentifierNode); ok {
			c.call(commandNode(id.Pos, id), id.Ident, 0)
		}
		return inner, n.Field, n.Pos
	case *parse.PipeNode:
		c.pipe(n)
		return n, nil, n.Pos
	case *parse.IdentifierNode:
		c.call(commandNode(n.Pos, n), n.Ident, 0)
	}
	return n, nil, n.Position()
}

// fieldPos returns the start of a chain of fields: the parser records the position of its second field.
func fieldPos(pos parse.Pos, ident []string) parse.Pos {
	if len(ident) < 2 {
		return pos
	}
	first := len(ident[0])
	if !strings.HasPrefix(ident[0], "$") {
		first++
	}
	return pos - parse.Pos(first)
}
