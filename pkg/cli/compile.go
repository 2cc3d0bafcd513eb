package cli

import (
	"errors"
	"fmt"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/pipeline"
)

// compiled is a config without errors and the pipeline made of it.
type compiled struct {
	file     *config.File
	pipeline *pipeline.Pipeline
}

// compile makes a pipeline of each file without errors and returns every further error of the others. err joins
// what kept the kinds from being looked up (the API server's, never the config's); the files concerned are left out.
func compile(files []*config.File, o pipeline.Options) (list []compiled, problems config.Errors, err error) {
	var errs []error
	for _, f := range files {
		p, found, err := pipeline.Compile(f, o)
		problems = append(problems, found...)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("compiling operator %s: %w", f.Metadata.Name, err))
		case len(found) == 0 && f.Valid():
			list = append(list, compiled{file: f, pipeline: p})
		}
	}
	return list, problems, errors.Join(errs...)
}

// further joins the loader's errors with those that compiling the same files gave. What both say of one value the loader
// has said better: a text that is no path, or no text at all.
func further(loaded, compiled config.Errors) config.Errors {
	type place struct {
		file, path string
		line       int
	}
	told := map[place]bool{}
	for _, e := range loaded {
		told[place{e.File, e.Path, e.Line}] = true
	}
	all := loaded
	for _, e := range compiled {
		if !told[place{e.File, e.Path, e.Line}] {
			all = append(all, e)
		}
	}
	return all
}

// refuse writes every problem, a line each, and returns the error that the command ends with; nil without problems. also
// is what else went wrong; it is written with them, and returned where it is alone.
func refuse(streams IO, problems config.Errors, also error) error {
	problems = problems.Sort()
	if len(problems) == 0 {
		return also
	}
	for _, e := range problems {
		fmt.Fprintln(streams.Err, e)
	}
	if also != nil {
		fmt.Fprintln(streams.Err, also)
	}
	return fmt.Errorf("%s in the config", count(len(problems), "error"))
}

// count is "1 error" or "2 errors".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
