package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/operator/report"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// warnOfFeedback warns of what reads what this operator writes itself. Only running shows whether that settles.
func warnOfFeedback(c *compilation) {
	for _, part := range report.StatusParts(c.p.Settings) {
		named := func(paths [][]string) bool {
			return part.ReadBy(slices.DeleteFunc(slices.Clone(paths), func(path []string) bool { return len(path) == 0 }))
		}
		for i, d := range c.p.downstreams {
			if !named(d.statusReads) {
				continue
			}
			e := c.file.Errorf(fmt.Sprintf("downstreams[%d]", i), "read what others write; "+neverSettles, "it is made from %s, which %s writes", part.Path, part.Name)
			if d.When != nil && named(statusPaths(d.When.Reads)) {
				e = c.file.Errorf(fmt.Sprintf("downstreams[%d].when", i), e.Fix, "it reads %s, which %s writes", part.Path, part.Name)
			} else if file, line := statusHole(d, part); line > 0 {
				e.File, e.Line, e.Path = file, line, fmt.Sprintf("downstreams[%d].template", i)
			}
			c.warnings = append(c.warnings, *e)
		}
		for i := range c.file.Operator.Validate {
			if c.p.Validator != nil && named(statusPaths(readsOfRule(c.p.Validator, i, rules.PartRule))) {
				c.warnings = append(c.warnings, *c.file.Errorf(fmt.Sprintf("validate[%d].rule", i), "read what others write; "+neverSettles, "it reads %s, which %s writes", part.Path, part.Name))
			}
		}
	}
	warnOfOwnInputs(c)
}

// statusHole finds the hole of a downstream's template that reads a part of the status.
func statusHole(d *downstream, part report.StatusPart) (string, int) {
	if d.Template == nil {
		return "", 0
	}
	for _, h := range d.Template.Holes() {
		if strings.Contains(h.Text, ".status."+part.Path[1].Field) {
			return d.source.at(h.Line)
		}
	}
	return "", 0
}
