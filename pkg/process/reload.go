package process

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/engine"
	"github.com/corollary-dev/corollary/pkg/filewatch"
)

// reloader loads the configs again whenever their files may have changed, as long as the operators run.
type reloader struct {
	// load returns the configs as they are now; named are the files and folders that they were named by.
	load     func() ([]*load.File, config.Errors)
	named    []string
	interval time.Duration
	engine   *engine.Engine
	log      logr.Logger
	// sources are the files that the configs were last made of.
	sources []string
}

// NeedLeaderElection is false: a standby follows its configs too, so that it leads by those that are there.
func (r *reloader) NeedLeaderElection() bool { return false }

// Start runs until ctx is done.
func (r *reloader) Start(ctx context.Context) error {
	filewatch.Run(ctx, filewatch.Options{Interval: r.interval, Log: r.log}, func() []string { return r.reload(ctx) })
	return nil
}

// reload hands the configs as they are now to the engine, which finds out what is new in them, and returns the files
// and folders that they come from. While something is wrong the files that were good count too: fixing may begin with
// them.
func (r *reloader) reload(ctx context.Context) []string {
	files, errs := r.load()
	sources := slices.Clone(r.named)
	for _, f := range files {
		sources = append(sources, f.Sources()...)
	}
	if len(errs) > 0 {
		sources = append(sources, r.sources...)
	}
	slices.Sort(sources)
	r.sources = slices.Compact(sources)
	r.engine.Reload(ctx, files, errs)
	return r.sources
}
