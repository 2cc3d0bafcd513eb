package convert

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/convert/generator"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestMaxCost: no conversion of a valid object costs more units than the proof says, and that is within the budget of
// one object.
func TestMaxCost(t *testing.T) {
	t.Parallel()
	c := compileIn(t, "testdata/cost")
	s := c.Spokes["v1beta1"]
	for _, pair := range [][2]*kinds.Version{{s.Version, c.Hub}, {c.Hub, s.Version}} {
		most := c.MaxCost(s, pair[0] == s.Version)
		if most > rules.CostPerObject {
			t.Errorf("from %s: %d units are more than an object may cost", pair[0].Name, most)
		}
		g := generator.New(generator.Options{Seed: 1, Kind: c.Kind, Literals: c.Literals, Metadata: c.Metadata,
			Versions: pair[:], Others: pair[1:]})
		dearest := uint64(0)
		var err error
		for obj := range g.Sized(t.Context(), pair[0], pair[1]) {
			pass := &pass{ctx: t.Context(), budget: rules.NewBudget(t.Context())}
			if err = c.hop(obj, pair[0].Name, pair[1].Name, pass); err != nil {
				break
			}
			dearest = max(dearest, rules.CostPerObject-pass.budget.Left())
		}
		if err != nil || dearest == 0 || dearest > most {
			t.Errorf("from %s: an object costs %d units, at most %d are stated: %v", pair[0].Name, dearest, most, err)
		}
	}
}

// compileIn compiles crd.yaml and conversion.yaml of a directory.
func compileIn(t *testing.T, dir string) *Converter {
	t.Helper()
	definition := testkit.Definition(t, filepath.Join(dir, "crd.yaml"))
	versions := must.Get(kinds.Versions(definition)).In(t)
	text := must.Get(os.ReadFile(filepath.Join(dir, "conversion.yaml"))).In(t)
	var conf conversion.Conversion
	must.Do(t, yaml.Unmarshal(text, &conf))
	kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	c, problems := Compile(&conf, Options{Kind: kind, Versions: versions})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
	return c
}
