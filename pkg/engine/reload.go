package engine

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
)

// Reload puts to work what loading the configs again gave, as config.Load returns it: all operators that could be made
// out, and all errors. It compares by File.Digest:
//
//   - An operator whose config says the same is not touched.
//   - One whose config has changed goes on with the one it has. Beside it the new one is compiled against the API server,
//     and its watches begin; then it takes over, once what is under way is finished. Where it cannot, the last good one
//     goes on.
//   - One whose config has errors, or drops a finalizer that upstreams still have, goes on with the one it has.
//   - One that no file has any more ends, and deletes nothing. A new one begins.
//
// It waits for Start, and returns when what is gone has ended and the rest is on its way, or ctx is done.
func (e *Engine) Reload(ctx context.Context, files []*config.File, errs config.Errors) {
	select {
	case <-ctx.Done():
		return
	case <-e.started:
	}
	e.reloading.Lock()
	defer e.reloading.Unlock()
	if ctx = e.running; ctx.Err() != nil {
		return
	}
	plan := e.planReload(files, errs)
	for _, o := range plan.gone {
		o.log.Info("the operator's config is gone: it ends, and nothing is deleted")
		o.stop()
		forgetOperator(o.name)
	}
	for o, why := range plan.kept {
		if f := o.changedDeletable(plan.deletable); f != nil && o.stranded(f) == "" {
			o.offer(ctx, f)
			continue
		}
		o.refuse(why)
	}
	for o, f := range plan.offered {
		o.offer(ctx, f)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range plan.gone {
		delete(e.operators, o.name)
	}
	for _, f := range plan.begun {
		o := e.newOperator(f, e.recorder(f.Metadata.Name))
		e.operators[o.name] = o
		o.start(ctx)
		if f.Valid() {
			countReload(o.name, reloadApplied)
		}
		o.log.Info("a new operator begins", "file", f.Path)
	}
	e.missing = e.stillMissing(files, errs)
	e.tellStrays(plan.strays)
}

// reloadPlan is what a reload comes to, by operator.
type reloadPlan struct {
	gone    []*operator
	kept    map[*operator]string // why
	offered map[*operator]*config.File
	begun   []*config.File
	// deletable are the files with errors whose upstreams can be cleaned up after.
	deletable []*config.File
	// strays are the errors that concern no running operator.
	strays []string
}

func (e *Engine) planReload(files []*config.File, errs config.Errors) reloadPlan {
	plan := reloadPlan{kept: map[*operator]string{}, offered: map[*operator]*config.File{}}
	told := map[*config.Error]bool{}
	var left []*operator
	for _, o := range e.all() {
		if blamed := o.blamed(files, errs); len(blamed) > 0 {
			plan.kept[o] = oneLine(blamed)
			for _, err := range blamed {
				told[err] = true
			}
			continue
		}
		if f := named(o.name, files); f != nil && f.Valid() {
			if why := o.stranded(f); why != "" {
				plan.kept[o] = why
				continue
			}
		}
		left = append(left, o)
	}
	valid, refused := e.compatible(files, &plan)
	for _, o := range left {
		f := named(o.name, valid)
		switch {
		case plan.kept[o] != "":
		case f == nil:
			plan.gone = append(plan.gone, o)
		default:
			plan.offered[o] = f
		}
	}
	startable := Startable(files)
	for _, f := range valid {
		if e.byName(f.Metadata.Name) == nil && slices.Contains(startable, f) {
			plan.begun = append(plan.begun, f)
		}
	}
	plan.deletable = e.deletable(files, plan.gone)
	for _, f := range plan.deletable {
		if e.byName(f.Metadata.Name) == nil {
			plan.begun = append(plan.begun, f)
			for _, err := range f.Problems() {
				told[err] = true
			}
		}
	}
	for _, err := range append(slices.Clip(errs), refused...) {
		if !told[err] {
			plan.strays = append(plan.strays, err.Error())
		}
	}
	return plan
}

// named finds the file of an operator; nil if there is none.
func named(name string, files []*config.File) *config.File {
	i := slices.IndexFunc(files, func(f *config.File) bool { return f.Metadata.Name == name })
	if i < 0 {
		return nil
	}
	return files[i]
}

// deletable is Deletable without the files that claim anything of what another operator works by, unless that one is gone: it
// goes on, and cleans up after its upstreams itself.
func (e *Engine) deletable(files []*config.File, gone []*operator) []*config.File {
	return slices.DeleteFunc(Deletable(files), func(f *config.File) bool {
		return slices.ContainsFunc(e.all(), func(o *operator) bool {
			return o.name != f.Metadata.Name && !slices.Contains(gone, o) &&
				len(config.Conflicts([]*config.File{o.working(), f})) > 0
		})
	})
}

// compatible returns the files without errors that go together with what the kept operators work by, which Load could not
// know of. An operator whose file does not is kept too; refused are the errors of files that no operator came from.
func (e *Engine) compatible(files []*config.File, plan *reloadPlan) (valid []*config.File, refused config.Errors) {
	var working []*config.File
	for o := range plan.kept {
		working = append(working, o.working())
	}
	for _, f := range files {
		if !f.Valid() {
			continue
		}
		var found config.Errors
		if len(working) > 0 {
			found = config.Conflicts(append(slices.Clone(working), f))
		}
		o := e.byName(f.Metadata.Name)
		switch {
		case len(found) == 0:
			valid = append(valid, f)
		case o != nil && plan.kept[o] == "":
			plan.kept[o] = oneLine(found)
			return e.compatible(files, plan) // what it works by counts now, too
		default:
			refused = append(refused, found...)
		}
	}
	return valid, refused
}

// blamed lists the errors that are about the file that the operator came from, or about the one that has its name now.
func (o *operator) blamed(files []*config.File, errs config.Errors) config.Errors {
	var blamed config.Errors
	current := o.lastLoaded()
	take := func(concerns func(*config.Error) bool) {
		for _, err := range errs {
			if concerns(err) && !slices.Contains(blamed, err) {
				blamed = append(blamed, err)
			}
		}
	}
	named := slices.ContainsFunc(files, func(f *config.File) bool { return f.Valid() && f.Metadata.Name == o.name })
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

// working is the config that the operator works by, lastLoaded the one that was last loaded without errors.
func (o *operator) working() *config.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.current.file
}

func (o *operator) lastLoaded() *config.File {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.loaded
}

// all lists the operators by name.
func (e *Engine) all() []*operator {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*operator, 0, len(e.operators))
	for _, o := range e.operators {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *operator) int { return strings.Compare(a.name, b.name) })
	return list
}

func (e *Engine) byName(name string) *operator {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.operators[name]
}

func oneLine(errs config.Errors) string {
	return strings.ReplaceAll(errs.Error(), "\n", "; ")
}
