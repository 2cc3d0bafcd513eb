package engine

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// Startable returns the files whose operators may start if others cannot: those without errors, and in no conflict with any
// other. Of operators that conflict none starts, since none has the older claim.
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

// missingConfigError is an error of a config that could not start, and what it means for upstreams that are being deleted.
type missingConfigError struct {
	cause *config.Error
	note  string
}

func (m missingConfigError) Error() string { return m.cause.Error() + m.note }

// Missing reports configs that could not start, as load.Operators returned them. The process is not ready until they are fixed:
// the others run, and a rollout stops. Those whose upstreams are finalized are reported as operators that do not run; the
// others with a note that they may hold a deletion. Call it before Start.
func (e *Engine) Missing(files []*load.File, errs config.Errors) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing = e.notRunning(files, errs)
	var strays []string
	for _, m := range e.missing {
		strays = append(strays, m.Error())
	}
	e.reportUnclaimed(strays)
}

// notRunning are the errors that no operator reports.
func (e *Engine) notRunning(files []*load.File, errs config.Errors) []missingConfigError {
	var list []missingConfigError
	for _, err := range errs {
		concerned := slices.DeleteFunc(slices.Clone(files), func(f *load.File) bool { return !f.Concerns(err) })
		untold := slices.DeleteFunc(slices.Clone(concerned), func(f *load.File) bool {
			o := e.operators[f.Metadata.Name]
			return o != nil && o.lastLoaded().Path == f.Path
		})
		m := missingConfigError{cause: err}
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
func (e *Engine) stillMissing(files []*load.File, errs config.Errors) []missingConfigError {
	return slices.DeleteFunc(e.notRunning(files, errs), func(m missingConfigError) bool {
		return !slices.ContainsFunc(e.missing, func(before missingConfigError) bool { return before.cause.File == m.cause.File })
	})
}
