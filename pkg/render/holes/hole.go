package holes

import (
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/program"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
)

// Hole is a place where a template prints a value.
type Hole struct {
	// Line and Column are the start of the printing part of its action.
	Line, Column int
	// Text is the action as written, with delimiters.
	Text string
	// Path is where the hole is in the document, ".spec.replicas" or ".spec.containers[].image", or "" if unknown, as in a
	// comment. If a hole has several paths, it is one of them.
	Path string
	// Structure means that a map or list of the upstream can enter here: the hole is a whole value, or prints entries or
	// items with toYaml. If it is false, no path through the template lets a map or list in.
	Structure bool
	// Key means that the hole is a key or part of one.
	Key bool
	// String means that the result is always a string: the hole is in quotes or next to other text, or its last function
	// returns text.
	String bool
}

// holeUse is what the probes saw of a hole.
type holeUse struct {
	seen, whole, key, text bool
	path                   string
}

// asHole returns the Hole for what the probes saw. A hole that no probe saw counts as a whole value.
func (a *Action) asHole(s *program.Site, seen holeUse) Hole {
	return Hole{Line: s.Line, Column: s.Column, Text: s.Source, Path: seen.path, Key: seen.key,
		Structure: !a.Text && !s.InText && !a.Scalar, String: a.Text || s.InText}
}

// visit walks the document of one path and records the places of its holes.
type visit struct {
	records []skeleton.Record
	sights  []holeUse
	walked  map[*skeleton.Node]bool
}

func (v *visit) node(n *skeleton.Node, path string) {
	if v.walked[n] {
		return // an alias: its anchor has been walked
	}
	v.walked[n] = true
	switch n.Kind {
	case skeleton.HoleNode, skeleton.SpliceNode:
		v.at(n.Record, path).whole = true
	case skeleton.TextNode:
		v.text(n.Parts, path, false)
	case skeleton.ListNode:
		for _, item := range n.Items {
			v.node(item, path+"[]")
		}
	case skeleton.MapNode:
		for _, e := range n.Entries {
			if e.Splice >= 0 {
				v.at(e.Splice, path).whole = true
				continue
			}
			v.text(e.Holes, path, true)
			v.node(e.Value, path+pathStep(e))
		}
	}
}

func (v *visit) text(parts []skeleton.Part, path string, isKey bool) {
	for _, part := range parts {
		if part.Record >= 0 {
			use := v.at(part.Record, path)
			use.text, use.key = true, use.key || isKey
		}
	}
}

// at returns what was seen of the hole of a record, which is at a path now.
func (v *visit) at(record int, path string) *holeUse {
	use := &v.sights[v.records[record].Site]
	use.path = path
	return use
}

// pathStep returns the key of an entry as a step of a path; a key with holes is a star.
func pathStep(e skeleton.Entry) string {
	switch {
	case e.Holes != nil:
		return "[*]"
	case strings.ContainsAny(e.Key, "./[]'\" "):
		return "['" + strings.ReplaceAll(e.Key, "'", "''") + "']"
	}
	return "." + e.Key
}
