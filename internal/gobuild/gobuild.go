// Package gobuild builds the programs that tests and demonstrations run (a control plane, helm) from modules of this
// repository, once, into the user's cache. It does not run them. It does not import Kubernetes, so that a build can
// start at once.
package gobuild

import (
	"cmp"
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

// ErrNotBuilt means that the program is not in the user's cache and that no build was requested.
var ErrNotBuilt = errors.New("it is not built")

// Module is a Go module of this repository that pins one program and its dependencies. Only go.mod and go.sum select
// versions.
type Module struct {
	// Title names the program in progress and errors: "control plane".
	Title string
	// Source is the module's folder, relative to the root of the repository.
	Source string
	// ModFile is a file in that folder used instead of go.mod, and its .sum instead of go.sum, to build the same sources
	// with other versions; "" means go.mod.
	ModFile string
	// Package is the package to build: "." or the import path of a dependency.
	Package string
	// Tags are its build tags, separated by commas.
	Tags string
	// Cache is the folder of the builds, relative to the project's folder in the user's cache.
	Cache string
	// Binary is the file name of the program.
	Binary string
	// Links are other names of the program, if it depends on its own name.
	Links []string
	// Versioned is the module whose version is set in the binary by Stamps, as package.variable=value. Without Stamps
	// nothing is set.
	Versioned string
	Stamps    func(version string) []string
}

// Find returns the directory that holds the program, without building anything,
// or an error that wraps ErrNotBuilt.
func (m Module) Find() (string, error) {
	_, dir, err := m.locate()
	if err != nil {
		return "", err
	}
	if err := Complete(dir, m.names()...); err != nil {
		return "", fmt.Errorf("looking for the %s: %w: %w", m.Title, ErrNotBuilt, err)
	}
	return dir, nil
}

// Build returns the directory of the program and builds it first if necessary, which takes minutes; it reports to
// progress. Several processes may call it at once: one builds, the others wait.
func (m Module) Build(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := m.Find()
	if err == nil || !errors.Is(err, ErrNotBuilt) {
		return dir, err
	}
	root, dir, err := m.locate()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("creating the cache directory: %w", err)
	}
	unlock, err := m.lock(ctx, filepath.Dir(dir), progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if Complete(dir, m.names()...) == nil { // built by another process meanwhile
		return dir, nil
	}
	if err := m.build(ctx, filepath.Join(root, m.Source), dir, progress); err != nil {
		return "", err
	}
	return dir, nil
}

// Complete returns nil if the directory has a file with each of the names.
func Complete(dir string, names ...string) error {
	for _, name := range names {
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

// names returns all file names of the program.
func (m Module) names() []string {
	return append([]string{m.Binary}, m.Links...)
}

// locate returns the repository's root and the program's directory in the user's cache. Its name is a digest of the
// sources.
func (m Module) locate() (root, dir string, err error) {
	root, err = m.repository()
	if err != nil {
		return "", "", err
	}
	key, err := m.digest(filepath.Join(root, m.Source))
	if err != nil {
		return "", "", fmt.Errorf("reading the sources of the %s: %w", m.Title, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("looking for the user's cache directory: %w", err)
	}
	return root, filepath.Join(cache, "corollary", m.Cache, key), nil
}

// repository walks up from the working directory to the folder that holds the
// module.
func (m Module) repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, m.Source, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("looking for the repository: no %s in %s or any folder above it: "+
				"run this inside a clone", m.Source, start)
		}
	}
}

// modFile returns the name of the file that pins the dependencies.
func (m Module) modFile() string {
	return cmp.Or(m.ModFile, "go.mod")
}

// digest identifies a build of the module in the folder source: its sources, its
// dependencies, its tags and the platform that it is built for.
func (m Module) digest(source string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOOS, runtime.GOARCH+m.Tags)
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", err
	}
	mod := filepath.Join(source, m.modFile())
	for _, file := range append(files, mod, strings.TrimSuffix(mod, ".mod")+".sum") {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(file), len(data))
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
