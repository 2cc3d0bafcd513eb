package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/against"
)

// compare plans what going from the old configs to the new ones would do. Operators are the same by their name.
func (p *planning) compare(ctx context.Context, s *survey.Surveyor, files []*load.File) error {
	p.options.against.Set = nil // overrides are of the new ones
	old, problems, err := p.options.against.Load(p.options.streams)
	if err != nil {
		return err
	}
	if _, err := p.options.fit(old, problems); err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	byName := map[string][2]*load.File{}
	var names []string
	for side, list := range [][]*load.File{old, files} {
		for _, f := range list {
			pair, known := byName[f.Metadata.Name]
			if !known {
				names = append(names, f.Metadata.Name)
			}
			pair[side] = f
			byName[f.Metadata.Name] = pair
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := p.pair(ctx, s, byName[name]); err != nil {
			return err
		}
	}
	return nil
}

func (p *planning) pair(ctx context.Context, s *survey.Surveyor, files [2]*load.File) error {
	var surveys [2]*survey.Survey
	for side, file := range files {
		if file == nil {
			continue
		}
		v, err := s.Open(ctx, file)
		if err != nil {
			return err
		}
		defer v.Close()
		surveys[side] = v
	}
	from, to := surveys[0], surveys[1]
	if from != nil && to != nil {
		for _, why := range from.ReplacementProblems(to.Pipeline().Config) {
			p.note("operator %s: %s; run refuses to reload it until then", to.Pipeline().Name, why)
		}
	}
	return against.Compare(ctx, from, to, p.visit, p.add)
}
