package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/random"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

const (
	maxGenerated       = 32
	maxGeneratedLength = 4096
)

// checkGenerated checks the random values of a Secret: each has a key of its own, which nothing else in the config is
// about.
func checkGenerated(v *validator, at string, d *config.Downstream) {
	list := at + ".generated"
	if len(d.Generated) == 0 {
		return
	}
	if d.Kind != "" && d.APIVersion != "" && (d.Kind != "Secret" || d.APIVersion != "v1") {
		v.Add(list, "make the downstream a Secret of apiVersion v1, and read it where the value is needed",
			"a %s of %s cannot have random values, which only a Secret keeps from readers", d.Kind, d.APIVersion)
		return
	}
	if n := len(d.Generated); n > maxGenerated {
		v.Add(list, fmt.Sprintf("list at most %d", maxGenerated), "%d values are too many", n)
		return
	}
	first := map[string]int{}
	for i, g := range d.Generated {
		here := fmt.Sprintf("%s[%d]", list, i)
		if n := g.Length; n != nil && (*n < 1 || *n > maxGeneratedLength) {
			v.Add(here+".length", fmt.Sprintf("write 1 to %d", maxGeneratedLength), "%d is out of range", *n)
		}
		checkGeneratedPath(v, here+".path", g, d.Drift, list, i, first)
	}
}

func checkGeneratedPath(
	v *validator, at string, g random.Generated, d config.Drift, list string, i int, first map[string]int,
) {
	if g.Path == "" {
		v.required(at, g.Path, "write .data.KEY, such as .data.password")
		return
	}
	if _, ok := checkFieldPath(v, at, g.Path); !ok {
		return
	}
	key, ok := g.Key()
	if !ok || len(validation.IsConfigMapKey(key)) > 0 {
		v.Add(at, "write .data.KEY, such as .data.password or .data['tls.key']", "%s is not a key of a Secret", g.Path)
		return
	}
	if k, taken := first[key]; taken {
		v.Add(at, "keep one of the two", "key %s is in %s[%d], too", key, list, k)
		return
	}
	first[key] = i
	for _, other := range slices.Concat(d.InitialFields, d.ExclusiveFields) {
		p, err := fieldpath.Parse(other)
		if err == nil && (p.Overlaps(fieldpath.New("data", key)) || p.Overlaps(fieldpath.New("stringData", key))) {
			v.Add(at, "remove that path: a generated value is left to others anyway",
				"%s is also in initialFields or exclusiveFields of drift, by %s", g.Path, p)
			return
		}
	}
}
