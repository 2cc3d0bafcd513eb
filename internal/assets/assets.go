// Package assets finds the binaries of the control plane that tests and
// demonstrations run on, and has them built where they are not there yet. It
// knows where they are, not how to run them.
package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/corollary-dev/corollary/internal/gobuild"
)

// Env is the environment variable that names a directory with ready-made
// binaries (as setup-envtest prints it). Where it is set, it wins: nothing is
// looked up in the cache and nothing is built.
const Env = "KUBEBUILDER_ASSETS"

// Names are the binaries that make a control plane, by file name.
var Names = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// oldest is the file that pins the oldest version of Kubernetes that is supported.
const oldest = "oldest.mod"

// module is what the control plane is built from.
var module = gobuild.Module{
	Title: "control plane", Source: "hack/controlplane", Package: ".",
	Cache: "controlplane", Binary: "controlplane", Links: Names,
	Versioned: gobuild.Kubernetes, Stamps: gobuild.KubernetesStamps,
}

// Find returns the directory that holds the binaries, without building
// anything: the one that KUBEBUILDER_ASSETS names or else the one in the user's
// cache. It returns an error that wraps gobuild.ErrNotBuilt where the cache has
// none, and another where the directory that was named lacks a binary.
func Find() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return named(dir)
	}
	dir, err := module.Find()
	if errors.Is(err, gobuild.ErrNotBuilt) {
		return "", fmt.Errorf("%w: build it once with `go run ./hack/assets controlplane` (as `make test` does), or set %s", err, Env)
	}
	return dir, hint(err)
}

// Build returns the directory that holds the binaries and builds them first if
// need be, which takes minutes; what it is at is written to progress. Several
// processes may call it at once: one builds, the others wait for it.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return named(dir)
	}
	dir, err := module.Build(ctx, progress)
	return dir, hint(err)
}

// BuildOldest is Build for the oldest version of Kubernetes that is supported. A
// test runs on it where KUBEBUILDER_ASSETS is the directory returned.
func BuildOldest(ctx context.Context, progress io.Writer) (string, error) {
	old := module
	old.Title, old.ModFile = "oldest control plane", oldest
	return old.Build(ctx, progress)
}

// named returns the directory that KUBEBUILDER_ASSETS names, if it is complete.
func named(dir string) (string, error) {
	if err := gobuild.Complete(dir, Names...); err != nil {
		return "", fmt.Errorf("using %s=%s: %w: it needs %s; where one is lacking (setup-envtest brings no controller manager), "+
			"unset %s to use a build of our own", Env, dir, err, strings.Join(Names, ", "), Env)
	}
	return dir, nil
}

// hint adds to an error what would do instead of a build.
func hint(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (%s=<directory> uses binaries that are there already)", err, Env)
}
