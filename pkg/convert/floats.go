package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// maxValues is how many combinations of values of the fields that an expression reads are all tried.
const maxValues = 10_000

// floatUse is an expression that computes with floating-point numbers. Of two that are as close as can be, one may be lost and the other
// not, so only trying all values proves anything.
type floatUse struct {
	where string
	from  *cover
	paths []fieldpath.Path // what it reads, from the root
	whole bool
}

func newFloatUse(where string, from *cover, paths [][]string, whole bool) floatUse {
	use := floatUse{where: where, from: from, whole: whole}
	for _, path := range paths {
		use.paths = append(use.paths, joined(from.above, fieldpath.New(path...)))
	}
	return use
}

// values are all values of each field that the expression reads; nil if these are too many to try.
func (u *floatUse) values() [][]any {
	if u.whole || u.from.item {
		return nil
	}
	all, combinations := make([][]any, len(u.paths)), 1
	for i, p := range u.paths {
		s := kinds.Field(u.from.schema, p)
		if s == nil {
			return nil
		}
		all[i] = everyValue(s)
		if combinations *= len(all[i]); combinations == 0 || combinations > maxValues {
			return nil
		}
	}
	return all
}

// everyValue lists the values of a scalar; nothing where there are more than maxValues.
func everyValue(s *structuralschema.Structural) (values []any) {
	v := validationOf(s)
	switch {
	case len(v.Enum) > 0:
		for _, e := range v.Enum {
			values = append(values, e.Object)
		}
	case s.Type == "boolean":
		values = []any{false, true}
	case s.Type == "integer":
		low, high := rangeOf(v)
		if low > high || uint64(high)-uint64(low) >= maxValues {
			return nil
		}
		for n := low; n <= high; n++ {
			values = append(values, n)
		}
	}
	return values
}

// uncertain says which expressions lose what no proof by objects can find, and what to add.
func (c *Converter) uncertain() (found []string) {
	for _, name := range c.Versions() {
		s := c.spokes[name]
		for _, use := range s.floats {
			isKept := c.preserve != "" && !use.whole
			isLost := len(use.paths) > 0 && !use.whole
			var paths []string
			for _, p := range use.paths {
				isKept = isKept && p[0].Field != "status"
				isLost = isLost && slices.ContainsFunc(s.lost, p.HasPrefix)
				paths = append(paths, p.String())
			}
			if isKept || isLost || use.values() != nil {
				continue
			}
			found = append(found, fmt.Sprintf("%s computes with floating-point numbers, and not every value of %s can be tried: use type: integer "+
				"with minimum and maximum (at most %d values) or an enum, keep the field by preserve, or acknowledge its loss in lost",
				use.where, strings.Join(paths, ", "), maxValues))
		}
	}
	return found
}

// triesOfValues is how many objects are tried with given values: rules may refuse some.
const triesOfValues = 20

// everyCombination tries all values of what expressions read that compute with floating-point numbers.
func (p *prover) everyCombination(ctx context.Context, try func(map[string]any) (done bool, err error)) (done bool, err error) {
	s := p.spokes[p.from.Name]
	if s == nil {
		s = p.spokes[p.via.Name]
	}
	for _, use := range s.floats {
		values := use.values()
		if use.from.version != p.from || values == nil {
			continue
		}
		for choice := make([]int, len(values)); choice != nil; choice = next(choice, values) {
			for range triesOfValues {
				p.generator.chosen, p.generator.uniform, p.generator.given = nil, true, map[string]any{}
				for i, path := range use.paths {
					p.generator.given[path.String()] = values[i][choice[i]]
				}
				obj, ok := p.make(ctx)
				p.generator.given = nil
				if !ok {
					continue
				}
				if done, err := try(obj); done || err != nil {
					return true, err
				}
				break
			}
		}
	}
	return false, nil
}

// next is the choice that follows; nil after the last one.
func next(choice []int, values [][]any) []int {
	for i := range choice {
		if choice[i]++; choice[i] < len(values[i]) {
			return choice
		}
		choice[i] = 0
	}
	return nil
}
