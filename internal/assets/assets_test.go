package assets

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/gobuild"
	"github.com/corollary-dev/corollary/internal/must"
)

// emptyCache sets an empty cache for the test.
func emptyCache(t *testing.T) {
	t.Helper()
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache) // Linux
	t.Setenv("HOME", cache)           // macOS
	t.Setenv(Env, "")
}

func TestNotBuilt(t *testing.T) {
	emptyCache(t)
	_, err := Find()
	if !errors.Is(err, gobuild.ErrNotBuilt) {
		t.Fatalf("with an empty cache it returns %v", err)
	}
	for _, want := range []string{"go run ./hack/assets", Env} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestEnvWins(t *testing.T) {
	emptyCache(t)
	dir := t.TempDir()
	t.Setenv(Env, dir)
	if _, err := Build(t.Context(), &bytes.Buffer{}); err == nil || errors.Is(err, gobuild.ErrNotBuilt) ||
		!strings.Contains(err.Error(), Names[0]) {
		t.Errorf("with an empty directory it returns %v", err)
	}
	for _, name := range Names {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	if got, err := Build(t.Context(), &bytes.Buffer{}); got != dir || err != nil {
		t.Errorf("it returns %s, %v", got, err)
	}
	if got, err := Find(); got != dir || err != nil {
		t.Errorf("without building it returns %s, %v", got, err)
	}
}

func TestOutsideOfAClone(t *testing.T) {
	emptyCache(t)
	t.Chdir(t.TempDir())
	if _, err := Build(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), Env) {
		t.Errorf("outside of a clone it returns %v", err)
	}
}

// TestForDemo tests all directories, from the last choice to the first.
func TestForDemo(t *testing.T) {
	emptyCache(t)
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Chdir(t.TempDir()) // nothing can be built outside of a clone
	if dir, _, err := BuildForDemo(t.Context(), &bytes.Buffer{}); err == nil {
		t.Fatalf("with nothing anywhere it returns %s", dir)
	}
	install := func(dir string, names ...string) string {
		must.Do(t, os.MkdirAll(dir, 0o700))
		for _, name := range names {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		return dir
	}
	for _, test := range []struct {
		version    string
		names      []string
		want       bool
		hasManager bool
		reason     string
	}{
		{"1.35.9", []string{"etcd"}, false, false, "half an installation is none"},
		{"1.9.0", Names, true, true, "an old one"},
		{"1.33.0", []string{"etcd", "kube-apiserver", "kubectl"}, true, false, "what setup-envtest brings, and newer than 1.9"},
		{"1.32.0", Names, false, false, "an older one does not count any more"},
	} {
		at := filepath.Join(dataHome(), "k8s", test.version+"-"+runtime.GOOS+"-"+runtime.GOARCH)
		install(at, test.names...)
		dir, hasManager, err := BuildForDemo(t.Context(), &bytes.Buffer{})
		if (dir == at) != test.want || test.want && (hasManager != test.hasManager || err != nil) {
			t.Errorf("%s: got %q, %t, %v", test.reason, dir, hasManager, err)
		}
	}
	at := install(t.TempDir(), server...)
	t.Setenv(Env, at)
	if dir, hasManager, err := BuildForDemo(t.Context(), &bytes.Buffer{}); dir != at || hasManager || err != nil {
		t.Errorf("%s comes first: got %q, %t, %v", Env, dir, hasManager, err)
	}
}
