package activation

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// Set has the activations in which this process takes part, as long as it runs.
type Set []taken

type taken struct {
	*Activation
	file *load.ActivationFile
}

// NewSet prepares to take part in the activations without errors.
func NewSet(files []*load.ActivationFile, logger logr.Logger) (Set, error) {
	var list Set
	for _, f := range files {
		if !f.Valid() {
			continue // no operator that follows it runs
		}
		a, err := New(f, logger)
		if err != nil {
			return nil, err
		}
		list = append(list, taken{a, f})
	}
	return list, nil
}

// Around is work with the activations around it: they are taken part in once may is closed, and given up when work has
// ended.
func (l Set) Around(may <-chan struct{}, work func(context.Context) error) func(context.Context) error {
	for _, a := range l {
		inner := work
		work = func(ctx context.Context) error { return a.Run(ctx, may, inner) }
	}
	return work
}

// Of is the tenure of the activation that an operator follows; nil for none. An activation that came or went while the
// process runs is an error: nothing is written that it might forbid.
func (l Set) Of(f *load.File) (*leadership.Tenure, error) {
	const fix = "restart the process"
	follows := f.Follows()
	switch {
	case follows == nil && (f.Activation == config.EveryCluster || len(l) == 0):
		return nil, nil
	case follows == nil:
		return nil, f.Errorf("activation", fix, "the activation that the operator followed is gone")
	}
	at := slices.IndexFunc(l, func(a taken) bool { return a.Name == follows.Metadata.Name })
	if at < 0 {
		return nil, f.Errorf("activation", fix, "this process takes no part in activation %s", follows.Metadata.Name)
	}
	return l[at].Tenure, nil
}

// Changed are the differences of the files from what this process takes part in: it does so as long as it runs.
func (l Set) Changed(files []*load.ActivationFile) config.Errors {
	const fix = "restart the process"
	var errs config.Errors
	for _, f := range files {
		at := slices.IndexFunc(l, func(a taken) bool { return a.Name == f.Metadata.Name })
		switch {
		case !f.Valid():
		case at < 0:
			errs = append(errs, f.Errorf("metadata.name", fix,
				"this process takes no part in the new activation %s", f.Metadata.Name))
		case l[at].file.Digest() != f.Digest():
			errs = append(errs, f.Errorf("", fix, "activation %s has changed, and this process follows it as it was",
				f.Metadata.Name))
		}
	}
	for _, a := range l {
		if !slices.ContainsFunc(files, func(f *load.ActivationFile) bool { return f.Metadata.Name == a.Name }) {
			errs = append(errs, &config.Error{File: a.file.Path(), Fix: fix,
				Problem: fmt.Sprintf("activation %s is gone, and this process still follows it", a.Name)})
		}
	}
	return errs
}
