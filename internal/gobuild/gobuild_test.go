package gobuild

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
)

// fakeMain is a program that builds within a second: it prints its name and its
// version.
const fakeMain = `package main

import (
	"fmt"
	"os"
	"path/filepath"
)

var version = "unknown"

func main() { fmt.Println(filepath.Base(os.Args[0]), version) }
`

// fake is its module.
var fake = Module{
	Title: "fake", Source: "hack/fake", Package: ".", Cache: "deep/fake", Binary: "fake", Links: []string{"one", "two"},
	Versioned: "example.com/versioned", Stamps: func(version string) []string { return []string{"main.version=" + version} },
}

// fakeRepository makes a repository with the given program as its module, changes to its folder, and sets an empty
// cache.
func fakeRepository(t *testing.T, program string) (cache string) {
	t.Helper()
	root, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"hack/fake/go.mod": "module fake\n\ngo 1.26.0\n\nrequire example.com/versioned v1.2.3\n\n" +
			"replace example.com/versioned => ./versioned\n",
		"hack/fake/go.sum": "",
		"hack/fake/old.mod": "module fake\n\ngo 1.26.0\n\nrequire example.com/versioned v1.0.0\n\n" +
			"replace example.com/versioned => ./versioned\n",
		"hack/fake/old.sum":          "",
		"hack/fake/main.go":          program,
		"hack/fake/versioned/go.mod": "module example.com/versioned\n\ngo 1.26.0\n",
		"pkg/deep/readme":            "",
	} {
		path := filepath.Join(root, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)))
	}
	// The cache of the go command depends on the same variables.
	goCache := must.Get(exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()).In(t)
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", cache) // Linux
	t.Setenv("HOME", cache)           // macOS
	noTelemetry(t, cache)
	t.Chdir(filepath.Join(root, "pkg/deep"))
	return cache
}

// noTelemetry turns off the telemetry process of the go command, which would write into the directory while the test
// removes it.
func noTelemetry(t *testing.T, home string) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	config := must.Get(os.UserConfigDir()).In(t)
	mode := filepath.Join(config, "go", "telemetry", "mode")
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(mode), 0o755), os.WriteFile(mode, []byte("off"), 0o600)))
}

func TestBuild(t *testing.T) {
	fakeRepository(t, fakeMain)
	if _, err := fake.Find(); !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("before anything is built, Find returns %v", err)
	}
	var builders sync.WaitGroup
	var mu sync.Mutex
	built := 0
	for range 3 {
		builders.Go(func() {
			var progress bytes.Buffer
			if _, err := fake.Build(t.Context(), &progress); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			built += strings.Count(progress.String(), "building it into") // waiting processes say that another one is building it
		})
	}
	builders.Wait()
	must.Same(t, 1, built, "three builds at once compiled", "times")
	dir := must.Get(fake.Find()).In(t)
	for _, name := range fake.names() {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).Output()
		if err != nil || strings.TrimSpace(string(out)) != name+" v1.2.3" {
			t.Errorf("%s prints %q, %v", name, out, err)
		}
	}
}

// TestBuildFromAnotherModFile: one source gives a separate program for each file that pins its dependencies.
func TestBuildFromAnotherModFile(t *testing.T) {
	fakeRepository(t, fakeMain)
	old := fake
	old.ModFile = "old.mod"
	for want, module := range map[string]Module{"fake v1.2.3": fake, "fake v1.0.0": old} {
		dir := must.Get(module.Build(t.Context(), &bytes.Buffer{})).In(t)
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "fake")).Output()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("from %q it prints %q, %v", module.modFile(), out, err)
		}
	}
}

func TestBuildAgainWhenTheSourceChanges(t *testing.T) {
	fakeRepository(t, fakeMain)
	before := must.Get(fake.Build(t.Context(), &bytes.Buffer{})).In(t)
	changed := []byte(fakeMain + "\n// changed\n")
	must.Do(t, os.WriteFile("../../hack/fake/main.go", changed, 0o600))
	if _, err := fake.Find(); !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("with another source, Find returns %v", err)
	}
	after := must.Get(fake.Build(t.Context(), &bytes.Buffer{})).In(t)
	if before == after {
		t.Errorf("both builds are in %s", after)
	}
}

func TestBuildThatFailsLeavesNothing(t *testing.T) {
	cache := fakeRepository(t, "package main\n\nfunc main() { undefinedName() }\n")
	_, err := fake.Build(t.Context(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("the error does not tell what the compiler says: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "corollary/deep/fake/*"))
	left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == ".lock" })
	if err != nil || len(left) != 0 {
		t.Errorf("the cache holds %v, %v", left, err)
	}
}

func TestBuildCanBeInterrupted(t *testing.T) {
	fakeRepository(t, fakeMain)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fake.Build(ctx, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted build returns %v", err)
	}
}

func TestOutsideOfAClone(t *testing.T) {
	fakeRepository(t, fakeMain)
	t.Chdir(t.TempDir())
	if _, err := fake.Build(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), fake.Source) {
		t.Errorf("outside of a clone it returns %v", err)
	}
}

func TestKubernetesStamps(t *testing.T) {
	got := KubernetesStamps("v1.36.3")
	for _, want := range []string{
		"k8s.io/component-base/version.gitVersion=v1.36.3",
		"k8s.io/component-base/version.gitMajor=1",
		"k8s.io/component-base/version.gitMinor=36",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestReporter(t *testing.T) {
	var out bytes.Buffer
	r := newReporter("fake", &out)
	r.compiling(10)
	for _, text := range []string{"example.com/a\nexamp", "le.com/b\n# example.com/c\n", "./c.go:1:1: what is wrong\n"} {
		must.Get(r.Write([]byte(text))).In(t)
	}
	r.print()
	r.stop()
	if !strings.Contains(out.String(), "2 of at most 10 packages") {
		t.Errorf("the progress is %q", out.String())
	}
	if tail := r.tail(); !strings.Contains(tail, "what is wrong") || strings.Contains(tail, "example.com/a") {
		t.Errorf("the output to show after a failure is %q", tail)
	}
}
