// Package assets finds the binaries of the control plane for tests and demonstrations, and builds them if they are
// missing. It does not run them.
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

// Env is the environment variable with a directory of binaries (as printed by setup-envtest). If it is set, the cache
// is not used and nothing is built.
const Env = "KUBEBUILDER_ASSETS"

// Names are the file names of the control plane's binaries.
var Names = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// oldest is the file that pins the oldest supported version of Kubernetes.
const oldest = "oldest.mod"

// module is the source of the control plane.
var module = gobuild.Module{
	Title: "control plane", Source: "hack/controlplane", Package: ".",
	Cache: "controlplane", Binary: "controlplane", Links: Names,
	Versioned: gobuild.Kubernetes, Stamps: gobuild.KubernetesStamps,
}

// Find returns the directory of the binaries, without building: KUBEBUILDER_ASSETS or else the one in the user's cache.
// The error wraps gobuild.ErrNotBuilt if the cache has none; it is another one if a binary in KUBEBUILDER_ASSETS is
// missing.
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

// Build returns the directory of the binaries and builds them first if necessary, which takes minutes; it reports to
// progress. Several processes may call it at once: one builds, the others wait.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return named(dir)
	}
	dir, err := module.Build(ctx, progress)
	return dir, hint(err)
}

// BuildOldest is Build for the oldest supported version of Kubernetes. A test uses it if KUBEBUILDER_ASSETS is the
// returned directory.
func BuildOldest(ctx context.Context, progress io.Writer) (string, error) {
	old := module
	old.Title, old.ModFile = "oldest control plane", oldest
	return old.Build(ctx, progress)
}

// named returns the directory that KUBEBUILDER_ASSETS names, if it is complete.
func named(dir string) (string, error) {
	if err := gobuild.Complete(dir, Names...); err != nil {
		return "", fmt.Errorf(
			"using %s=%s: %w: it needs %s; where one is lacking (setup-envtest brings no controller manager), "+
				"unset %s to use a build of our own", Env, dir, err, strings.Join(Names, ", "), Env)
	}
	return dir, nil
}

// hint adds an alternative to a build to an error.
func hint(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w (%s=<directory> uses binaries that are there already)", err, Env)
}
