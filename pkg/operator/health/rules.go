package health

import (
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// Rules are the expressions about readiness of one downstream.
type Rules struct {
	Ready, Failed []Rule
	MessageFrom   *rules.Program
	// ReadsItem: one of them reads the item.
	ReadsItem bool
	// HasObservedGeneration is true if status.observedGeneration is asked for: its controller says there what it has seen.
	HasObservedGeneration bool
}

// Rule is one of ready.rules or ready.failed.
type Rule struct {
	Path    string // in the config
	Program *rules.Program
	Message string
	// HidesValues: its errors may quote a value of a Secret.
	HidesValues bool
}

// unseenBy says why the controller of a downstream cannot be known to have seen it; empty if it has, or need not be
// asked. kstatus takes an object without any status for ready, which a custom resource is not before its own controller
// has looked at it. A controller that has written a status without the generation does not use that field.
func unseenBy(d *operator.Downstream, r *Rules, live *drift.Live) string {
	s, _ := live.Kept["status"].(map[string]any)
	_, ok := s["observedGeneration"]
	switch {
	case !r.HasObservedGeneration || ok:
		return ""
	case d.Config.Ready.ObservedGeneration == config.ObservedRequired:
		return "its controller has not seen it yet: status.observedGeneration is not set"
	case !live.StatusWritten:
		return "its controller has not seen it yet: it has no status. If it never has one, set ready.observedGeneration: " +
			"Optional"
	}
	return ""
}

// message is what the config's messageFrom says, where it says anything.
func (r *Rules) message(fallback string, vars rules.Vars, budget *rules.Budget) string {
	if r.MessageFrom == nil {
		return fallback
	}
	if v, err := r.MessageFrom.Eval(vars, budget); err == nil {
		if s, _ := v.(string); s != "" {
			return s
		}
	}
	return fallback
}

// firstTrue finds the first rule that holds.
func firstTrue(list []Rule, vars rules.Vars, budget *rules.Budget) (bool, string) {
	for _, r := range list {
		if r.holds(vars, budget) {
			return true, r.Message
		}
	}
	return false, ""
}

// firstUnmet finds the first rule that does not hold and says why.
func firstUnmet(list []Rule, vars rules.Vars, budget *rules.Budget) string {
	for _, r := range list {
		if message := r.unmet(vars, budget); message != "" {
			return message
		}
	}
	return ""
}

// holds is for rules that say that something failed. One that gives an error does not hold: an error never makes
// anything fail.
func (r *Rule) holds(vars rules.Vars, budget *rules.Budget) bool {
	v, err := r.Program.Eval(vars, budget)
	return err == nil && v == true
}

// unmet says why a rule does not hold; empty if it does. One that gives an error does not.
func (r *Rule) unmet(vars rules.Vars, budget *rules.Budget) string {
	switch v, err := r.Program.Eval(vars, budget); {
	case err != nil:
		return fmt.Sprintf("%s (%v)", r.Message, redact.Hide(r.HidesValues, err))
	case v != true:
		return r.Message
	}
	return ""
}
