package convert

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/rules/cost"
)

// smallest is the size in bytes up to which a text costs about as much as an empty one.
const smallest = 16

// waysBack is how often rules are applied on the way back to find what travels in the annotation: see preserving and
// putBack.
const waysBack = 3 + maxPutBacks

// costs adds up the largest cost of operations.
type costs struct {
	size     uint64 // of the object in bytes
	sum      uint64
	problems []string
	bounds   map[string]cost.Bound // by path
}

// costOf is the largest cost of operations for an object of size bytes.
func costOf(operations []operation, size uint64) *costs {
	c := &costs{size: size, bounds: map[string]cost.Bound{}}
	c.add(operations, "", 1)
	return c
}

// add adds operations that are applied to each of count items, which are in one object together: so either each costs
// as much as one that has all of the object, or they cost as much as one such and otherwise the smallest.
func (c *costs) add(operations []operation, above string, count uint64) {
	for _, o := range operations {
		switch o := o.(type) {
		case *computed:
			most, unbounded := o.program.MaxCost(c.size)
			if most > o.program.CallLimit() {
				c.problems = append(c.problems, o.where)
			}
			small, _ := o.program.MaxCost(min(c.size, smallest))
			c.sum = cost.Plus(c.sum, min(cost.Times(count, most), cost.Plus(cost.Times(count, small), most)))
			for _, b := range unbounded {
				b.Path = above + b.Path
				c.bounds[b.Path] = b
			}
		case *each:
			schema := kinds.OpenAPI(o.source)
			entries, isBounded := cost.MaxEntries(schema, c.size)
			path := above + o.from.String()
			if !isBounded {
				keyword := "maxItems"
				if o.source.Items == nil {
					keyword = "maxProperties"
				}
				c.bounds[path] = cost.Bound{Path: path, Keyword: keyword, Assumed: entries}
			}
			entries = min(cost.Times(count, entries), c.size)
			c.sum = cost.Plus(c.sum, entries)
			c.add(o.operations, path+"[]", entries)
		}
	}
}

func (c *costs) fits(limit uint64) bool { return len(c.problems) == 0 && c.sum <= limit }

// TooExpensive says which expressions may cost more than is allowed for some object, and what to bound. Everything that
// converts one object has one budget: both hops, and the ways back that find what travels in the annotation.
func (c *Converter) TooExpensive() []string {
	var found []string
	for _, name := range c.Versions() {
		s := c.Spokes[name]
		for _, way := range []struct {
			from, to    string
			there, back []operation
		}{{name, c.Hub.Name, s.toHub, s.fromHub}, {c.Hub.Name, name, s.fromHub, s.toHub}} {
			limit := uint64(rules.CostPerObject)
			if len(c.Spokes) > 1 {
				limit /= 2 // by way of the hub there are two hops
			}
			costAt := func(size uint64) *costs { return c.costOfWay(s, way.there, way.back, size) }
			if all := costAt(cost.MaxStored); !all.fits(limit) {
				found = append(found, advice(way.from, way.to, all, costOf(way.back, cost.MaxStored), func(size uint64) bool {
					return costAt(size).fits(limit) && costOf(way.back, size).fits(limit)
				}))
			}
		}
	}
	return found
}

// costOfWay is the largest cost of one way, with the ways back that find what travels in the annotation.
func (c *Converter) costOfWay(s *Spoke, there, back []operation, size uint64) *costs {
	all := costOf(there, size)
	if c.Preserve != "" && !s.Exact {
		all.sum = cost.Plus(all.sum, cost.Times(waysBack, costOf(back, size).sum))
	}
	return all
}

// MaxCost is the largest cost of converting an object that is stored from a spoke to the hub, or back.
func (c *Converter) MaxCost(s *Spoke, toHub bool) uint64 {
	if toHub {
		return c.costOfWay(s, s.toHub, s.fromHub, cost.MaxStored).sum
	}
	return c.costOfWay(s, s.fromHub, s.toHub, cost.MaxStored).sum
}

// advice says what bounds would make a way cheap enough.
func advice(from, to string, all, back *costs, fits func(size uint64) bool) string {
	text := fmt.Sprintf("converting from %s to %s may cost %s, and fails above its limit", from, to, amount(all.sum))
	if len(all.problems) > 0 {
		text = fmt.Sprintf("%s may cost more than its limit for an object of %s, and then fails",
			strings.Join(all.problems, ", "), from)
	}
	size := uint64(cost.MaxStored)
	for ; size > smallest && !fits(size); size /= 2 {
	}
	var wanted []string
	for _, side := range []struct {
		version string
		at      *costs
	}{{from, all}, {to, back}} {
		for _, path := range slices.Sorted(maps.Keys(side.at.bounds)) {
			b := side.at.bounds[path]
			most := rounded(uint64(float64(b.Assumed) * float64(size) / cost.MaxStored))
			if b.Keyword == "maxLength" || b.Keyword == "maxItems" || b.Keyword == "maxProperties" {
				wanted = append(wanted, fmt.Sprintf("%s: %d to %s in %s", b.Keyword, most, path, side.version))
			} else {
				wanted = append(wanted, fmt.Sprintf("%s to %s in %s", b.Keyword, path, side.version))
			}
		}
		if len(wanted) > 0 && len(all.problems) > 0 {
			break
		}
	}
	if len(wanted) == 0 || size <= smallest {
		return text + ": make the expression look at less"
	}
	return text + ": add " + strings.Join(wanted, ", ") + ", or less"
}

func amount(units uint64) string {
	if units == math.MaxUint64 {
		return "any number of units"
	}
	return fmt.Sprintf("%d units for an object of %d KiB", units, cost.MaxStored>>10)
}

// rounded is the number of one digit followed by zeros that is not larger.
func rounded(n uint64) uint64 {
	unit := uint64(1)
	for n >= 10*unit {
		unit *= 10
	}
	return max(1, n/unit*unit)
}
