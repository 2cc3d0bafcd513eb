//go:build controlplane

package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
)

// The tests of single examples run in parallel, once TestExamplesOnACluster, which runs them all, is over: two
// processes with one config would be in each other's way.

func TestMain(m *testing.M) {
	crds, err := filepath.Glob("configs/*/crd.yaml")
	if err != nil {
		panic(err) // the pattern is malformed
	}
	log.SetLogger(logr.Discard())
	testkit.Main(m, testkit.WithCRDs(crds...),
		testkit.WithControllers(controlplane.GarbageCollector, controlplane.Namespaces, controlplane.Deployments),
		testkit.WithParallel(8))
}

// runExample runs an example's config, just as it is.
func runExample(t *testing.T, name string) *operator {
	t.Helper()
	return operate(t, example{filepath.Join("configs", name)}.config())
}

// operate runs configs until the test ends or halt is called, with no more rights than `generate rbac` derives from
// them. It returns once they are at work.
func operate(t *testing.T, paths ...string) *operator {
	t.Helper()
	files := loaded(t, paths...)
	return operateAs(t, grant(t, files), files)
}

func loaded(t *testing.T, paths ...string) []*load.File {
	t.Helper()
	files, errs := load.Operators(load.Options{Files: paths})
	if len(errs) > 0 {
		t.Fatalf("the configs cannot run:\n%v", errs)
	}
	return files
}

func operateAs(t *testing.T, a *account, files []*load.File) *operator {
	t.Helper()
	o := &operator{Counter: testkit.NewCounter(), t: t}
	e, stop := launch(t, o.Wrap(a.config(t)), files)
	o.stop = stop
	o.ended = func() {
		for _, refused := range a.lacked(t, o.Counter) {
			t.Errorf("the derived rights do not suffice: %s is forbidden", refused)
		}
	}
	t.Cleanup(o.halt)
	awaitReady(t, e)
	return o
}

// writes counts the requests that could change an object of a resource in a namespace.
func (o *operator) writes(resource, namespace string) int {
	return len(o.Requests(testkit.Request.Mutating, func(r testkit.Request) bool { return r.Resource == resource && r.Namespace == namespace }))
}

// changed writes an example's config with some of its text replaced (old, new, old, new, …) and returns the file.
func changed(t *testing.T, name string, oldnew ...string) string {
	t.Helper()
	text := string(read(t, example{filepath.Join("configs", name)}.path("operator.yaml")))
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the config of %s does not have %q", name, oldnew[i])
		}
	}
	path := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(oldnew...).Replace(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
