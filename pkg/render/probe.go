package render

import (
	"errors"
	"sort"
	"strings"
	"text/template/parse"
)

// Probes print skeletons without an upstream, each on another path through the template's conditions. They tell where
// the holes stand, and find YAML that is broken on every path.

// maxProbes bounds the work for a template with very many conditions.
const maxProbes = 100

type prober struct {
	*compiler
	branches []*parse.BranchNode
	sights   []sighting
	written  fieldCount
}

// printer is one probe.
type printer struct {
	*compiler
	taken  func(*parse.BranchNode) bool
	splice byte // what toYaml is taken to print
	blank  bool // the text begins a line
	buf    []byte
	recs   []record
	trace  []traced
	depth  int
	walked map[*node]bool
}

// probe runs the probes and notes the holes and errors that they find.
func (c *compiler) probe() {
	p := &prober{compiler: c, sights: make([]sighting, len(c.sites)), written: fieldCount{seen: map[string]int{}}}
	for _, name := range sortedKeys(c.trees) {
		p.collect(c.trees[name].Root)
	}
	all := func(*parse.BranchNode) bool { return true }
	errs := []*Error{p.run(all, kindMap), p.run(all, kindList)}
	if len(p.branches) > 0 {
		errs = append(errs, p.run(func(*parse.BranchNode) bool { return false }, kindMap))
	}
	for i, flipped := range p.branches {
		if i == maxProbes {
			break
		}
		errs = append(errs, p.run(func(b *parse.BranchNode) bool { return b != flipped }, kindMap))
	}
	if err := common(errs); err != nil && len(c.errs) == 0 {
		c.errs = append(c.errs, err)
	}
	p.judge()
	c.fields = p.written.result()
}

// common gives the error that every probe found, at the same place: that is no matter of the path taken.
func common(errs []*Error) *Error {
	first := errs[0]
	for _, err := range errs {
		if err == nil || err.Line != first.Line {
			return nil
		}
	}
	return first
}

// collect lists the branches of a template.
func (p *prober) collect(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		if b := branchOf(n); b != nil {
			p.branches = append(p.branches, b)
			p.collect(b.List)
			p.collect(b.ElseList)
		}
	}
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

// run prints and parses one probe. It gives the error of the YAML, if any.
func (p *prober) run(taken func(*parse.BranchNode) bool, splice byte) *Error {
	q := &printer{compiler: p.compiler, taken: taken, splice: splice, blank: true, walked: map[*node]bool{}}
	q.list(p.trees[p.name].Root)
	tree, err := parseSkeleton(q.buf)
	if err == nil {
		p.sight(q, tree.root, "")
		p.written.read(q, tree.root)
		for _, r := range q.recs {
			p.sights[r.site].seen = true
		}
		return nil
	}
	var s *skeletonError
	if !errors.As(err, &s) {
		return &Error{Problem: err.Error()}
	}
	if s.record >= 0 && s.record < len(q.recs) {
		return s.at(&p.sites[q.recs[s.record].site])
	}
	return &Error{Line: p.place(q.buf, q.trace, s.line), Problem: s.problem, Mend: s.mend}
}

// sight walks a parsed probe and notes where its holes stand.
func (p *prober) sight(q *printer, n *node, path string) {
	if q.walked[n] {
		return // an alias: its anchor was seen
	}
	q.walked[n] = true
	note := func(record int, f func(*sighting)) {
		s := &p.sights[q.recs[record].site]
		s.path = path
		f(s)
	}
	inText := func(parts []part, key bool) {
		for _, part := range parts {
			if part.record >= 0 {
				note(part.record, func(s *sighting) { s.text, s.key = true, s.key || key })
			}
		}
	}
	switch n.kind {
	case holeNode, spliceNode:
		note(n.record, func(s *sighting) { s.whole = true })
	case textNode:
		inText(n.parts, false)
	case listNode:
		for _, item := range n.items {
			p.sight(q, item, path+"[]")
		}
	case mapNode:
		for _, e := range n.entries {
			if e.splice >= 0 {
				note(e.splice, func(s *sighting) { s.whole = true })
				continue
			}
			inText(e.holes, true)
			p.sight(q, e.value, path+q.pathStep(e))
		}
	}
}

// pathStep gives an entry's key as a step of a path; a key with holes is a star.
func (q *printer) pathStep(e entry) string {
	switch {
	case e.holes != nil:
		return "[*]"
	case strings.ContainsAny(e.key, "./[]'\" "):
		return "['" + strings.ReplaceAll(e.key, "'", "''") + "']"
	}
	return "." + e.key
}

// judge turns what was seen into the list of holes, and finds printf "%q" as a whole value.
func (p *prober) judge() {
	reached := p.reached()
	for i := range p.sites {
		s := &p.sites[i]
		if !s.hole {
			continue
		}
		if s.goQuoted && p.sights[i].whole {
			p.errs = append(p.errs, &Error{Line: s.line, Column: s.column, Problem: `printf "%q" would put its quotes into the value`, Mend: "write `| quote`"})
		}
		if !p.printsAny && !reached[s.tree] {
			s.alwaysText = true // its template's text goes through functions wherever it is included
		}
		p.holes = append(p.holes, s.asHole(p.sights[i]))
	}
	sort.SliceStable(p.holes, func(i, j int) bool {
		a, b := p.holes[i], p.holes[j]
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
}

// reached gives the templates whose text, with its holes, can come to stand in a document.
func (p *prober) reached() map[string]bool {
	out := map[string]bool{}
	queue := []string{p.name}
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
			if b := branchOf(n); b != nil && q.taken(b) {
				q.list(b.List)
			} else if b != nil {
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

// action prints what a hole would, as far as that is known.
func (q *printer) action(n *parse.ActionNode) {
	a := q.actions[n]
	if a == nil {
		return
	}
	q.trace = append(q.trace, traced{offset: len(q.buf), pos: -1, site: a.site})
	s := &q.sites[a.site]
	alone := s.newline || (&run{buf: q.buf, blank: q.blank}).atLineStart()
	var text string
	if a.include != "" {
		inner := &printer{compiler: q.compiler, taken: q.taken, splice: q.splice, recs: q.recs, depth: q.depth, blank: alone}
		inner.template(a.include)
		text, q.recs = string(inner.buf), inner.recs
	} else {
		kind := byte(kindValue)
		if s.mode == modeYAML && alone {
			kind = q.splice
		}
		q.recs = append(q.recs, record{site: a.site})
		text = string(appendPlaceholder(nil, kind, len(q.recs)-1))
	}
	for _, stage := range a.stages {
		text = layOut(stage, text)
	}
	q.buf = append(q.buf, text...)
}

// layOut applies one step of layout; a width that is not constant is taken to be 2.
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
		return indentText(width, text)
	}
	return "\n" + indentText(width, text)
}
