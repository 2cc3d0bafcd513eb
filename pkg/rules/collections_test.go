package rules

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/internal/must"
)

// TestItemsByEveryMacro: macros with one and with two variables see the same items.
func TestItemsByEveryMacro(t *testing.T) {
	known := &spec.Schema{}
	must.Do(t, known.UnmarshalJSON([]byte(`{"type": "object", "properties": {
  "ratios": {"type": "array", "items": {"type": "number"}},
  "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
  "parts": {"type": "array", "items": {"type": "object", "properties": {"node-pool": {"type": "string"}, "tag": {"type": "string"}}}},
  "open": {"x-kubernetes-preserve-unknown-fields": true}}}`)))
	env := must.Get(NewEnv(EnvOptions{Self: known})).In(t)
	part := map[string]any{"node-pool": "fast", "tag": nil}
	self := map[string]any{"ratios": []any{int64(1), 2.5}, "times": []any{"2026-11-20T10:00:00Z"}, "parts": []any{part}, "open": []any{part}}
	for _, rule := range []string{
		"self.ratios.all(r, r / 2.0 > 0.0)",
		"self.ratios.all(i, r, r / 2.0 > 0.0)",
		"self.ratios.transformList(i, r, r / 2.0) == [0.5, 1.25]",
		"dyn(self.ratios).all(i, r, type(r) == double)",
		"(self.ratios + self.ratios).all(i, r, type(r) == double)",
		"self.times.exists(i, t, t.getFullYear() == 2026)",
		"self.parts.all(i, p, p.node__dash__pool == 'fast' && !has(p.tag))",
		"self.open.all(p, p.node__dash__pool == 'fast')",
		"self.open.all(i, p, p.node__dash__pool == 'fast')",
		"optional.ofNonZeroValue(self.ratios).hasValue() && !optional.ofNonZeroValue(self.ratios.filter(r, r > 5.0)).hasValue()",
	} {
		v, problems := CompileValidation(env, []Validation{{Rule: rule}})
		if len(problems) > 0 {
			t.Errorf("%s: %v", rule, problems)
			continue
		}
		if failed := v.Validate(Vars{Self: self}, NewBudget(t.Context())); len(failed) > 0 {
			t.Errorf("%s: %v", rule, failed)
		}
	}
}
