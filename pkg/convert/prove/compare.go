package prove

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/convert/generator"
	"github.com/corollary-dev/corollary/pkg/convert/places"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// Compare makes objects of every version and converts each to every other one, by the rules of c and by those of
// another converter of the same versions. It returns the first for which they differ; nil for none. Losses that either
// acknowledges do not count.
func Compare(ctx context.Context, c, other *convert.Converter, o Options) (*Counterexample, error) {
	names := append(c.Versions(), c.Hub.Name)
	var all []*kinds.Version
	for _, name := range names {
		all = append(all, c.Version(name))
	}
	for _, from := range names {
		for _, to := range names {
			p := &prover{Converter: c, from: c.Version(from), via: c.Version(to), generator: makerFor(c, o.Seed, all...)}
			compare := func(ctx context.Context, obj map[string]any) *Counterexample { return p.compare(ctx, other, obj) }
			for range o.Objects {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				obj, ok := p.generator.Make(ctx, p.from)
				if !ok || from == to {
					continue
				}
				if found := compare(ctx, obj); found != nil {
					return p.shrink(ctx, obj, found, compare), nil
				}
			}
		}
	}
	return nil, nil
}

// compare converts an object by two converters; nil where they agree, or where the prover's own cannot.
func (p *prover) compare(ctx context.Context, other *convert.Converter, obj map[string]any) *Counterexample {
	mine, theirs := runtime.DeepCopyJSON(obj), runtime.DeepCopyJSON(obj)
	if p.Convert(ctx, mine, p.via.Name) != nil {
		return nil
	}
	found := &Counterexample{Object: obj, There: mine}
	if err := other.Convert(ctx, theirs, p.via.Name); err != nil {
		found.Problem = err.Error()
		return found
	}
	found.Back = theirs
	generator.Store(p.via, mine)
	generator.Store(p.via, theirs)
	mine, theirs = p.WithoutPreserved(mine), p.WithoutPreserved(theirs)
	generator.DropEmptyMetadata(mine)
	generator.DropEmptyMetadata(theirs)
	for _, f := range places.Differences(mine, theirs, p.via.Structural) {
		if p.losesOnTheWay(f.Path) || (&prover{Converter: other, from: p.from, via: p.via}).losesOnTheWay(f.Path) {
			continue
		}
		found.Problem = fmt.Sprintf("converting from %s to %s: %s is %s now, and would be %s",
			p.from.Name, p.via.Name, f.Path, shown(f.Is, f.IsAbsent), shown(f.Was, f.WasAbsent))
		return found
	}
	return nil
}

// losesOnTheWay reports whether the loss of a field is acknowledged, for one of the versions on the way.
func (p *prover) losesOnTheWay(path places.Place) bool {
	for _, v := range []*kinds.Version{p.from, p.via} {
		if s := p.Spokes[v.Name]; s != nil && slices.ContainsFunc(s.Lost, path.IsIn) {
			return true
		}
	}
	return false
}
