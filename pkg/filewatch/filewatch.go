// Package filewatch reports that files may have changed: when the kernel notifies, and at an interval, because some
// network file systems never notify. It does not read the files, and may report too often.
package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// Options configure Run.
type Options struct {
	// Interval is the time between two calls without a notification; more than 0.
	Interval time.Duration
	Log      logr.Logger
}

const (
	// quietPeriod is how long to wait for further notifications before calling changed: editors and kubelets write in
	// several steps.
	quietPeriod = 100 * time.Millisecond
	// maxWait is the longest wait for calm.
	maxWait = time.Second
)

// Run calls changed at once, whenever one of the paths (files or folders) may have changed, and every interval, until
// ctx is done. changed returns the paths to watch from then on; it is never called concurrently. Run watches folders,
// so it notices files that are created or replaced, and links that change.
func Run(ctx context.Context, o Options, changed func() []string) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		o.Log.Info("files cannot be watched and are looked at from time to time only", "interval",
			o.Interval.String(), "error", err.Error())
		poll(ctx, o.Interval, changed)
		return
	}
	defer func() { _ = w.Close() }() // nothing was written
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		// A change between changed() and the start of a watch would be missed: call changed again if a folder is newly
		// watched.
		for watchFolders(w, changed()) {
		}
		if !wait(ctx, w, o.Log, tick.C) {
			return
		}
	}
}

// poll calls changed every interval.
func poll(ctx context.Context, interval time.Duration, changed func() []string) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		changed()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// watchFolders watches the folders of the paths, and no others. It reports whether any is new. Folders that cannot be
// watched, for example because they do not exist, are checked at the interval.
func watchFolders(w *fsnotify.Watcher, paths []string) (more bool) {
	wanted := folders(paths)
	before := w.WatchList()
	for _, dir := range before {
		if !slices.Contains(wanted, dir) {
			_ = w.Remove(dir) // the folder may be gone
		}
	}
	for _, dir := range wanted {
		if !slices.Contains(before, dir) {
			more = w.Add(dir) == nil || more
		}
	}
	return more
}

// folders returns the folders in which a change of one of the paths is visible: the path itself if it is a folder, its
// parent, and the parent of the file that links lead to.
func folders(paths []string) []string {
	var dirs []string
	add := func(path string) {
		if path = filepath.Clean(path); !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for _, path := range paths {
		add(filepath.Dir(path))
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			add(path)
		}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			add(filepath.Dir(target))
		}
	}
	return dirs
}

// wait returns true when changed must be called again, false when ctx is done.
func wait(ctx context.Context, w *fsnotify.Watcher, log logr.Logger, tick <-chan time.Time) bool {
	var quiet, late <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case <-quiet:
			return true
		case <-late:
			return true
		case err := <-w.Errors: // an overflow: notifications were lost
			log.V(1).Info("notices of files were lost", "error", err.Error())
			return true
		case event := <-w.Events:
			if event.Op == fsnotify.Chmod {
				continue
			}
			quiet = time.After(quietPeriod)
			if late == nil {
				late = time.After(maxWait)
			}
		}
	}
}
