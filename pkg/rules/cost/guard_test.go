package cost

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	binaryversion "k8s.io/component-base/version"
)

func TestEveryFunctionIsCheapOrHasAPrice(t *testing.T) {
	all := environment.MustBaseEnvSet(version.MustParseGeneric(binaryversion.DefaultKubeBinaryVersion)).NewExpressionsEnv().Functions()
	for name := range all {
		if prices[name] == nil && !slices.Contains(cheap, name) {
			t.Errorf("%s has no price, and is not in the list of what is cheap", name)
		}
	}
	for _, name := range cheap {
		if _, ok := all[name]; !ok && prices[name] != nil {
			t.Errorf("%s is cheap and has a price", name)
		}
	}
	for name := range prices {
		if _, ok := all[name]; !ok {
			t.Errorf("%s has a price and is not a function", name)
		}
	}
}
