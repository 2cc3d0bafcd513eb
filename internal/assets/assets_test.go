package assets

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/gobuild"
)

// emptyCache gives the test a cache in which nothing is built.
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
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
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
