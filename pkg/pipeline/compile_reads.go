package pipeline

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/check"
)

// UpstreamReads are the fields of the upstream that a config reads: those of each downstream, by its index, and those of everything else.
type UpstreamReads struct {
	Downstreams map[int][]check.Read
	Others      []check.Read
}

// add files reads under the downstream that a path of the config is in.
func (u *UpstreamReads) add(path string, reads ...check.Read) {
	var i int
	if _, err := fmt.Sscanf(path, "downstreams[%d].", &i); err != nil || !strings.HasPrefix(path, "downstreams[") {
		u.Others = append(u.Others, reads...)
		return
	}
	if u.Downstreams == nil {
		u.Downstreams = map[int][]check.Read{}
	}
	u.Downstreams[i] = append(u.Downstreams[i], reads...)
}

// addProgram files what an expression reads.
func (u *UpstreamReads) addProgram(path string, reads func(string) ([][]string, bool)) {
	paths, whole := reads("self")
	if whole {
		u.add(path, check.Read{Whole: true})
	}
	for _, p := range paths {
		u.add(path, check.Read{Path: p, Whole: true})
	}
}

// textReads files what a template or a text reads, through variables, too.
func (c *compiler) textReads(path string, w *check.Walked) {
	c.p.UpstreamReads.add(path, w.Reads...)
	for _, name := range w.Variables {
		if program := c.p.variable(name); program != nil {
			c.p.UpstreamReads.addProgram(path, program.Reads)
		}
	}
}

// conventionReads files what labels and annotations read of the upstream.
func (c *compiler) conventionReads() {
	in, conventions := c.p.rootsOf(&Downstream{}), &c.file.Operator.Conventions
	for _, texts := range []map[string]string{conventions.Labels, conventions.Annotations} {
		for _, text := range texts {
			c.textReads("conventions", check.Walk(text, c.p.renderOptions(), in))
		}
	}
}
