package engine

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// Startable returns the files whose operators may start if others cannot: those without errors, and in no conflict with
// any other. Of operators that conflict none starts, since none has the older claim.
func Startable(files []*load.File) []*load.File {
	var list []*load.File
	for _, f := range files {
		conflicts := slices.ContainsFunc(files, func(other *load.File) bool {
			return other != f && !other.Valid() && len(load.Conflicts([]*load.File{f, other})) > 0
		})
		if f.Valid() && !conflicts {
			list = append(list, f)
		}
	}
	return list
}

// ReportMissing reports configs that could not start, as load.Operators returned them. The process is not ready until
// they are fixed: the others run, and a rollout stops. Those whose upstreams are finalized are reported as operators
// that do not run; the others with a note that they may hold a deletion. Call it before Start.
func (e *Engine) ReportMissing(files []*load.File, errs config.Errors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing = e.notRunning(files, errs)
	var strays []string
	for _, m := range e.missing {
		strays = append(strays, m.withNote())
	}
	e.reportUnclaimed(strays)
}

// notRunning are the errors that no operator reports.
func (e *Engine) notRunning(files []*load.File, errs config.Errors) []missingConfig {
	var list []missingConfig
	for _, err := range errs {
		concerned := slices.DeleteFunc(slices.Clone(files), func(f *load.File) bool { return !f.Concerns(err) })
		untold := slices.DeleteFunc(slices.Clone(concerned), func(f *load.File) bool {
			o := e.operators[f.Metadata.Name]
			return o != nil && o.lastLoaded().Path == f.Path
		})
		m := missingConfig{cause: err}
		switch {
		case len(concerned) > 0 && len(untold) == 0:
			continue
		case len(concerned) == 0, slices.ContainsFunc(untold, (*load.File).MayHold):
			m.note = noteHolds
		}
		list = append(list, m)
	}
	return list
}

// stillMissing are the errors of those files that have been missing since the start.
func (e *Engine) stillMissing(files []*load.File, errs config.Errors) []missingConfig {
	return slices.DeleteFunc(e.notRunning(files, errs), func(m missingConfig) bool {
		return !slices.ContainsFunc(e.missing, func(before missingConfig) bool { return before.cause.File == m.cause.File })
	})
}
