package pipeline

import (
	"fmt"
	"strings"

	"github.com/corollary-dev/corollary/pkg/render/check"
)

// upstreamReads files reads of the upstream under the downstream that a path of the config is in, or under -1.
func (c *compiler) upstreamReads(path string, reads ...check.Read) {
	i := -1
	if rest, ok := strings.CutPrefix(path, "downstreams["); ok {
		_, _ = fmt.Sscanf(rest, "%d].", &i)
	}
	c.p.UpstreamReads[i] = append(c.p.UpstreamReads[i], reads...)
}

// upstreamReadsOf files what an expression reads.
func (c *compiler) upstreamReadsOf(path string, reads func(string) ([][]string, bool)) {
	paths, whole := reads("self")
	if whole {
		c.upstreamReads(path, check.Read{Whole: true})
	}
	for _, p := range paths {
		c.upstreamReads(path, check.Read{Path: p, Whole: true})
	}
}

// textReads files what a template or a text reads, through variables, too.
func (c *compiler) textReads(path string, w *check.Walked) {
	c.upstreamReads(path, w.Reads...)
	for _, name := range w.Variables {
		if program := c.p.variable(name); program != nil {
			c.upstreamReadsOf(path, program.Reads)
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
