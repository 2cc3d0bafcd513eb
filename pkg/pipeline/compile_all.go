package pipeline

import (
	"errors"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/render"
)

// Compiled is a config without errors and the pipeline made of it.
type Compiled struct {
	File     *load.File
	Pipeline *Pipeline
}

// Located puts file and line of a downstream's template before an error of rendering it: the line that is to blame, or where
// that is not known the first.
func (c Compiled) Located(downstream int, err error) error {
	line := 1
	if e := (*render.Error)(nil); errors.As(err, &e) {
		line = max(e.Line, line)
	}
	file, line := c.Pipeline.Downstreams[downstream].Place(line)
	return fmt.Errorf("%s:%d: %w", file, line, err)
}

// CompileAll makes a pipeline of each file without errors. loaded are the loader's errors, problems those and every further
// one: what both say of one value the loader has said better, a text that is no path, or no text at all. err joins what
// kept the kinds from being looked up (the API server's, never the config's); the files concerned are left out. Except with o.Live, what
// configs describe by watch.schema is known to all of them.
func CompileAll(files []*load.File, loaded config.Errors, o Options) (list []Compiled, problems config.Errors, err error) {
	if !o.Live {
		o.Kinds = WithDescribed(files, o.Kinds)
	}
	var further config.Errors
	var errs []error
	for _, f := range files {
		p, found, err := Compile(f, o)
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
	told := map[place]bool{}
	for _, e := range loaded {
		told[place{e.File, e.Path, e.Line}] = true
	}
	all := loaded
	for _, e := range further {
		if !told[place{e.File, e.Path, e.Line}] {
			all = append(all, e)
		}
	}
	return all
}
