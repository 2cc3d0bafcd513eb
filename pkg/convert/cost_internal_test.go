package convert

import (
	"testing"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestMaxCost: no conversion of a valid object costs more units than the proof says, and that is within the budget of one object.
func TestMaxCost(t *testing.T) {
	t.Parallel()
	c := compileIn(t, "testdata/cost")
	s := c.spokes["v1beta1"]
	for _, pair := range [][2]*kinds.Version{{s.version, c.hub}, {c.hub, s.version}} {
		most := c.maxCost(s, pair[0] == s.version)
		if most > rules.CostPerObject {
			t.Errorf("from %s: %d units are more than an object may cost", pair[0].Name, most)
		}
		p := &prover{Converter: c, from: pair[0], via: pair[1], generator: c.generator(1, pair[1])}
		dearest := uint64(0)
		err := p.everySize(t.Context(), func(obj map[string]any) (done bool, err error) {
			pass := &pass{ctx: t.Context(), budget: rules.NewBudget(t.Context())}
			err = c.hop(obj, pair[0].Name, pair[1].Name, pass)
			dearest = max(dearest, rules.CostPerObject-pass.budget.Left())
			return err != nil, err
		})
		if err != nil || dearest == 0 || dearest > most {
			t.Errorf("from %s: an object costs %d units, at most %d are stated: %v", pair[0].Name, dearest, most, err)
		}
	}
}
