package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/corollary-dev/corollary/pkg/activation"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

func bindIdentity(flags *pflag.FlagSet, identity *string) {
	flags.StringVar(identity, "activation-identity", "",
		"Identity of this cluster in files of kind Activation, in the place of theirs; different in each cluster")
}

// activations are those in which this process takes part, as long as it runs.
type activations []runningActivation

type runningActivation struct {
	*activation.Activation
	file *load.ActivationFile
}

// newActivations prepares to take part in the activations without errors.
func newActivations(files []*load.ActivationFile, logger logr.Logger) (activations, error) {
	var list activations
	for _, f := range files {
		if !f.Valid() {
			continue // no operator that follows it runs
		}
		a, err := activation.New(f, logger)
		if err != nil {
			return nil, err
		}
		list = append(list, runningActivation{a, f})
	}
	return list, nil
}

// around is work with the activations around it: they are taken part in once may is closed, and given up when work has ended.
func (l activations) around(may <-chan struct{}, work func(context.Context) error) func(context.Context) error {
	for _, a := range l {
		inner := work
		work = func(ctx context.Context) error { return a.Run(ctx, may, inner) }
	}
	return work
}

// of is the tenure of the activation that an operator follows; nil for none. An activation that came or went while the process
// runs is an error: nothing is written that it might forbid.
func (l activations) of(f *load.File) (*leadership.Tenure, error) {
	const fix = "restart the process"
	follows := f.Follows()
	switch {
	case follows == nil && (f.Activation == config.EveryCluster || len(l) == 0):
		return nil, nil
	case follows == nil:
		return nil, f.Errorf("activation", fix, "the activation that the operator followed is gone")
	}
	at := slices.IndexFunc(l, func(a runningActivation) bool { return a.Name == follows.Metadata.Name })
	if at < 0 {
		return nil, f.Errorf("activation", fix, "this process takes no part in activation %s", follows.Metadata.Name)
	}
	return l[at].Tenure, nil
}

// changed are the differences of the files from what this process takes part in: it does so as long as it runs.
func (l activations) changed(files []*load.ActivationFile) config.Errors {
	const fix = "restart the process"
	var errs config.Errors
	for _, f := range files {
		at := slices.IndexFunc(l, func(a runningActivation) bool { return a.Name == f.Metadata.Name })
		switch {
		case !f.Valid():
		case at < 0:
			errs = append(errs, f.Errorf("metadata.name", fix, "this process takes no part in the new activation %s", f.Metadata.Name))
		case l[at].file.Digest() != f.Digest():
			errs = append(errs, f.Errorf("", fix, "activation %s has changed, and this process follows it as it was", f.Metadata.Name))
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
