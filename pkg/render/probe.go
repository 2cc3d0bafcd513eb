package render

import (
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"
	"text/template/parse"
	"time"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Probes print skeletons without an upstream, each on another path through the template's conditions. They find the places of
// holes, and YAML that is invalid on every path.

// maxProbes limits the work for a template with very many conditions.
const maxProbes = 100

type prober struct {
	*compiler
	branches []branch
	sights   []holeUse
	written  fieldCount
	printed  []*Probed
}

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
	*compiler
	output
	holds  path
	splice byte // what toYaml is assumed to print
	depth  int
	walked map[*skeleton.Node]bool
}

// probe runs the probes and records the holes and errors that they find.
func (c *compiler) probe() {
	p := &prober{compiler: c, sights: make([]holeUse, len(c.sites)), written: fieldCount{seen: map[string]int{}}}
	for _, name := range values.SortedKeys(c.trees) {
		p.collect(c.trees[name].Root, nil)
	}
	all := func(string) bool { return true }
	errs := []*Error{p.run(all, skeleton.KindMap), p.run(all, skeleton.KindList)}
	if len(p.branches) > 0 {
		errs = append(errs, p.run(func(string) bool { return false }, skeleton.KindMap))
	}
	for i, flipped := range p.branches {
		if i == maxProbes {
			break
		}
		errs = append(errs, p.run(func(condition string) bool {
			leads, ok := flipped.within[condition]
			return condition != flipped.condition && (leads || !ok)
		}, skeleton.KindMap))
	}
	if err := common(errs); err != nil && len(c.errs) == 0 {
		c.errs = append(c.errs, err)
	}
	p.listHoles()
	c.fields = p.written.result()
	p.showDocuments()
}

// showDocuments calls Options.Probed with the documents, after all probes.
func (p *prober) showDocuments() {
	holes := map[int]Hole{}
	for i := range p.sites {
		if p.sites[i].hole {
			holes[i] = p.sites[i].asHole(p.sights[i])
		}
	}
	for _, d := range p.printed {
		d.holes = holes
		p.options.Probed(d)
	}
	p.options.Probed = nil // keep no reference to the callback
}

// common returns the error that every probe found at the same place: it does not depend on the path.
func common(errs []*Error) *Error {
	first := errs[0]
	for _, err := range errs {
		if err == nil || err.Line != first.Line {
			return nil
		}
	}
	return first
}

// collect lists the branches of a template, with the conditions that lead to them.
func (p *prober) collect(l *parse.ListNode, within map[string]bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		if b := branchOf(n); b != nil {
			at := p.branchAt(b)
			at.within = within
			p.branches = append(p.branches, at)
			p.collect(b.List, also(within, at.condition, !at.negated))
			p.collect(b.ElseList, also(within, at.condition, at.negated))
		}
	}
}

func also(within map[string]bool, condition string, holds bool) map[string]bool {
	out := maps.Clone(within)
	if out == nil {
		out = map[string]bool{}
	}
	out[condition] = holds
	return out
}

// branchAt reads a branch from the text of the template, because its pipeline has been rewritten.
func (c *compiler) branchAt(b *parse.BranchNode) branch {
	source := c.position.Action(b.Pipe.Pos, c.options.Left, c.options.Right)
	source = strings.TrimPrefix(strings.TrimPrefix(source, c.options.Left), "-")
	source = strings.TrimSuffix(strings.TrimSuffix(source, c.options.Right), "-")
	words := strings.Fields(source)
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

// run prints and parses one probe. It returns the error in the YAML, or nil.
func (p *prober) run(holds path, splice byte) *Error {
	q := &printer{compiler: p.compiler, output: output{blank: true}, holds: holds, splice: splice, walked: map[*skeleton.Node]bool{}}
	q.list(p.trees[parsing.Main].Root)
	tree, err := skeleton.Parse(q.buf, NewBudget(Limits{Bytes: 1 << 30, Steps: 1 << 30, Time: time.Hour}, nil))
	if err == nil {
		p.recordHoles(q, tree.Root, "")
		p.written.read(q, tree.Root)
		if p.options.Probed != nil {
			p.printed = append(p.printed, &Probed{Root: tree.Root, by: q, lines: map[int]int{}})
		}
		for _, r := range q.recs {
			p.sights[r.site].seen = true
		}
		return nil
	}
	var s *skeleton.Error
	if !errors.As(err, &s) {
		return &Error{Problem: err.Error()}
	}
	if s.Record >= 0 && s.Record < len(q.recs) {
		return p.sites[q.recs[s.Record].site].errorAt(s)
	}
	return &Error{Line: p.place(q.buf, q.trace, s.Line), Problem: s.Problem, Fix: s.Fix}
}

// recordHoles walks a parsed probe and records the places of its holes.
func (p *prober) recordHoles(q *printer, n *skeleton.Node, path string) {
	if q.walked[n] {
		return // an alias: its anchor has been walked
	}
	q.walked[n] = true
	note := func(record int, f func(*holeUse)) {
		s := &p.sights[q.recs[record].site]
		s.path = path
		f(s)
	}
	inText := func(parts []skeleton.Part, key bool) {
		for _, part := range parts {
			if part.Record >= 0 {
				note(part.Record, func(s *holeUse) { s.text, s.key = true, s.key || key })
			}
		}
	}
	switch n.Kind {
	case skeleton.HoleNode, skeleton.SpliceNode:
		note(n.Record, func(s *holeUse) { s.whole = true })
	case skeleton.TextNode:
		inText(n.Parts, false)
	case skeleton.ListNode:
		for _, item := range n.Items {
			p.recordHoles(q, item, path+"[]")
		}
	case skeleton.MapNode:
		for _, e := range n.Entries {
			if e.Splice >= 0 {
				note(e.Splice, func(s *holeUse) { s.whole = true })
				continue
			}
			inText(e.Holes, true)
			p.recordHoles(q, e.Value, path+q.pathStep(e))
		}
	}
}

// pathStep returns the key of an entry as a step of a path; a key with holes is a star.
func (q *printer) pathStep(e skeleton.Entry) string {
	switch {
	case e.Holes != nil:
		return "[*]"
	case strings.ContainsAny(e.Key, "./[]'\" "):
		return "['" + strings.ReplaceAll(e.Key, "'", "''") + "']"
	}
	return "." + e.Key
}

// listHoles makes the list of holes, and finds printf "%q" as a whole value.
func (p *prober) listHoles() {
	reachableTemplates := p.reachableTemplates()
	for i := range p.sites {
		s := &p.sites[i]
		if !s.hole {
			continue
		}
		if s.goQuoted && p.sights[i].whole {
			p.errs = append(p.errs, &Error{Line: s.line, Column: s.column, Problem: `printf "%q" would put its quotes into the value`,
				Fix: "write `| quote`"})
		}
		if !p.printsAny && !reachableTemplates[s.tree] {
			s.alwaysText = true // every include of its template passes its text to functions
		}
		seen := p.sights[i]
		s.inText = seen.seen && (!seen.whole || seen.text && p.isPrintedOnce(s.tree))
		p.holes = append(p.holes, s.asHole(p.sights[i]))
	}
	sort.SliceStable(p.holes, func(i, j int) bool {
		a, b := p.holes[i], p.holes[j]
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
}

// isPrintedOnce reports whether a template is printed at one place only, so that each of its holes has one place in the document.
func (p *prober) isPrintedOnce(name string) bool {
	for range p.trees {
		if name == parsing.Main {
			return true
		}
		var by []string
		for parent, names := range p.printing {
			for _, n := range names {
				if n == name {
					by = append(by, parent)
				}
			}
		}
		if len(by) != 1 || p.printsAny {
			return false
		}
		name = by[0]
	}
	return name == parsing.Main
}

// reachableTemplates returns the templates whose text, with its holes, can be part of a document.
func (p *prober) reachableTemplates() map[string]bool {
	out := map[string]bool{}
	queue := []string{parsing.Main}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if !out[name] {
			out[name] = true
			queue = append(queue, p.printing[name]...)
		}
	}
	return out
}

func (q *printer) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			q.trace = append(q.trace, traced{offset: len(q.buf), pos: n.Pos, site: -1})
			q.buf = append(q.buf, n.Text...)
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
	tree := q.trees[name]
	if tree == nil || q.depth > 10 {
		return
	}
	q.depth++
	q.list(tree.Root)
	q.depth--
}

// action prints what a hole would, as far as it is known.
func (q *printer) action(n *parse.ActionNode) {
	a := q.actions[n]
	if a == nil {
		return
	}
	q.trace = append(q.trace, traced{offset: len(q.buf), pos: -1, site: a.site})
	s := &q.sites[a.site]
	alone := s.newline || q.atLineStart()
	var text string
	if a.include != "" {
		inner := &printer{compiler: q.compiler, output: output{recs: q.recs, blank: alone}, holds: q.holds, splice: q.splice, depth: q.depth}
		inner.template(a.include)
		text, q.recs = string(inner.buf), inner.recs
	} else {
		kind := byte(skeleton.KindValue)
		if s.mode == modeYAML && alone {
			kind = q.splice
		}
		text = string(q.placeholder(nil, a.site, nil, kind))
	}
	for _, stage := range a.stages {
		text = layOut(stage, text)
	}
	q.buf = append(q.buf, text...)
}

// layOut applies one layout function; a width that is not constant counts as 2.
func layOut(stage *parse.CommandNode, text string) string {
	width := 2
	if len(stage.Args) > 1 {
		if n, ok := stage.Args[1].(*parse.NumberNode); ok && n.IsInt && n.Int64 >= 0 && n.Int64 < 1000 {
			width = int(n.Int64)
		}
	}
	switch function(stage) {
	case fnTrim:
		return strings.TrimSpace(text)
	case fnIndent:
		return values.Indent(width, text)
	}
	return "\n" + values.Indent(width, text)
}
