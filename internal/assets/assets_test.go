package assets

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
)

// fakeMain is a program in place of the control plane: it prints its name.
const fakeMain = `package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() { fmt.Println(filepath.Base(os.Args[0])) }
`

// fakeRepository makes a repository whose control plane is the program given and
// builds within a second, moves into a folder of it, and gives it an empty cache.
func fakeRepository(t *testing.T, program string) (cache string) {
	t.Helper()
	root, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"hack/controlplane/go.mod": "module fake\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.2.3\n\n" +
			"replace k8s.io/kubernetes => ./kubernetes\n",
		"hack/controlplane/go.sum":            "",
		"hack/controlplane/main.go":           program,
		"hack/controlplane/kubernetes/go.mod": "module k8s.io/kubernetes\n\ngo 1.26.0\n",
		"pkg/deep/readme":                     "",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// The cache of the go command is found by way of the same variables.
	goCache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(goCache)))
	t.Setenv("XDG_CACHE_HOME", cache) // Linux
	t.Setenv("HOME", cache)           // macOS
	t.Setenv(Env, "")
	t.Chdir(filepath.Join(root, "pkg/deep"))
	return cache
}

func TestBuild(t *testing.T) {
	fakeRepository(t, fakeMain)
	if _, err := Find(); !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("before anything is built, Find returns %v", err)
	}
	var builders sync.WaitGroup
	var mu sync.Mutex
	built := 0
	for range 3 {
		builders.Go(func() {
			var progress bytes.Buffer
			if _, err := Build(t.Context(), &progress); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			built += strings.Count(progress.String(), "building it")
		})
	}
	builders.Wait()
	if built != 1 {
		t.Errorf("three builds at once compiled %d times", built)
	}
	dir, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).Output()
		if err != nil || strings.TrimSpace(string(out)) != name {
			t.Errorf("%s prints %q, %v", name, out, err)
		}
	}
}

func TestBuildAgainWhenTheSourceChanges(t *testing.T) {
	fakeRepository(t, fakeMain)
	before, err := Build(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	changed := []byte(fakeMain + "\n// changed\n")
	if err := os.WriteFile("../../hack/controlplane/main.go", changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(); !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("with another source, Find returns %v", err)
	}
	after, err := Build(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if before == after {
		t.Errorf("both builds are in %s", after)
	}
}

func TestBuildThatFailsLeavesNothing(t *testing.T) {
	cache := fakeRepository(t, "package main\n\nfunc main() { undefinedName() }\n")
	_, err := Build(t.Context(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("the error does not tell what the compiler says: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "corollary/controlplane/*"))
	left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == ".lock" })
	if err != nil || len(left) != 0 {
		t.Errorf("the cache holds %v, %v", left, err)
	}
}

func TestBuildCanBeInterrupted(t *testing.T) {
	fakeRepository(t, fakeMain)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted build returns %v", err)
	}
}

func TestEnvWins(t *testing.T) {
	fakeRepository(t, fakeMain)
	dir := t.TempDir()
	t.Setenv(Env, dir)
	if _, err := Build(t.Context(), &bytes.Buffer{}); err == nil || errors.Is(err, ErrNotBuilt) ||
		!strings.Contains(err.Error(), Names[0]) {
		t.Errorf("with an empty directory it returns %v", err)
	}
	for _, name := range Names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Build(t.Context(), &bytes.Buffer{}); got != dir || err != nil {
		t.Errorf("it returns %s, %v", got, err)
	}
}

func TestOutsideOfAClone(t *testing.T) {
	fakeRepository(t, fakeMain)
	t.Chdir(t.TempDir())
	if _, err := Build(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), Env) {
		t.Errorf("outside of a clone it returns %v", err)
	}
}

func TestLdflags(t *testing.T) {
	got := ldflags("v1.36.3")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.36.3",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=36",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestReporter(t *testing.T) {
	var out bytes.Buffer
	r := newReporter(&out)
	r.compiling(10)
	for _, text := range []string{"example.com/a\nexamp", "le.com/b\n# example.com/c\n", "./c.go:1:1: what is wrong\n"} {
		if _, err := r.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
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
