// Package assets finds the binaries of the control plane that tests and
// demonstrations run on, and builds them where they are not there yet. It knows
// where they are, not how to run them; it imports nothing of Kubernetes, so that
// the build can begin at once on a machine that has compiled nothing so far.
package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Env is the environment variable that names a directory with ready-made
// binaries (as setup-envtest prints it). Where it is set, it wins: nothing is
// looked up in the cache and nothing is built.
const Env = "KUBEBUILDER_ASSETS"

// source is the module that the control plane is built from, relative to the
// root of the repository.
const source = "hack/controlplane"

// Names are the binaries that make a control plane, by file name.
var Names = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// ErrNotBuilt says that there are no binaries yet and that nobody asked for
// them to be built.
var ErrNotBuilt = errors.New("the control plane is not built")

// Find returns the directory that holds the binaries, without building
// anything: the one that KUBEBUILDER_ASSETS names or else the one in the user's
// cache. It returns an error that wraps ErrNotBuilt where the cache has none, and
// another where the directory that was named lacks a binary.
func Find() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		if err := complete(dir); err != nil {
			return "", fmt.Errorf("using %s=%s: %w: it needs %s; where one is lacking (setup-envtest brings no controller manager), "+
				"unset %s to use a build of our own", Env, dir, err, strings.Join(Names, ", "), Env)
		}
		return dir, nil
	}
	_, dir, err := locate()
	if err != nil {
		return "", err
	}
	if err := complete(dir); err != nil {
		return "", fmt.Errorf("%w: build it once with `go run ./hack/assets` (as `make test` does), or set %s: %w",
			ErrNotBuilt, Env, err)
	}
	return dir, nil
}

// Build returns the directory that holds the binaries and builds them first if
// need be, which takes minutes; what it is at is written to progress. Several
// processes may call it at once: one builds, the others wait for it.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := Find()
	if err == nil || !errors.Is(err, ErrNotBuilt) {
		return dir, err
	}
	root, dir, err := locate()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("creating the cache directory: %w", err)
	}
	unlock, err := lock(ctx, filepath.Dir(dir), progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(dir) == nil { // built by the process we waited for
		return dir, nil
	}
	if err := build(ctx, filepath.Join(root, source), dir, progress); err != nil {
		return "", err
	}
	return dir, nil
}

// locate returns the repository's root and the directory in the user's cache
// where the binaries belong. Its name is a digest of what they are made from.
func locate() (root, dir string, err error) {
	root, err = repository()
	if err != nil {
		return "", "", err
	}
	key, err := digest(filepath.Join(root, source))
	if err != nil {
		return "", "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("looking for the user's cache directory: %w", err)
	}
	return root, filepath.Join(cache, "corollary", "controlplane", key), nil
}

// repository walks up from the working directory to the folder that holds the
// control plane's source.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, source, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("looking for the repository: no %s in %s or any folder above it: "+
				"run this inside a clone, or set %s", source, start, Env)
		}
	}
}

// digest identifies a build: its sources, its dependencies and the platform that
// it is built for.
func digest(module string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOOS, runtime.GOARCH)
	files, err := filepath.Glob(filepath.Join(module, "*.go"))
	if err != nil {
		return "", fmt.Errorf("listing the control plane's sources: %w", err)
	}
	for _, file := range append(files, filepath.Join(module, "go.mod"), filepath.Join(module, "go.sum")) {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the control plane's sources: %w", err)
		}
		fmt.Fprintln(sum, filepath.Base(file), len(data))
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// complete returns nil if the directory holds every binary.
func complete(dir string) error {
	for _, name := range Names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("looking for %s: %w", name, err)
		}
		if info.IsDir() {
			return fmt.Errorf("looking for %s: %w: it is a directory", name, fs.ErrInvalid)
		}
	}
	return nil
}
