package compile

import (
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

func compileStatusFields(c *compilation) {
	if !c.p.StatusEnabled() {
		return
	}
	for i, f := range c.file.Operator.Status.Fields {
		if path, err := fieldpath.Parse(f.Path); err == nil && c.p.OnlyDeletes { // it stays as it is
			c.p.addField(path, nil)
		}
		if c.p.OnlyDeletes {
			continue
		}
		program := c.expression(fmt.Sprintf("status.fields[%d].value", i), func() (*rules.Program, error) {
			return c.env.Any(f.Value, rules.Status, "")
		})
		if path, err := fieldpath.Parse(f.Path); err == nil {
			c.p.addField(path, program)
			checkStatusField(c, i, path, program)
		}
	}
}

// checkStatusField holds a field of status.fields to the upstream's schema.
func checkStatusField(c *compilation, i int, path fieldpath.Path, program *rules.Program) {
	var result *spec.Schema
	if program != nil {
		result = program.Result()
	}
	found := check.StatusField(c.p.Upstream, path, result)
	switch at := fmt.Sprintf("status.fields[%d]", i); {
	case found == nil:
	case found.Unsure:
		c.warn(*c.file.Errorf(at+".path", found.Fix, "%s", found.Problem))
	default:
		c.refusals = append(c.refusals, *c.file.Errorf(at+".value", found.Fix, "%s", found.Problem))
	}
}
