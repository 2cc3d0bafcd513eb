package holes

import (
	"slices"
	"strings"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// branch is the condition of a branch, as written, so that branches which exclude each other are not taken together.
type branch struct {
	condition string
	negated   bool
	// within are the conditions that lead to it.
	within map[string]bool
}

// path says which conditions are true in one probe.
type path func(condition string) bool

// printer is one probe.
type printer struct {
	*Source
	skeleton.Output
	holds  path
	splice byte // what toYaml is assumed to print
	depth  int
}

// branchAt reads a branch from the text of the template, because its pipeline has been rewritten.
func (s *Source) branchAt(b *parse.BranchNode) branch {
	text := strings.TrimPrefix(strings.TrimPrefix(s.Action(b.Pipe.Pos), s.Left), "-")
	words := strings.Fields(strings.TrimSuffix(strings.TrimSuffix(text, s.Right), "-"))
	for len(words) > 0 && slices.Contains([]string{"if", "else", "with", "range"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 1 && words[0] == "not" {
		return branch{condition: strings.Trim(strings.Join(words[1:], " "), "()"), negated: true}
	}
	return branch{condition: strings.Trim(strings.Join(words, " "), "()")}
}

func branchOf(n parse.Node) *parse.BranchNode {
	switch n := n.(type) {
	case *parse.IfNode:
		return &n.BranchNode
	case *parse.WithNode:
		return &n.BranchNode
	case *parse.RangeNode:
		return &n.BranchNode
	}
	return nil
}

func (q *printer) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			line, _ := q.At(n.Pos)
			q.Mark(line, true)
			q.Buf = append(q.Buf, n.Text...)
		case *parse.ActionNode:
			q.action(n)
		case *parse.TemplateNode:
			q.template(n.Name)
		default:
			b := branchOf(n)
			if b == nil {
				continue
			}
			if at := q.branchAt(b); q.holds(at.condition) != at.negated {
				q.list(b.List)
			} else {
				q.list(b.ElseList)
			}
		}
	}
}

func (q *printer) template(name string) {
	tree := q.Trees[name]
	if tree == nil || q.depth > 10 {
		return
	}
	q.depth++
	q.list(tree.Root)
	q.depth--
}

// action prints what a hole would, as far as it is known.
func (q *printer) action(n *parse.ActionNode) {
	a := q.Actions[n]
	if a == nil {
		return
	}
	s := &q.Sites[a.Site]
	q.Mark(s.Line, false)
	alone := s.NewLine || q.AtLineStart()
	var text string
	if a.Include != "" {
		in := q.Include(alone)
		q.template(a.Include)
		text = string(q.Buf[in.At:])
		q.Remove(in)
	} else {
		kind := byte(skeleton.KindValue)
		if s.Mode == program.ModeYAML && alone {
			kind = q.splice
		}
		text = string(q.Placeholder(nil, a.Site, nil, kind))
	}
	for _, stage := range a.Stages {
		text = layOut(stage, text)
	}
	q.Buf = append(q.Buf, text...)
}

// layOut applies one layout function; a width that is not constant counts as 2.
func layOut(stage *parse.CommandNode, text string) string {
	width := 2
	if len(stage.Args) > 1 {
		if n, ok := stage.Args[1].(*parse.NumberNode); ok && n.IsInt && n.Int64 >= 0 && n.Int64 < 1000 {
			width = int(n.Int64)
		}
	}
	switch parsing.Function(stage) {
	case program.FnTrim:
		return strings.TrimSpace(text)
	case program.FnIndent:
		return values.Indent(width, text)
	}
	return "\n" + values.Indent(width, text)
}
