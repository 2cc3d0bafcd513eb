package convert

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestMaxCost: no conversion of a valid object costs more units than the proof says, and that is within the budget of one object.
func TestMaxCost(t *testing.T) {
	t.Parallel()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	err := yaml.UnmarshalStrict([]byte(`
spec:
  group: example.com
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
    - name: v1beta1
      served: true
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, required: [names], properties: {
        names: {type: array, maxItems: 60, items: {type: string, maxLength: 64}}}}}}}
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, required: [spec], properties: {spec: {type: object, required: [items], properties: {
        items: {type: array, maxItems: 60, items: {type: object, required: [name], properties: {name: {type: string, maxLength: 64}}}}}}}}}
`), definition)
	if err != nil {
		t.Fatal(err)
	}
	versions, err := kinds.Versions(definition)
	if err != nil {
		t.Fatal(err)
	}
	var conf config.Conversion
	err = yaml.UnmarshalStrict([]byte(`
hub: v1
spokes:
  - version: v1beta1
    toHub: [{set: .spec.items, expression: "self.spec.names.map(n, {'name': n})"}, {remove: [.spec.names]}]
    fromHub: [{set: .spec.names, expression: "self.spec.items.map(i, i.name)"}, {remove: [.spec.items]}]
`), &conf)
	if err != nil {
		t.Fatal(err)
	}
	c, problems := Compile(&conf, Options{Kind: schema.GroupKind{Group: "example.com", Kind: "Thing"}, Versions: versions})
	if len(problems) > 0 {
		t.Fatal(problems[0])
	}
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
