package cases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// A case is recognized by its first lines. A file without them, such as a template, is not a case and need not be YAML.
var (
	headVersion = regexp.MustCompile(`(?m)^["']?apiVersion["']?:[ \t]*["']?([^\s"']+)`)
	headKind    = regexp.MustCompile(`(?m)^["']?kind["']?:[ \t]*["']?([^\s"']+)`)
)

// Find returns the case files among files and below directories, sorted by name. It skips folders whose name begins
// with a dot.
func Find(args []string) ([]string, error) {
	var paths []string
	var errs []error
	for _, arg := range args {
		found, err := casesIn(filepath.Clean(arg))
		errs = append(errs, err)
		for _, path := range found {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return paths, nil
}

func casesIn(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if err != nil {
		return nil, fmt.Errorf("looking for cases: %w", err)
	}
	if !info.IsDir() {
		return []string{arg}, nil // read checks it
	}
	var paths []string
	err = filepath.WalkDir(arg, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != arg && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)):
			return nil
		}
		isCase, err := looksLikeCase(path)
		if isCase {
			paths = append(paths, path)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking for cases: %w", err)
	case len(paths) == 0:
		return nil, fmt.Errorf("no cases found in %s: a case is a YAML file that begins with apiVersion: %s and kind: %s",
			arg,
			config.APIVersion, Kind)
	}
	return paths, nil
}

// looksLikeCase reports whether a file is a case. It returns an error for a file that was probably meant to be one.
func looksLikeCase(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	group, _, _ := strings.Cut(config.APIVersion, "/")
	version, kind := firstGroup(headVersion, text), firstGroup(headKind, text)
	ours := strings.HasPrefix(version, group+"/")
	switch {
	case kind == Kind:
		return ours || version == "", nil
	case ours && !slices.Contains([]string{config.Kind, config.ConventionsKind}, kind) &&
		spelling.Closest(kind, []string{Kind}) != "":
		return false, fmt.Errorf("%s: kind %s is unknown: did you mean %s?", path, kind, Kind)
	}
	return false, nil
}

func firstGroup(r *regexp.Regexp, text []byte) string {
	if m := r.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// Name returns the name of a case: its path without the extension.
func Name(path string) string {
	return filepath.ToSlash(strings.TrimSuffix(path, filepath.Ext(path)))
}
