package process

import (
	"slices"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/logging"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

// Preflight returns every error of configs, those that only the API server's schemas show among them, if no operator
// can run; none if one can. Else the engine, which compiles all of them, reports those of the others. That a kind
// cannot be looked up is not an error of the config: its operator waits for it.
func Preflight(files []*load.File, problems config.Errors, options compile.Options, log logr.Logger) config.Errors {
	if anyCompiles(files, options) {
		return nil
	}
	list, problems, err := compile.All(files, problems, options)
	if !runnable(engine.Startable(files), list, err != nil) && !deletes(files, options) && len(problems) > 0 {
		return problems
	}
	if err != nil {
		logging.Warn(log, "a config could not be checked against the API server's schemas yet", "error", err.Error())
	}
	return nil
}

// anyCompiles reports whether any operator that may start compiles: usually the first one does.
func anyCompiles(files []*load.File, o compile.Options) bool {
	o.Kinds = compile.WithDescribed(files, o.Kinds)
	return slices.ContainsFunc(engine.Startable(files), func(f *load.File) bool {
		_, problems, err := compile.One(f, o)
		return err == nil && len(problems) == 0
	})
}

// deletes reports whether there is anything to do for configs that cannot run: upstreams that are being deleted have a
// finalizer of theirs, and the config still says what to do about these.
func deletes(files []*load.File, o compile.Options) bool {
	o.Live, o.Deletions = true, true
	for _, f := range append(engine.Startable(files), engine.Deletable(files)...) {
		cut, _ := f.ForDeletion()
		if cut == nil || len(f.Conventions.Finalizers()) == 0 {
			continue
		}
		if _, problems, err := compile.One(cut, o); err != nil || len(problems) == 0 {
			return true
		}
	}
	return false
}

// runnable reports whether any operator can run: one that compiles, or might.
func runnable(startable []*load.File, compiled []compile.Compiled, unknown bool) bool {
	return unknown && len(startable) > 0 || slices.ContainsFunc(compiled, func(c compile.Compiled) bool {
		return slices.Contains(startable, c.File)
	})
}
