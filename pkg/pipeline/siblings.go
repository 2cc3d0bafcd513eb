package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// This file is about downstreams that read the live objects of others, which stand beside the inputs.

// Sibling returns what the cache keeps of an upstream's own object of a downstream; nil if there is none.
type Sibling func(downstream int, at operator.Ref) map[string]any

// WithSiblings returns in for an upstream whose own objects are known.
func (in Inputs) WithSiblings(sibling Sibling) Inputs {
	in.sibling = sibling
	return in
}

// SiblingsChanged reports whether a live object that w was made from is another one now, for those who read it.
func (p *Pipeline) SiblingsChanged(w *operator.Desired, sibling Sibling) bool {
	return slices.ContainsFunc(w.Siblings, func(r operator.SiblingRead) bool {
		return sumOf(p.Downstreams[r.Downstream].shownOf(sibling(r.Downstream, r.At))) != r.Sum
	})
}

// shownOf is what other downstreams can read of an object; nil if there is none. One that lacks all fields that are read is there.
func (d *Downstream) shownOf(kept map[string]any) map[string]any {
	if kept == nil {
		return nil
	}
	if shown := d.shown.Cut(kept); shown != nil {
		return shown
	}
	return map[string]any{}
}

// sumOf is the digest of what is read of an object; zero if there is none.
func sumOf(shown map[string]any) drift.Sum {
	if shown == nil {
		return drift.Sum{}
	}
	return drift.Digest(shown)
}

// siblingsOf gathers the objects that a downstream reads of others, by the names of these: one, or a map of several by their names.
// The error is a *waiting while one is missing. note, if not nil, takes what was read.
func (p *Pipeline) siblingsOf(
	d *Downstream, of func(int) []operator.DesiredObject, sibling Sibling, note func(operator.SiblingRead),
) (map[string]any, error) {
	found := make(map[string]any, len(d.Siblings))
	for _, i := range d.Siblings {
		other := p.Downstreams[i]
		several, missing := map[string]any{}, []string(nil)
		for _, o := range of(i) {
			switch {
			case o.Err != nil:
				return nil, &operator.WaitingError{Message: fmt.Sprintf("downstream %s, which it reads, is not known: %s", other.Name, shownError(other, o.Err))}
			case !o.Wanted && other.Several():
				continue
			case !o.Wanted:
				return nil, &operator.WaitingError{Message: fmt.Sprintf("downstream %s, which it reads, is not wanted, since its when is false: give both the same when",
					other.Name)}
			}
			var shown map[string]any
			if sibling != nil {
				shown = other.shownOf(sibling(i, o.Target))
			}
			if note != nil {
				note(operator.SiblingRead{Downstream: i, At: o.Target, Sum: sumOf(shown)})
			}
			if shown == nil {
				missing = append(missing, o.Target.String())
			}
			several[other.NameOf(o.Target)] = shown
			found[other.Name] = shown
		}
		if n := len(missing); n > 0 {
			if more := n - operator.NamesShown; more > 0 {
				missing = append(missing[:operator.NamesShown], fmt.Sprintf("%d more", more))
			}
			return nil, &operator.WaitingError{Message: fmt.Sprintf("downstream %s, which it reads, is missing: %s", other.Name, strings.Join(missing, ", "))}
		}
		if other.Several() {
			found[other.Name] = several
		}
	}
	return found, nil
}

func shownError(d *Downstream, err error) string { return hideValues(d.hidesValues, err).Error() }

// withSiblings returns in with what a downstream reads of others.
func (p *Pipeline) withSiblings(d *Downstream, of func(int) []operator.DesiredObject, in Inputs, note func(operator.SiblingRead)) (Inputs, error) {
	if len(d.Siblings) == 0 {
		return in, nil
	}
	found, err := p.siblingsOf(d, of, in.sibling, note)
	if err != nil {
		return in, err
	}
	in.downstreams, in.objects = found, maps.Clone(in.objects)
	if in.objects == nil {
		in.objects = map[string]any{}
	}
	for name, object := range found {
		in.objects[render.DownstreamKey(name)] = object
	}
	return in, nil
}

// readsSiblings reports whether an expression reads downstreams.
func (d *Downstream) readsSiblings(program *rules.Program) bool {
	paths, whole := program.Reads("downstreams")
	return whole || len(paths) > 0
}

// lacksField is err, or that one has to wait if an expression which reads other downstreams found a field missing.
func (d *Downstream) lacksField(err error) error {
	var failed *rules.EvalError
	if len(d.Siblings) > 0 && errors.As(err, &failed) && failed.LacksField() {
		return &operator.WaitingError{Message: hideValues(d.hidesValues, err).Error()}
	}
	return err
}

// siblings finds out which downstreams read which others, and in which order they must be told.
func (c *compiler) siblings() {
	for _, d := range c.p.Downstreams {
		names := map[string]bool{}
		for _, program := range []*rules.Program{d.when, d.items} {
			if program == nil {
				continue
			}
			paths, whole := program.Reads("downstreams")
			if whole || slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 }) {
				c.fail(fmt.Sprintf("downstreams[%d]", d.Index), "name one: downstreams.NAME", "it reads all downstreams, itself among them")
				continue
			}
			for _, path := range paths {
				names[path[0]] = true
			}
		}
		if d.template != nil {
			for _, name := range c.reading(d.template).Downstreams() {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if i := c.p.IndexOf(name); i >= 0 {
				d.Siblings = append(d.Siblings, i)
			}
		}
	}
	c.order()
	c.keptNamespaces()
	c.keptWithContents()
	for _, d := range c.p.Downstreams {
		var view drift.View
		for _, other := range c.p.Downstreams {
			keep(&view, other.when, "downstreams", d)
			keep(&view, other.items, "downstreams", d)
			if other.template == nil {
				continue
			}
			paths, whole := d.objectPaths(c.reading(other.template).InputReads(render.DownstreamKey(d.Name)))
			view.Keep, view.KeepWhole = append(view.Keep, paths...), view.KeepWhole || whole
		}
		d.shown = InputView{Paths: view.Keep, Whole: view.KeepWhole}
	}
}

// objectPaths are paths below a downstream as paths of one object: if it has several, the first step is the name of one, unless a template
// ranges over them. Which it is does not show, and a path that no object has keeps nothing.
func (d *Downstream) objectPaths(paths [][]string, whole bool) ([][]string, bool) {
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

// order sorts the downstreams, each behind those that it reads. One that comes to itself in the end is an error.
func (c *compiler) order() {
	const todo, doing, done = 0, 1, 2
	state := make([]int, len(c.p.Downstreams))
	var way []string
	var visit func(i int) bool
	visit = func(i int) bool {
		d := c.p.Downstreams[i]
		way = append(way, d.Name)
		defer func() { way = way[:len(way)-1] }()
		switch state[i] {
		case done:
			return true
		case doing:
			c.circle(slices.Clone(way[slices.Index(way, d.Name):]))
			return false
		}
		state[i] = doing
		for _, next := range c.p.ComesAfter(d.Downstream) {
			if !visit(next) {
				return false
			}
		}
		state[i] = done
		c.p.order = append(c.p.order, i)
		return true
	}
	for i := range c.p.Downstreams {
		if state[i] == todo && !visit(i) {
			break
		}
	}
	if len(c.p.order) < len(c.p.Downstreams) { // after an error
		c.p.order = c.p.order[:0]
		for i := range c.p.Downstreams {
			c.p.order = append(c.p.order, i)
		}
	}
}

// keptNamespaces warns of a Namespace that may be unwanted while something that comes after it is wanted: it is not deleted then.
func (c *compiler) keptNamespaces() {
	for i, d := range c.p.Downstreams {
		for _, j := range c.p.ComesAfter(d.Downstream) {
			other, texts := c.p.Downstreams[j], d.Config.When
			if d.Several() {
				texts += " " + d.Config.ForEach.Items
			}
			if when := other.Config.When; other.Config.Kind == "Namespace" && when != "" && when != "true" && !strings.Contains(texts, when) {
				c.warn(*c.file.Errorf(fmt.Sprintf("downstreams[%d]", i), fmt.Sprintf("give it the same when: %s", when),
					"it comes after %s, a Namespace, and may be wanted when that is not: while it is wanted in the Namespace, this is not deleted", other.Name))
			}
		}
	}
}

func (c *compiler) circle(way []string) {
	i := c.p.IndexOf(way[0])
	c.fail(fmt.Sprintf("downstreams[%d]", i), "let one of them do without the other", "downstreams read or come after each other: %s",
		strings.Join(way, " needs "))
}

// readers are the places of the config that may read downstreams.
var readers = regexp.MustCompile(`^(variables\[|status\.fields\[|downstreams\[\d+\]\.(when|forEach\.items|template)$)`)

// noSiblings reports downstreams that are read where none can be.
func (c *compiler) noSiblings(path string, names []string) {
	if len(names) > 0 && !readers.MatchString(path) {
		c.fail(path, "a template, when, forEach.items and status.fields can", "it cannot read downstreams, and it reads %s", strings.Join(names, ", "))
	}
}
