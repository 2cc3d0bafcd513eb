// Package manifest reads files of Kubernetes objects: YAML or JSON documents, and Lists.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Document is one document of a file.
type Document struct {
	// File is the path as given, or <stdin>. Line is the first line of the document, counted from 1.
	File string
	Line int
	Text []byte
}

// String returns file:line.
func (d Document) String() string { return fmt.Sprintf("%s:%d", d.File, d.Line) }

// Files lists the YAML and JSON files at a path, sorted by name: the path itself if it is a file, otherwise the files
// in that directory and, if below is true, in its subdirectories. It skips names that begin with a dot: in a mounted
// ConfigMap they are the targets of links.
func Files(path string, below bool) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var names []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != path && (hidden || !below):
			return filepath.SkipDir
		case !entry.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Read reads the documents of a file, or of stdin if the name is "-".
func Read(name string, stdin io.Reader) ([]Document, error) {
	if name == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return Split(data, "<stdin>"), nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Split(data, name), nil
}

// Split cuts a YAML stream at its "---" lines. Only a line without indentation is a separator, because block scalars
// are indented. A document begins at its first line that is neither empty nor a comment.
func Split(data []byte, file string) []Document {
	var list []Document
	current := Document{File: file, Line: 1}
	begun := false
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		rest, separator := bytes.CutPrefix(line, []byte("---"))
		if separator && (len(rest) == 0 || len(bytes.TrimLeft(rest, " \t\r\n")) < len(rest)) {
			list = append(list, current)
			line, begun = append([]byte("   "), rest...), false
			current = Document{File: file, Line: i + 1}
		}
		if text := bytes.TrimSpace(line); !begun && len(text) > 0 && text[0] != '#' {
			current.Line, begun = i+1, true
		}
		current.Text = append(current.Text, line...)
	}
	return append(list, current)
}

// Value parses the document as kubectl does, with whole numbers as int64. It returns an error for a duplicate key, and
// nil for an empty document.
func (d Document) Value() (map[string]any, error) {
	text := d.Text
	if !json.Valid(text) {
		var err error
		if text, err = yaml.YAMLToJSONStrict(text); err != nil {
			return nil, OneLine(err)
		}
	}
	var value any
	if err := utiljson.Unmarshal(text, &value); err != nil {
		return nil, OneLine(err)
	}
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, errors.New("it is not an object: begin with apiVersion and kind")
	}
	return object, nil
}

// Items returns the items of a List, including those of nested Lists, or the object itself.
func Items(object map[string]any) ([]map[string]any, error) {
	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		return []map[string]any{object}, nil
	}
	var list []map[string]any
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is not an object", i)
		}
		found, err := Items(m)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		list = append(list, found...)
	}
	return list, nil
}

// OneLine puts an error on one line; YAML errors have several.
func OneLine(err error) error {
	if text := err.Error(); strings.Contains(text, "\n") {
		return errors.New(strings.Join(strings.Fields(text), " "))
	}
	return err
}
