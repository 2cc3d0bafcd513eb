package compile

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
)

func compileValidation(c *compilation) {
	cfg := c.file.Operator.Validate
	if len(cfg) == 0 {
		return
	}
	list := make([]rules.Validation, len(cfg))
	for i, r := range cfg {
		list[i] = rules.Validation{Rule: r.Rule, Message: r.Message, MessageExpression: r.MessageExpression,
			FieldPath: r.FieldPath, Reason: rules.Reason(r.Reason)}
	}
	validator, errs := rules.CompileValidation(c.env, list)
	for _, e := range errs {
		c.expressionError(fmt.Sprintf("validate[%d].%s", e.Index, e.Field), e.Err)
	}
	c.p.Validator = validator
	if validator != nil {
		for i := range cfg {
			c.programReads(fmt.Sprintf("validate[%d].rule", i), readsOfRule(validator, i, rules.PartRule))
			c.programReads(fmt.Sprintf("validate[%d].messageExpression", i),
				readsOfRule(validator, i, rules.PartMessageExpression))
		}
		c.p.ValidatorInputs = c.inputsOf(validator.Reads)
		c.p.ReadsStatus = c.p.ReadsStatus || readsStatus(validator.Reads)
	}
}

func compileMatchConditions(c *compilation) {
	for i, condition := range c.file.Operator.Watch.MatchConditions {
		path := fmt.Sprintf("watch.matchConditions[%d].expression", i)
		compile := func() (*rules.Program, error) { return c.env.Bool(condition.Expression, rules.Upstream, "") }
		if _, err := compile(); err != nil && c.p.OnlyDeletes {
			continue // more is watched than needed, and nothing but deletions is carried out
		}
		program := c.expression(path, compile)
		if program == nil {
			continue
		}
		if len(c.programInputs(program)) > 0 {
			c.fail(path, "use self and params; what depends on an input belongs to when", "a match condition cannot read inputs")
			continue
		}
		c.p.MatchConditions = append(c.p.MatchConditions,
			desired.MatchCondition{Name: condition.Name, Program: program, HidesValues: programReadsSecret(c.p, program, nil)})
	}
}
