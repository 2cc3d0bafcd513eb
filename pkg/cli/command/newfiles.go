package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// File is a file that a command writes.
type File struct{ Name, Text string }

// WriteNew writes files below a directory, all or, where one is there already and force is not given, none. It returns
// their names. otherwise says how to put them elsewhere.
func WriteNew(dir string, files []File, force bool, otherwise string) ([]string, error) {
	var taken, names []string
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		names = append(names, name)
		_, err := os.Lstat(name)
		switch {
		case err == nil:
			taken = append(taken, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("writing files: %w", err)
		}
	}
	if len(taken) > 0 && !force {
		return nil, fmt.Errorf("nothing is written: %s would be overwritten: %s, or add --force",
			strings.Join(taken, ", "), otherwise)
	}
	for i, f := range files {
		if err := os.MkdirAll(filepath.Dir(names[i]), 0o755); err != nil {
			return nil, fmt.Errorf("writing files: %w", err)
		}
		if err := os.WriteFile(names[i], []byte(f.Text), 0o644); err != nil {
			return nil, fmt.Errorf("writing files: %w", err)
		}
	}
	return names, nil
}
