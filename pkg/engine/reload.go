package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine/metrics"
	"github.com/corollary-dev/corollary/pkg/engine/state"
)

// Reload activates the configs as they were loaded again, as load.Operators returns them: all operators that could be
// made out, and all errors. It compares them by File.Digest:
//
//   - An operator whose config is equal is not touched.
//   - One whose config has changed goes on with the active one. Beside it the changed one is compiled against the API
//     server, and its watches are opened; then it takes over, once reconciles that have begun are finished. If it
//     cannot, the last good one stays active.
//   - One whose config has errors, or drops a finalizer or field manager that is in use, goes on with the active one.
//   - One that no file has any more ends, and deletes nothing, unless a file that would take its place under another
//     name cannot start. A new one starts, unless it claims names of another active operator.
//
// It waits for Start, and returns when operators without a file have ended and the rest is starting, or ctx is done.
func (e *Engine) Reload(ctx context.Context, files []*load.File, errs config.Errors) {
	select {
	case <-ctx.Done():
		return
	case <-e.started:
	}
	select {
	case <-ctx.Done():
		return
	case e.reloading <- struct{}{}:
	}
	defer func() { <-e.reloading }()
	if ctx = e.running; ctx.Err() != nil {
		return
	}
	plan := e.planReload(files, errs)
	e.forgetKindsOf(plan)
	for _, o := range plan.removed {
		o.log.Info("config removed, stopping the operator; nothing is deleted")
		o.stop()
		metrics.Forget(o.name)
	}
	var starts []func() // all of them are known to be replaced before any acts: one may make the upstreams of another
	for o, why := range plan.kept {
		if f := o.changedDeletable(plan.deletable); f != nil && o.replacementProblem(f) == "" {
			starts = append(starts, o.offer(ctx, f))
			continue
		}
		o.refuse(why)
	}
	for o, f := range plan.offered {
		starts = append(starts, o.offer(ctx, f))
	}
	for _, start := range starts {
		start()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range plan.removed {
		delete(e.operators, o.name)
	}
	for _, f := range plan.added {
		o := e.newOperator(f)
		o.added = true
		e.operators[o.name] = o
		o.start(ctx)
		o.log.Info("starting a new operator", "file", f.Path)
	}
	e.missing = e.stillMissing(files, errs)
	e.reportUnclaimed(plan.unclaimed)
}

// forgetKindsOf has the kinds of configs that are about to start requested again, once for all of them: a config and
// its kinds often change together. Without such a config no kind is forgotten.
func (e *Engine) forgetKindsOf(plan reloadPlan) {
	var list []schema.GroupVersionKind
	for o, f := range plan.offered {
		if o.changes(f) {
			list = append(list, f.Kinds()...)
		}
	}
	for _, f := range slices.Concat(plan.added, plan.deletable) {
		list = append(list, f.Kinds()...)
	}
	if len(list) > 0 {
		e.cluster.Invalidate(list...)
	}
}

// reloadPlan is what a reload does, by operator.
type reloadPlan struct {
	removed []*runner
	kept    map[*runner]string // why
	offered map[*runner]*load.File
	added   []*load.File
	// deletable are the files with errors whose upstreams can be finalized.
	deletable []*load.File
	// reported are the errors that operators report, unclaimed those of no running operator.
	reported  map[*config.Error]bool
	unclaimed []string
}

func (e *Engine) planReload(files []*load.File, errs config.Errors) reloadPlan {
	plan := reloadPlan{kept: map[*runner]string{}, offered: map[*runner]*load.File{}, reported: map[*config.Error]bool{}}
	valid := slices.DeleteFunc(slices.Clone(files), func(f *load.File) bool { return !f.Valid() })
	held := e.keepOrEnd(files, valid, errs, &plan)
	startable := Startable(files)
	for _, f := range valid {
		o := e.byName(f.Metadata.Name)
		if o != nil && plan.kept[o] != "" || o == nil && slices.Contains(held, f) {
			continue
		}
		switch found := e.claims(f, plan.removed); {
		case len(found) > 0 && o != nil:
			plan.kept[o] = oneLine(found)
		case len(found) > 0:
			errs = append(slices.Clip(errs), found...)
		case o != nil:
			plan.offered[o] = f
		case slices.Contains(startable, f):
			plan.added = append(plan.added, f)
		}
	}
	plan.deletable = slices.DeleteFunc(Deletable(files), func(f *load.File) bool {
		return len(e.claims(f, plan.removed)) > 0
	})
	for _, f := range plan.deletable {
		if e.byName(f.Metadata.Name) == nil {
			plan.added = append(plan.added, f)
			plan.report(f.Problems())
		}
	}
	for _, err := range errs {
		if !plan.reported[err] {
			plan.unclaimed = append(plan.unclaimed, err.Error())
		}
	}
	return plan
}

// keepOrEnd finds out which operators are kept in any case, and which end. held are the files that would replace one
// that is kept.
func (e *Engine) keepOrEnd(files, valid []*load.File, errs config.Errors, plan *reloadPlan) (held []*load.File) {
	for _, o := range e.all() {
		if blamed := o.errorsOf(files, errs); len(blamed) > 0 {
			plan.kept[o] = oneLine(blamed)
			plan.report(blamed)
			continue
		}
		if f := named(o.name, valid); f != nil {
			if why := o.replacementProblem(f); why != "" {
				plan.kept[o] = why
			}
			continue
		}
		by, why := o.keepWorking(files)
		if why == "" {
			plan.removed = append(plan.removed, o)
			continue
		}
		plan.kept[o] = why
		for _, f := range by {
			plan.report(f.Problems())
		}
		held = append(held, by...)
	}
	return held
}

// report records that an operator reports errors.
func (p *reloadPlan) report(errs config.Errors) {
	for _, err := range errs {
		p.reported[err] = true
	}
}

// claims are the errors of a file that claims names of another active operator. Load could not find them: the other
// one's own file may have changed and not be active.
func (e *Engine) claims(f *load.File, removed []*runner) config.Errors {
	if e.isCurrentConfig(f) {
		return nil
	}
	var working []*load.File
	for _, o := range e.all() {
		if o.name != f.Metadata.Name && !slices.Contains(removed, o) {
			working = append(working, o.currentFile())
		}
	}
	found := load.Conflicts(append(working, f))
	for _, err := range found {
		err.Fix += ", or wait until the other operator uses its changed config"
	}
	return found
}

func (e *Engine) isCurrentConfig(f *load.File) bool {
	o := e.byName(f.Metadata.Name)
	return o != nil && digestOf(o.currentFile()) == digestOf(f)
}

// keepWorking says why an active operator that no file names any more must not end yet, and by which files: its own
// file as it is now, or one that claims its names, cannot start in its place.
func (o *runner) keepWorking(files []*load.File) (by []*load.File, why string) {
	o.mu.Lock()
	works, path, working := o.current.established, o.loaded.Path, o.current.file
	o.mu.Unlock()
	var whys []string
	for _, f := range files {
		claims := len(load.Conflicts([]*load.File{working, f})) > 0
		if !works || !claims && f.Path != path || o.engine.isCurrentConfig(f) {
			continue
		}
		g := o.engine.newOperator(f).current
		g.forgetKinds()
		if _, reason, err := g.compile(); err != nil {
			by, whys = append(by, f), append(whys, fmt.Sprintf("%s: %s", reason, oneLine(err)))
		} else if stranded := o.replacementProblem(f); claims && stranded != "" {
			by, whys = append(by, f), append(whys, stranded)
		}
	}
	return by, strings.Join(whys, "; ")
}

// named returns the file of an operator; nil if there is none.
func named(name string, files []*load.File) *load.File {
	i := slices.IndexFunc(files, func(f *load.File) bool { return f.Metadata.Name == name })
	if i < 0 {
		return nil
	}
	return files[i]
}

// errorsOf lists the errors of the file that the operator came from, or of the one that has its name now.
func (o *runner) errorsOf(files []*load.File, errs config.Errors) config.Errors {
	var blamed config.Errors
	current := o.lastLoaded()
	take := func(concerns func(*config.Error) bool) {
		for _, err := range errs {
			if concerns(err) && !slices.Contains(blamed, err) {
				blamed = append(blamed, err)
			}
		}
	}
	named := slices.ContainsFunc(files, func(f *load.File) bool { return f.Valid() && f.Metadata.Name == o.name })
	came := false
	for _, f := range files {
		came = came || f.Path == current.Path
		if !f.Valid() && (f.Path == current.Path || f.Metadata.Name == o.name && !named) {
			take(f.Concerns)
		}
	}
	if !came && !named { // it may be there and not even be readable
		sources := append(current.Sources(), filepath.Dir(current.Path))
		take(func(err *config.Error) bool { return slices.Contains(sources, err.File) })
	}
	return blamed
}

func oneLine(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// changedDeletable is the file of an operator without a good config, if it still has errors: what it says about
// deletions may have changed. It is nil for others.
func (o *runner) changedDeletable(deletable []*load.File) *load.File {
	o.mu.Lock()
	refused := o.current.condition.Reason == state.ReasonConfigRefused || !o.current.file.Valid()
	o.mu.Unlock()
	if !refused {
		return nil
	}
	return named(o.name, deletable)
}

// replacementProblem says why a changed config must not take over: see informers.Cache.NamesInUse. It is empty if it
// may.
func (o *runner) replacementProblem(f *load.File) string {
	o.mu.Lock()
	s := o.current.session
	o.mu.Unlock()
	if s == nil {
		return ""
	}
	if why := s.cache.NamesInUse(&f.Operator); len(why) > 0 {
		return f.Path + ": " + strings.Join(why, "; ")
	}
	return ""
}
