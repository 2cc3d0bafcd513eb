// Package filewatch tells when files may have changed: by the kernel's notices, and from time to time in case there are
// none, as on some network file systems. It reads no file and does not know what is in it; who is told must be content
// with being told too often.
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

// Options are how files are watched.
type Options struct {
	// Interval is how often to look without a notice; more than 0.
	Interval time.Duration
	Log      logr.Logger
}

const (
	// calm is how long no further notice must come before changed is called: editors and kubelets write in several steps.
	calm = 100 * time.Millisecond
	// patience is how long notices are waited out at most.
	patience = time.Second
)

// Run calls changed at once, then whenever one of the paths, files or folders, may have changed, and every interval, until
// ctx is done. changed returns the paths to watch from then on; it is never called twice at a time. What is watched are
// the folders, so that a file that is replaced, comes to be, or is a link that is turned to another file is seen too.
func Run(ctx context.Context, o Options, changed func() []string) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		o.Log.Info("files cannot be watched and are looked at from time to time only", "interval", o.Interval.String(), "error", err.Error())
		poll(ctx, o.Interval, changed)
		return
	}
	defer func() { _ = w.Close() }() // nothing is written
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	for {
		// What changes between the look and the watch would go unnoticed: a folder that was not watched is looked at again.
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

// watchFolders has the watcher watch the folders of the paths, and no others. It reports whether any is new. One that
// cannot be watched, such as one that does not exist, is left to the interval.
func watchFolders(w *fsnotify.Watcher, paths []string) (more bool) {
	wanted := folders(paths)
	before := w.WatchList()
	for _, dir := range before {
		if !slices.Contains(wanted, dir) {
			_ = w.Remove(dir) // it may have gone by itself
		}
	}
	for _, dir := range wanted {
		if !slices.Contains(before, dir) {
			more = w.Add(dir) == nil || more
		}
	}
	return more
}

// folders lists where a change of one of the paths shows: the path itself where it is a folder, the folder it is in, and
// the one in which the file stands that links lead to.
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

// wait returns true when it is time to look again, false when ctx is done.
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
		case err := <-w.Errors: // an overflow: something was missed
			log.V(1).Info("notices of files were lost", "error", err.Error())
			return true
		case event := <-w.Events:
			if event.Op == fsnotify.Chmod {
				continue
			}
			quiet = time.After(calm)
			if late == nil {
				late = time.After(patience)
			}
		}
	}
}
