package pipeline

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// matchCondition is one of watch.matchConditions.
type matchCondition struct {
	name    string
	program *rules.Program
	hides   bool // its errors may quote a value of a Secret
}

// MatchResult is what watch.matchConditions say of an object.
type MatchResult struct {
	// Unmet is the name of a condition that is false; empty for none.
	Unmet string
	// Err tells that a condition could not be evaluated, and that none is false: whether the object is an upstream is not known.
	Err error
}

// IsMet tells that the object is an upstream.
func (m MatchResult) IsMet() bool { return m.Unmet == "" && m.Err == nil }

// Match evaluates watch.matchConditions for an object. As in an admission policy, one that is false decides, whether others can be
// evaluated or not.
func (p *Pipeline) Match(obj *unstructured.Unstructured) MatchResult {
	var m MatchResult
	vars, budget := p.vars(obj, Inputs{}), rules.NewBudget(context.Background())
	for _, c := range p.matchConditions {
		switch met, err := c.program.Eval(vars, budget); {
		case err != nil && m.Err == nil:
			m.Err = hideValues(c.hides, redact.Errorf("evaluating the match condition %s: %w", c.name, err))
		case err == nil && met != true:
			return MatchResult{Unmet: c.name}
		}
	}
	return m
}

// SelectsLike tells whether the watches of two pipelines show the same upstreams: with errors in the config some conditions may be left out.
func (p *Pipeline) SelectsLike(other *Pipeline) bool {
	return reflect.DeepEqual(p.Config.Watch, other.Config.Watch) && len(p.matchConditions) == len(other.matchConditions)
}

// HasMatchConditions tells whether Match can exclude an object.
func (p *Pipeline) HasMatchConditions() bool { return len(p.matchConditions) > 0 }

// HidesUpstreams tells whether an object may exist that the watch of the upstreams does not show: one without the labels, or one that
// does not meet the conditions.
func (p *Pipeline) HidesUpstreams() bool {
	return p.Config.Watch.LabelSelector != nil || p.HasMatchConditions()
}

func (c *compiler) matchConditions() {
	for i, condition := range c.file.Operator.Watch.MatchConditions {
		path := fmt.Sprintf("watch.matchConditions[%d].expression", i)
		compile := func() (*rules.Program, error) { return c.env.Bool(condition.Expression, rules.Upstream, "") }
		if _, err := compile(); err != nil && c.p.OnlyDeletes {
			continue // more is watched than needed, and nothing but deletions is carried out
		}
		program := c.program(path, compile)
		if program == nil {
			continue
		}
		if len(c.programInputs(program)) > 0 {
			c.fail(path, "use self and params; what depends on an input belongs to when", "a match condition cannot read inputs")
			continue
		}
		c.p.matchConditions = append(c.p.matchConditions,
			matchCondition{name: condition.Name, program: program, hides: c.programReadsSecret(program, nil)})
	}
}
