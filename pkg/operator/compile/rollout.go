package compile

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// compileRollout compiles the expressions of a rollout.
func compileRollout(c *compilation) {
	r := c.file.Operator.Rollout
	if r == nil {
		return
	}
	for i := range c.p.Downstreams {
		if d := c.file.Operator.Downstreams[i]; d.Drift.Policy == config.DriftIgnore {
			c.warn(*c.file.Errorf(fmt.Sprintf("downstreams[%d].drift.policy", i), "use Report beside a rollout",
				"it is Ignore, so that nobody notices if what a step of the rollout applied is undone"))
		}
	}
	if r.Order != "" {
		c.p.RolloutOrder = c.expression("rollout.order", func() (*rules.Program, error) {
			return c.env.String(r.Order, rules.Upstream, "")
		})
		if len(c.programInputs(c.p.RolloutOrder)) > 0 {
			c.fail("rollout.order", "use self and params", "the order cannot read inputs")
		}
	}
	for i, text := range r.HaltWhen {
		path := fmt.Sprintf("rollout.haltWhen[%d]", i)
		program := c.expression(path, func() (*rules.Program, error) { return c.env.Bool(text, rules.Status, "") })
		if program != nil {
			c.p.Halts = append(c.p.Halts, health.Rule{Path: path, Program: program, Message: text})
		}
	}
}
