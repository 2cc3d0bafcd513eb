package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// parentEnv has the process id of the parent process. If it is set, the component ends as soon as that process is
	// gone: a test binary that is killed, or that panics on a timeout, does not stop its children.
	parentEnv = "CONTROLPLANE_PARENT"

	// dirEnv has the scratch directory of the component. It is removed only if its name starts with dirPrefix, so that a
	// wrong value does no harm.
	dirEnv    = "CONTROLPLANE_DIR"
	dirPrefix = "controlplane-"

	parentPoll = 500 * time.Millisecond
)

// exitWithParent watches the parent process, if parentEnv is set, and ends this process when the parent is gone.
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
			_ = os.RemoveAll(dir) // a scratch directory; the parent is gone, so nobody reads the error
		}
		os.Exit(1)
	}()
}
