package holes

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"text/template/parse"
	"time"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// maxProbes limits the work for a template with very many conditions.
const maxProbes = 100

// Source is a compiled template, with what the compiler knows of its actions.
type Source struct {
	*program.Template
	Actions map[*parse.ActionNode]*Action
	// Printing has the templates that a template prints with their holes, by name.
	Printing map[string][]string
	// PrintsAny means that some template prints one whose name is computed.
	PrintsAny bool
}

// Action is what the compiler knows of an action that prints.
type Action struct {
	Site   int
	Tree   string               // the template that contains it
	Stages []*parse.CommandNode // layout functions
	// Include is the template that it prints, if its name is constant.
	Include string
	// Text and Scalar mean that the last function always returns text, or a number or a boolean.
	Text, Scalar bool
	// GoQuoted means that the last function is printf "%q".
	GoQuoted bool
}

// Found is what the probes found.
type Found struct {
	// Holes are in the order of the template.
	Holes []Hole
	// Fields are near the root of the document, outside lists. A field with several possible values is there once for
	// each.
	Fields []Field
	// Documents are those of the paths that were probed.
	Documents []*Document
	// Invalid is the error in the YAML of every path; nil if there is none.
	Invalid *parsing.Error
	// Quoted are the holes that would put the quotes of printf "%q" into a value.
	Quoted []*parsing.Error
}

// search is what one search has found so far.
type search struct {
	*Source
	Found
	branches []branch
	sights   []holeUse // by site
	written  fieldCount
}

// Find prints the skeletons of paths through the template's conditions: those that reach each block, up to maxProbes.
// It sets InText of the sites.
func Find(source *Source) Found {
	s := &search{Source: source, sights: make([]holeUse, len(source.Sites)), written: fieldCount{seen: map[string]int{}}}
	for _, name := range values.SortedKeys(s.Trees) {
		s.collect(s.Trees[name].Root, nil)
	}
	all := func(string) bool { return true }
	errs := []*parsing.Error{s.probe(all, skeleton.KindMap), s.probe(all, skeleton.KindList)}
	if len(s.branches) > 0 {
		errs = append(errs, s.probe(func(string) bool { return false }, skeleton.KindMap))
	}
	for _, flipped := range s.branches[:min(maxProbes, len(s.branches))] {
		errs = append(errs, s.probe(func(condition string) bool {
			leads, ok := flipped.within[condition]
			return condition != flipped.condition && (leads || !ok)
		}, skeleton.KindMap))
	}
	s.Invalid = common(errs)
	s.Fields = s.written.result()
	s.listHoles()
	return s.Found
}

// common returns the error that every probe found at the same place: it does not depend on the path.
func common(errs []*parsing.Error) *parsing.Error {
	first := errs[0]
	for _, err := range errs {
		if err == nil || err.Line != first.Line {
			return nil
		}
	}
	return first
}

// collect lists the branches of a template, with the conditions that lead to them.
func (s *search) collect(l *parse.ListNode, within map[string]bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		if b := branchOf(n); b != nil {
			at := s.branchAt(b)
			at.within = within
			s.branches = append(s.branches, at)
			s.collect(b.List, also(within, at.condition, !at.negated))
			s.collect(b.ElseList, also(within, at.condition, at.negated))
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

// probe prints and parses one path. It returns the error in the YAML, or nil.
func (s *search) probe(holds path, splice byte) *parsing.Error {
	q := &printer{Source: s.Source, holds: holds, splice: splice}
	q.Reset(true)
	q.list(s.Trees[parsing.Main].Root)
	tree, err := skeleton.Parse(q.Buf, values.NewBudget(values.Limits{Bytes: 1 << 30,
		Steps: 1 << 30, Time: time.Hour}, nil))
	if err == nil {
		s.see(q, tree.Root)
		return nil
	}
	var e *skeleton.Error
	if !errors.As(err, &e) {
		return &parsing.Error{Problem: err.Error()}
	}
	if e.Record >= 0 && e.Record < len(q.Records) {
		return s.Sites[q.Records[e.Record].Site].ErrorAt(e)
	}
	return &parsing.Error{Line: q.LineOf(e.Line), Problem: e.Problem, Fix: e.Fix}
}

// see records the document of a path.
func (s *search) see(q *printer, root *skeleton.Node) {
	v := &visit{records: q.Records, sights: s.sights, walked: map[*skeleton.Node]bool{}}
	v.node(root, "")
	s.written.read(q, root)
	s.Documents = append(s.Documents, &Document{Root: root, by: q, lines: map[int]int{}})
	for _, r := range q.Records {
		s.sights[r.Site].seen = true
	}
}

// listHoles makes the list of holes, and finds printf "%q" as a whole value.
func (s *search) listHoles() {
	reachable := s.reachableTemplates()
	bySite := map[int]Hole{}
	for _, a := range slices.SortedFunc(maps.Values(s.Actions), func(a, b *Action) int { return a.Site - b.Site }) {
		site, seen := &s.Sites[a.Site], s.sights[a.Site]
		if !site.Hole {
			continue
		}
		if a.GoQuoted && seen.whole {
			s.Quoted = append(s.Quoted, &parsing.Error{Line: site.Line, Column: site.Column,
				Problem: `printf "%q" would put its quotes into the value`, Fix: "write `| quote`"})
		}
		if !s.PrintsAny && !reachable[a.Tree] {
			a.Text = true // every include of its template passes its text to functions
		}
		site.InText = seen.seen && (!seen.whole || seen.text && s.isPrintedOnce(a.Tree))
		bySite[a.Site] = a.asHole(site, seen)
		s.Holes = append(s.Holes, bySite[a.Site])
	}
	slices.SortStableFunc(s.Holes, func(a, b Hole) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	for _, d := range s.Documents {
		d.holes = bySite
	}
}

// isPrintedOnce reports whether a template is printed at one place only, so that each of its holes has one place in the
// document.
func (s *search) isPrintedOnce(name string) bool {
	for range s.Trees {
		if name == parsing.Main {
			return true
		}
		var by []string
		for parent, names := range s.Printing {
			for _, n := range names {
				if n == name {
					by = append(by, parent)
				}
			}
		}
		if len(by) != 1 || s.PrintsAny {
			return false
		}
		name = by[0]
	}
	return name == parsing.Main
}

// reachableTemplates returns the templates whose text, with its holes, can be part of a document.
func (s *search) reachableTemplates() map[string]bool {
	out := map[string]bool{}
	queue := []string{parsing.Main}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if !out[name] {
			out[name] = true
			queue = append(queue, s.Printing[name]...)
		}
	}
	return out
}
