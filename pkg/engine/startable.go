package engine

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
)

// Startable returns the files whose operators may start where others cannot: those without errors, and in no conflict with
// any other. Of operators that conflict none starts, since none has the older claim.
func Startable(files []*config.File) []*config.File {
	var list []*config.File
	for _, f := range files {
		conflicts := slices.ContainsFunc(files, func(other *config.File) bool {
			return other != f && !other.Valid() && len(config.Conflicts([]*config.File{f, other})) > 0
		})
		if f.Valid() && !conflicts {
			list = append(list, f)
		}
	}
	return list
}

// Missing has the engine tell of configs that could not start, by their errors. It is not ready as long as these stay: the
// others run, and a rollout stops. Call it before Start.
func (e *Engine) Missing(errs config.Errors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing = errs
	var strays []string
	for _, err := range errs {
		strays = append(strays, err.Error())
	}
	e.tellStrays(strays)
}

// stillMissing are the errors of those files that have been missing since the start.
func (e *Engine) stillMissing(errs config.Errors) config.Errors {
	var list config.Errors
	for _, err := range errs {
		if slices.ContainsFunc(e.missing, func(m *config.Error) bool { return m.File == err.File }) {
			list = append(list, err)
		}
	}
	return list
}
