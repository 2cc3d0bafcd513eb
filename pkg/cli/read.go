package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// readUpstreams reads the objects in files, in the files of directories (not below them, as kubectl does it) and in
// standard input ("-"), in their order. Files may hold several documents, and Lists.
func readUpstreams(paths []string, stdin io.Reader) (list []upstream, errs []error) {
	for _, path := range paths {
		names, err := filesOf(path)
		if err != nil {
			errs = append(errs, err)
		}
		for _, name := range names {
			found, err := readFile(name, stdin)
			list = append(list, found...)
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return list, errs
}

func readsStdin(paths []string) bool { return slices.Contains(paths, "-") }

func filesOf(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading custom resources: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading custom resources: %w", err)
	}
	var names []string
	for _, e := range entries {
		known := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name()))
		if known && !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("reading custom resources: directory %s holds no *.yaml, *.yml or *.json", path)
	}
	return names, nil
}

func readFile(name string, stdin io.Reader) ([]upstream, error) {
	in, where := stdin, "<stdin>"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("reading custom resources: %w", err)
		}
		defer func() { _ = f.Close() }() // read only: nothing is lost when closing fails
		in, where = f, name
	}
	var list []upstream
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		var found []upstream
		if err == nil {
			found, err = parse(text, where)
		}
		if err != nil {
			return list, fmt.Errorf("%s: reading document %d: %w", where, n, err)
		}
		list = append(list, found...)
	}
}

// parse reads one document; whole numbers become int64, as everywhere. An empty one gives nothing.
func parse(text []byte, where string) ([]upstream, error) {
	if !json.Valid(text) {
		var err error
		if text, err = yaml.YAMLToJSONStrict(text); err != nil {
			return nil, errors.New(oneLine(err.Error()))
		}
	}
	if bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		return nil, nil
	}
	var value any
	if err := utiljson.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is no object: begin with apiVersion and kind")
	}
	return objects(object, where)
}

// objects returns the items of a List, or the object itself.
func objects(object map[string]any, where string) ([]upstream, error) {
	u := &unstructured.Unstructured{Object: object}
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(u.GetKind(), "List") {
		var list []upstream
		for i, item := range items {
			m, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("items[%d] is no object", i)
			}
			found, err := objects(m, where)
			if err != nil {
				return nil, fmt.Errorf("items[%d]: %w", i, err)
			}
			list = append(list, found...)
		}
		return list, nil
	}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()},
	} {
		if field.value == "" {
			return nil, fmt.Errorf("%s is missing", field.name)
		}
	}
	return []upstream{{object: u, where: where}}, nil
}
