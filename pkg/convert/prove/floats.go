package prove

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/generator"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// maxValues is how many combinations of values of the fields that an expression reads are all tried.
const maxValues = 10_000

// valuesOf are all values of each field that the expression reads; nil if these are too many to try.
func valuesOf(u *convert.FloatUse) [][]any {
	if u.Whole || u.Schema == nil {
		return nil
	}
	all, combinations := make([][]any, len(u.Paths)), 1
	for i, p := range u.Paths {
		s := kinds.Field(u.Schema, p)
		if s == nil {
			return nil
		}
		all[i] = generator.EveryValue(s, maxValues)
		if combinations *= len(all[i]); combinations == 0 || combinations > maxValues {
			return nil
		}
	}
	return all
}

// uncertain says which expressions lose what no proof by objects can find, and what to add.
func uncertain(c *convert.Converter) (found []string) {
	for _, name := range c.Versions() {
		s := c.Spokes[name]
		for _, use := range s.Floats {
			isKept := c.Preserve != "" && !use.Whole
			isLost := len(use.Paths) > 0 && !use.Whole
			var paths []string
			for _, p := range use.Paths {
				isKept = isKept && p[0].Field != "status"
				isLost = isLost && slices.ContainsFunc(s.Lost, p.HasPrefix)
				paths = append(paths, p.String())
			}
			if isKept || isLost || valuesOf(&use) != nil {
				continue
			}
			found = append(found, fmt.Sprintf(
				"%s computes with floating-point numbers, and not every value of %s can be tried: use type: integer "+
					"with minimum and maximum (at most %d values) or an enum, keep the field by preserve, or acknowledge its loss "+
					"in lost",
				use.Where, strings.Join(paths, ", "), maxValues))
		}
	}
	return found
}

// triesOfValues is how many objects are tried with given values: rules may refuse some.
const triesOfValues = 20

// everyCombination tries all values of what expressions read that compute with floating-point numbers.
func (p *prover) everyCombination(
	ctx context.Context, try func(map[string]any) (done bool, err error),
) (done bool, err error) {
	s := p.Spokes[p.from.Name]
	if s == nil {
		s = p.Spokes[p.via.Name]
	}
	for _, use := range s.Floats {
		values := valuesOf(&use)
		if use.Version != p.from || values == nil {
			continue
		}
		for choice := make([]int, len(values)); choice != nil; choice = next(choice, values) {
			for range triesOfValues {
				given := map[string]any{}
				for i, path := range use.Paths {
					given[path.String()] = values[i][choice[i]]
				}
				obj, ok := p.generator.With(ctx, p.from, given)
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
