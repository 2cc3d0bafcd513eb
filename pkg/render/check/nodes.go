package check

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/skeleton"
)

// isSplice reports whether a node has only what holes print: any number of entries or items.
func isSplice(n *skeleton.Node) bool {
	switch {
	case n.Kind == skeleton.MapNode && len(n.Entries) > 0:
		return !slices.ContainsFunc(n.Entries, func(e skeleton.Entry) bool { return e.Splice < 0 })
	case n.Kind == skeleton.ListNode && len(n.Items) > 0:
		return !slices.ContainsFunc(n.Items, func(i *skeleton.Node) bool { return i.Kind != skeleton.SpliceNode })
	}
	return n.Kind == skeleton.SpliceNode
}

// entry is the entry of a map with a key; nil if it has none, or only holes know.
func entry(n *skeleton.Node, key string) *skeleton.Entry {
	i := slices.IndexFunc(n.Entries, func(e skeleton.Entry) bool {
		return e.Key == key && e.Splice < 0 && len(e.Holes) == 0
	})
	if i < 0 {
		return nil
	}
	return &n.Entries[i]
}

// holes are the holes in a scalar, or those whose entries or items are in a map or list.
func (d *Documents) holes(n *skeleton.Node) (list []holes.Hole) {
	switch n.Kind {
	case skeleton.HoleNode, skeleton.SpliceNode:
		return []holes.Hole{d.Hole(n.Record)}
	case skeleton.TextNode:
		return d.holesIn(n.Parts)
	}
	for _, e := range n.Entries {
		if e.Splice >= 0 {
			list = append(list, d.Hole(e.Splice))
		}
	}
	for _, i := range n.Items {
		if i.Kind == skeleton.SpliceNode {
			list = append(list, d.Hole(i.Record))
		}
	}
	return list
}

// entryHoles are the holes in a key, or the one whose entries are there.
func (d *Documents) entryHoles(e skeleton.Entry) []holes.Hole {
	if e.Splice >= 0 {
		return []holes.Hole{d.Hole(e.Splice)}
	}
	return d.holesIn(e.Holes)
}

func (d *Documents) holesIn(parts []skeleton.Part) (list []holes.Hole) {
	for _, p := range parts {
		if p.Record >= 0 {
			list = append(list, d.Hole(p.Record))
		}
	}
	return list
}
