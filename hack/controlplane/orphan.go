package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// parentEnv holds the process id of the process that started this one. Where
	// it is set, the component ends as soon as that process is gone: a test
	// binary that is killed, or that panics on a timeout, stops nothing by itself.
	parentEnv = "CONTROLPLANE_PARENT"

	// dirEnv holds the scratch directory that goes with it. It is removed only
	// if its name starts with dirPrefix, so that a mistaken value harms nothing.
	dirEnv    = "CONTROLPLANE_DIR"
	dirPrefix = "controlplane-"

	parentPoll = 500 * time.Millisecond
)

// exitWithParent watches the parent process, if it was asked to, and ends this
// process when it has become an orphan.
func exitWithParent() {
	parent, err := strconv.Atoi(os.Getenv(parentEnv))
	if err != nil {
		return
	}
	dir := os.Getenv(dirEnv)
	go func() {
		for os.Getppid() == parent {
			time.Sleep(parentPoll)
		}
		if strings.HasPrefix(filepath.Base(dir), dirPrefix) {
			_ = os.RemoveAll(dir) // a scratch directory; nobody is left to tell
		}
		os.Exit(1)
	}()
}
