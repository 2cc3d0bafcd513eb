// Package tools finds the programs that tests and lint run (actionlint, cert-manager, helm, promtool, hugo, kubectl)
// and builds them if they are missing. Each is pinned by its own module in tools/, so that their versions are
// independent.
package tools

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/gobuild"
)

// all are the programs; the name is that of the module in tools/.
var all = []gobuild.Module{
	{
		Binary: "actionlint", Package: "github.com/rhysd/actionlint/cmd/actionlint", Versioned: "github.com/rhysd/actionlint",
		Stamps: func(version string) []string {
			return []string{"github.com/rhysd/actionlint.version=" + strings.TrimPrefix(version, "v")}
		},
	},
	{
		Binary: "certmanager", Package: ".", Versioned: "github.com/cert-manager/cert-manager",
	},
	{
		Binary: "helm", Package: "helm.sh/helm/v4/cmd/helm", Versioned: "helm.sh/helm/v4",
		Stamps: func(version string) []string {
			return []string{"helm.sh/helm/v4/internal/version.version=" + version}
		},
	},
	{
		Binary: "hugo", Package: "github.com/gohugoio/hugo",
		Versioned: "github.com/gohugoio/hugo", // its source has the version
	},
	{
		Binary: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl",
		Versioned: gobuild.Kubernetes, Stamps: gobuild.KubernetesStamps,
	},
	{
		Binary: "promtool", Package: "github.com/prometheus/prometheus/cmd/promtool",
		Versioned: "github.com/prometheus/prometheus",
		Tags:      "remove_all_sd", // without the clients of twenty clouds, which are most of the build
		Stamps: func(version string) []string {
			return []string{"github.com/prometheus/common/version.Version=" + strings.TrimPrefix(version, "v")}
		},
	},
}

// Names returns the names of the programs, sorted.
func Names() []string {
	var names []string
	for _, tool := range all {
		names = append(names, tool.Binary)
	}
	return names
}

// Path returns the file of the program with the name. It fails the test if the program is not built: a test builds
// nothing, because that takes minutes and looks like a test that hangs.
func Path(t testing.TB, name string) string {
	t.Helper()
	module, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := module.Find()
	if err != nil {
		t.Fatalf("%v: build it once with `go run ./hack/assets %s` (as `make test` does)", err, name)
	}
	return filepath.Join(dir, name)
}

// Build returns the file of the program with the name and builds it first if necessary, which takes minutes; it reports
// to progress.
func Build(ctx context.Context, name string, progress io.Writer) (string, error) {
	module, err := find(name)
	if err != nil {
		return "", err
	}
	dir, err := module.Build(ctx, progress)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

// find returns the module of the program with the name.
func find(name string) (gobuild.Module, error) {
	i := slices.IndexFunc(all, func(tool gobuild.Module) bool { return tool.Binary == name })
	if i < 0 {
		return gobuild.Module{}, fmt.Errorf("there is no tool %q: the tools are %s", name, strings.Join(Names(), ", "))
	}
	module := all[i]
	module.Title, module.Source, module.Cache = name, "tools/"+name, "tools/"+name
	return module, nil
}
