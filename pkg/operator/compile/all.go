package compile

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

// Compiled is a config without errors and the pipeline made of it.
type Compiled struct {
	File     *load.File
	Pipeline *Pipeline
}

// Located puts file and line of a downstream's template before an error of rendering it: the line that is to blame, or
// where that is not known the first.
func (c Compiled) Located(downstream int, err error) error {
	line := 1
	if e := (*parsing.Error)(nil); errors.As(err, &e) {
		line = max(e.Line, line)
	}
	file, line := c.Pipeline.Downstreams[downstream].Place(line)
	return fmt.Errorf("%s:%d: %w", file, line, err)
}

// All makes a pipeline of each file without errors. loaded are the loader's errors, problems those and every further
// one: what both say of one value the loader has said better, a text that is not a path, or not a text at all. err
// joins what kept the kinds from being looked up (the API server's, never the config's); the files concerned are left
// out. Except with o.Live, what configs describe by watch.schema is known to all of them.
func All(files []*load.File, loaded config.Errors, o Options) (list []Compiled, problems config.Errors, err error) {
	if !o.Live {
		o.Kinds = WithDescribed(files, o.Kinds)
	}
	var further config.Errors
	var errs []error
	for _, f := range files {
		p, found, err := One(f, o)
		further = append(further, found...)
		switch {
		case err != nil && f.Valid(): // one that is not cannot run anyway, and may lack the kind to look up
			errs = append(errs, fmt.Errorf("compiling operator %s: %w", f.Metadata.Name, err))
		case err == nil && len(found) == 0 && f.Valid():
			list = append(list, Compiled{File: f, Pipeline: p})
		}
	}
	warnOfUnselected(list)
	return list, joined(loaded, further), errors.Join(errs...)
}

func joined(loaded, further config.Errors) config.Errors {
	type place struct {
		file, path string
		line       int
	}
	reported := map[place]bool{}
	for _, e := range loaded {
		reported[place{e.File, e.Path, e.Line}] = true
	}
	all := loaded
	for _, e := range further {
		if !reported[place{e.File, e.Path, e.Line}] {
			all = append(all, e)
		}
	}
	return all
}

// warnOfUnselected adds a warning to each operator that watches a kind which another operator makes, and whose
// labelSelector the labels of that other one contradict: objects that it selected until then lose their downstreams.
func warnOfUnselected(list []Compiled) {
	for _, watches := range list {
		watched := watches.Pipeline.Config.Watch.LabelSelector
		if watched == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(watched)
		if err != nil {
			continue // an error of its own
		}
		requirements, _ := selector.Requirements()
		for _, makes := range list {
			given := labels.Set(makes.Pipeline.Config.Conventions.Labels)
			for _, d := range makes.Pipeline.Downstreams {
				if d.OwnsFields() || d.GVK().GroupKind() != watches.Pipeline.Upstream.GVK.GroupKind() {
					continue
				}
				for _, r := range requirements {
					if given.Has(r.Key()) && !r.Matches(given) {
						watches.Pipeline.Warnings = append(watches.Pipeline.Warnings, *watches.File.Errorf("watch.labelSelector",
							"let the selector accept both values (matchExpressions, operator In) before the labels change, or the "+
								"downstreams of objects that it selected until then are deleted",
							"it requires %s, and operator %s gives %s %s=%s (conventions.labels)",
							r.String(), makes.Pipeline.Config.Metadata.Name, watches.Pipeline.Upstream.GVK.Kind, r.Key(), given[r.Key()]))
					}
				}
			}
		}
	}
}
