package pipeline

import (
	"fmt"
	"slices"
	"strings"
	template "text/template/parse"
)

// This file is about which fields of the upstream a config reads: for the hints of check.

// fieldRead is a field of the upstream that is read, lists taking no step. whole: with everything below it; else, only whether it is there,
// or what other reads name.
type fieldRead struct {
	path  []string
	whole bool
}

// isOf reports whether reading it reads a field that has no fields itself.
func (r fieldRead) isOf(leaf []string) bool {
	n := min(len(r.path), len(leaf))
	return slices.Equal(r.path[:n], leaf[:n]) && (r.whole || len(r.path) >= len(leaf))
}

// upstreamReads are the reads of a config: those of each downstream, by its index, and those of everything else.
type upstreamReads struct {
	downstreams map[int][]fieldRead
	others      []fieldRead
}

// add files reads under the downstream that a path of the config is in.
func (u *upstreamReads) add(path string, reads ...fieldRead) {
	var i int
	if _, err := fmt.Sscanf(path, "downstreams[%d].", &i); err != nil || !strings.HasPrefix(path, "downstreams[") {
		u.others = append(u.others, reads...)
		return
	}
	if u.downstreams == nil {
		u.downstreams = map[int][]fieldRead{}
	}
	u.downstreams[i] = append(u.downstreams[i], reads...)
}

// addProgram files what an expression reads.
func (u *upstreamReads) addProgram(path string, reads func(string) ([][]string, bool)) {
	paths, whole := reads("self")
	if whole {
		u.add(path, fieldRead{whole: true})
	}
	for _, p := range paths {
		u.add(path, fieldRead{p, true})
	}
}

// addText files what a template or a text reads, through variables, too.
func (c *compiler) addText(path, text string, in roots) {
	w := walkShapes(text, c.p.renderOptions(), in)
	c.p.upstreamReads.add(path, w.reads...)
	for _, name := range w.variablesRead {
		if program := c.p.variable(name); program != nil {
			c.p.upstreamReads.addProgram(path, program.Reads)
		}
	}
}

// textReads notes what templates, labels and annotations read of the upstream.
func (c *compiler) textReads() {
	for _, d := range c.p.Downstreams {
		c.addText(fmt.Sprintf("downstreams[%d].template", d.Index), d.Config.Template, c.p.rootsOf(d))
	}
	conventions := &c.file.Operator.Conventions
	in := c.p.rootsOf(&Downstream{})
	for _, text := range conventions.Labels {
		c.addText("conventions.labels", text, in)
	}
	for _, text := range conventions.Annotations {
		c.addText("conventions.annotations", text, in)
	}
	if b := c.file.Operator.Deletion.Before; b != nil {
		c.addText("deletion.before.template", b.Template, in)
	}
}

// read notes that a template reads a value: with whole, everything in it.
func (w *shapeWalk) read(s shape, whole bool) {
	for _, one := range s.either {
		w.read(one, true)
	}
	if s.at != nil {
		w.reads = append(w.reads, fieldRead{s.at, whole})
	}
}

// readArguments notes what a function reads: its arguments, and the value that comes down the pipe, but not what include hands over.
func (w *shapeWalk) readArguments(args []template.Node, called string, piped, dot shape, vars map[string]shape) {
	w.read(piped, true)
	if called == "include" {
		return
	}
	for _, arg := range args {
		w.read(w.node(arg, dot, vars), true)
	}
}
