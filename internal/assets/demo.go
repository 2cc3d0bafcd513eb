package assets

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/corollary-dev/corollary/internal/gobuild"
)

// manager is the binary that setup-envtest does not install.
const manager = "kube-controller-manager"

// server are the required binaries.
var server = []string{"etcd", "kube-apiserver"}

// BuildForDemo returns a directory with at least etcd and kube-apiserver: KUBEBUILDER_ASSETS, our own build if it
// exists, the newest version that setup-envtest has installed, or else a new build, which takes minutes. hasManager
// reports whether it has kube-controller-manager.
func BuildForDemo(ctx context.Context, progress io.Writer) (dir string, hasManager bool, err error) {
	if dir := os.Getenv(Env); dir != "" {
		if err := gobuild.Complete(dir, server...); err != nil {
			_, err := named(dir)
			return "", false, err
		}
		return dir, gobuild.Complete(dir, manager) == nil, nil
	}
	if dir, err := module.Find(); err == nil {
		return dir, true, nil
	}
	if dir := installed(); dir != "" {
		return dir, gobuild.Complete(dir, manager) == nil, nil
	}
	dir, err = Build(ctx, progress)
	return dir, true, err
}

// installed returns the directory of the newest version that setup-envtest has installed for this platform; "" if there
// is none.
func installed() string {
	suffix := "-" + runtime.GOOS + "-" + runtime.GOARCH
	found, _ := filepath.Glob(filepath.Join(dataHome(), "k8s", "*"+suffix)) // the pattern is well formed
	best, newest := "", version.MustParseSemantic("0.0.0")
	for _, dir := range found {
		name := filepath.Base(dir)
		v, err := version.ParseSemantic(name[:len(name)-len(suffix)])
		if err == nil && newest.LessThan(v) && gobuild.Complete(dir, server...) == nil {
			best, newest = dir, v
		}
	}
	return best
}

// dataHome returns the directory in which setup-envtest installs, by its own rules.
func dataHome() string {
	home, _ := os.UserHomeDir() // "" finds nothing
	switch {
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest")
	case os.Getenv("XDG_DATA_HOME") != "":
		return filepath.Join(os.Getenv("XDG_DATA_HOME"), "kubebuilder-envtest")
	}
	return filepath.Join(home, ".local", "share", "kubebuilder-envtest")
}
