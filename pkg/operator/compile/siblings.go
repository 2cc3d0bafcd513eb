package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// findSiblings finds out which downstreams read which others, and in which order they must be rendered.
func findSiblings(c *compilation) {
	for _, d := range c.p.downstreams {
		names := map[string]bool{}
		for _, program := range []*rules.Program{d.When, d.Items} {
			if program == nil {
				continue
			}
			paths, whole := program.Reads("downstreams")
			if whole || slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 }) {
				c.fail(fmt.Sprintf("downstreams[%d]", d.Index), "name one: downstreams.NAME",
					"it reads all downstreams, itself among them")
				continue
			}
			for _, path := range paths {
				names[path[0]] = true
			}
		}
		if d.template != nil {
			for _, name := range readingOf(c.p.Renderer, d.template).Downstreams() {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if i := c.p.IndexOf(name); i >= 0 {
				d.Siblings = append(d.Siblings, i)
			}
		}
	}
	orderDownstreams(c)
	warnOfKeptNamespaces(c)
	warnOfKeptContents(c)
	for _, d := range c.p.downstreams {
		var view drift.View
		for _, other := range c.p.downstreams {
			keep(&view, other.When, "downstreams", d.Downstream.Downstream)
			keep(&view, other.Items, "downstreams", d.Downstream.Downstream)
			if other.template == nil {
				continue
			}
			paths, whole := d.objectPaths(readingOf(c.p.Renderer, other.template).InputReads(parsing.DownstreamKey(d.Name)))
			view.Keep, view.KeepWhole = append(view.Keep, paths...), view.KeepWhole || whole
		}
		d.Shown = desired.InputView{Paths: view.Keep, Whole: view.KeepWhole}
	}
}

// objectPaths are paths below a downstream as paths of one object: if it has several, the first step is the name of
// one, unless a template ranges over them. Which it is does not show, and a path that no object has keeps nothing.
func (d *downstream) objectPaths(paths [][]string, whole bool) ([][]string, bool) {
	if !d.Several() {
		return paths, whole
	}
	var below [][]string
	for _, path := range paths {
		if len(path) < 2 {
			return nil, true
		}
		below = append(below, path, path[1:])
	}
	return below, whole
}

// orderDownstreams sorts the downstreams, each behind those that it reads. One that comes to itself in the end is an
// error.
func orderDownstreams(c *compilation) {
	const todo, doing, done = 0, 1, 2
	state := make([]int, len(c.p.downstreams))
	var way []string
	var visit func(i int) bool
	visit = func(i int) bool {
		d := c.p.downstreams[i]
		way = append(way, d.Name)
		defer func() { way = way[:len(way)-1] }()
		switch state[i] {
		case done:
			return true
		case doing:
			reportCircle(c, slices.Clone(way[slices.Index(way, d.Name):]))
			return false
		}
		state[i] = doing
		for _, next := range c.p.ComesAfter(d.Downstream.Downstream) {
			if !visit(next) {
				return false
			}
		}
		state[i] = done
		c.p.Order = append(c.p.Order, i)
		return true
	}
	for i := range c.p.downstreams {
		if state[i] == todo && !visit(i) {
			break
		}
	}
	if len(c.p.Order) < len(c.p.downstreams) { // after an error
		c.p.Order = c.p.Order[:0]
		for i := range c.p.downstreams {
			c.p.Order = append(c.p.Order, i)
		}
	}
}

// warnOfKeptNamespaces warns of a Namespace that may be unwanted while something that comes after it is wanted: it is
// not deleted then.
func warnOfKeptNamespaces(c *compilation) {
	for i, d := range c.p.downstreams {
		for _, j := range c.p.ComesAfter(d.Downstream.Downstream) {
			other, texts := c.p.downstreams[j], d.Config.When
			if d.Several() {
				texts += " " + d.Config.ForEach.Items
			}
			if when := other.Config.When; other.Config.Kind == "Namespace" && when != "" && when != "true" &&
				!strings.Contains(texts, when) {
				c.warn(*c.file.Errorf(fmt.Sprintf("downstreams[%d]", i), fmt.Sprintf("give it the same when: %s", when),
					"it comes after %s, a Namespace, and may be wanted when that is not: while it is wanted in the Namespace, this "+
						"is not deleted", other.Name))
			}
		}
	}
}

func reportCircle(c *compilation, way []string) {
	i := c.p.IndexOf(way[0])
	c.fail(fmt.Sprintf("downstreams[%d]", i), "let one of them do without the other",
		"downstreams read or come after each other: %s",
		strings.Join(way, " needs "))
}
