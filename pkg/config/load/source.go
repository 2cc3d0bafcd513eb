package load

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// Options says what to load.
type Options struct {
	// Files are config files, directories of them, or "-" for standard input.
	Files []string
	// Set are overrides as given on the command line: OPERATOR:path=value, the path in fieldpath's syntax, the
	// value YAML. They win over Env, which wins over the files.
	Set []string
	// Env is the environment as os.Environ gives it. Only COROLLARY_SET_… counts here; see EnvPrefix.
	Env []string
	// Stdin is read for the file "-".
	Stdin io.Reader
	// Program is the version of this program, which configs may require; empty where it does not matter.
	Program string
	// Identity, if it is not empty, replaces the identity in activations. With Anybody they need none.
	Identity string
	Anybody  bool
}

// maxFile bounds the size of a config or template file; a ConfigMap holds 1 MiB.
const maxFile = 8 << 20

// source is one file to read.
type source struct {
	path      string
	directory bool // found in a directory, not named itself
}

// find resolves files and directories into files, each once, in the order given and sorted within a directory.
// A directory gives its *.yaml and *.yml, not those of directories in it: the hidden ones that a mounted
// ConfigMap has (..data, ..2026_01_02…) hold the very files that its links point to.
func find(names []string) ([]source, config.Errors) {
	var out []source
	var errs config.Errors
	seen := map[string]bool{}
	add := func(s source) {
		if !seen[filepath.Clean(s.path)] {
			seen[filepath.Clean(s.path)] = true
			out = append(out, s)
		}
	}
	for _, name := range names {
		if name == "-" {
			add(source{path: document.StdinName})
			continue
		}
		info, err := os.Stat(name)
		switch {
		case err != nil:
			errs = append(errs, unreadable(name, err))
		case !info.IsDir():
			add(source{path: name})
		default:
			found, err := list(name)
			if err != nil {
				errs = append(errs, err)
			}
			for _, path := range found {
				add(source{path: path, directory: true})
			}
		}
	}
	return out, errs
}

// list returns the config files of a directory.
func list(dir string) ([]string, *config.Error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	var out []string
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if strings.HasPrefix(e.Name(), ".") || ext != ".yaml" && ext != ".yml" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		out = append(out, path)
	}
	if len(out) == 0 {
		return nil, &config.Error{File: dir, Problem: "the directory contains no *.yaml or *.yml",
			Fix: "name another, or the files themselves; folders in it are not read"}
	}
	return out, nil
}

// read returns a file's bytes.
func (s source) read(stdin io.Reader) ([]byte, *config.Error) {
	if s.path == document.StdinName {
		if stdin == nil {
			return nil, &config.Error{File: document.StdinName, Problem: "standard input is not available", Fix: "name a file"}
		}
		data, err := readAll(stdin)
		if err != nil {
			return nil, unreadable(document.StdinName, err)
		}
		return data, nil
	}
	data, err := readFile(s.path)
	if err != nil {
		return nil, unreadable(s.path, err)
	}
	return data, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost when closing fails
	return readAll(f)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d MiB", maxFile>>20)
	}
	return data, err
}

func unreadable(path string, err error) *config.Error {
	return &config.Error{File: path, Problem: "cannot be read: " + reason(err), Fix: "check the name and the permissions"}
}

// reason drops the operation and path that the error repeats.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
