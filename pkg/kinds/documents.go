package kinds

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// document is one YAML document, or one item of a List.
type document struct {
	file string
	line int // where the document begins, from 1
	json []byte
}

func (d document) position() string { return fmt.Sprintf("%s:%d", d.file, d.line) }

// crd returns the CustomResourceDefinition that the document is, or nil where it is something else.
func (d document) crd() (*apiextensionsv1.CustomResourceDefinition, error) {
	var head metav1.TypeMeta
	readable := json.Unmarshal(d.json, &head) == nil
	if !readable || head.Kind != "CustomResourceDefinition" {
		return nil, nil // other documents are none of ours, whatever they hold
	}
	if head.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q is not served any more: convert the definition to %s",
			head.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(d.json, crd); err != nil {
		return nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
	}
	return crd, nil
}

// Definitions returns the CustomResourceDefinitions in files and directories, as Offline finds them, word for word. The
// error joins one for each document that cannot be read.
func Definitions(dirsOrFiles ...string) ([]*unstructured.Unstructured, error) {
	docs, errs := readDocuments(dirsOrFiles)
	var list []*unstructured.Unstructured
	for _, doc := range docs {
		crd, err := doc.crd()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doc.position(), err))
		}
		if crd == nil {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(doc.json); err != nil {
			errs = append(errs, fmt.Errorf("%s: reading a CustomResourceDefinition: %w", doc.position(), err))
			continue
		}
		list = append(list, object)
	}
	return list, errors.Join(errs...)
}

// readDocuments reads every document below the paths, in the order of paths and of names in a directory. A file that
// is reached twice is read once.
func readDocuments(paths []string) ([]document, []error) {
	var docs []document
	var errs []error
	seen := map[string]bool{}
	for _, path := range paths {
		names, err := listFiles(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, name := range names {
			if seen[filepath.Clean(name)] {
				continue
			}
			seen[filepath.Clean(name)] = true
			found, err := readFile(name)
			docs = append(docs, found...)
			errs = append(errs, err...)
		}
	}
	return docs, errs
}

// listFiles returns the path itself when it is a file, else the YAML and JSON files below it. Names that begin with a
// dot are left out: below a mounted ConfigMap they are the directories that the real names link into.
func listFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
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
		case entry.IsDir() && hidden:
			return filepath.SkipDir
		case entry.IsDir() || hidden:
			return nil
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	return names, nil
}

// readFile splits a file into its documents.
func readFile(name string) ([]document, []error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, []error{fmt.Errorf("reading CustomResourceDefinitions: %w", err)}
	}
	var docs []document
	var errs []error
	for _, part := range split(data) {
		asJSON, err := yaml.YAMLToJSON(part.text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: reading the document that begins here: %w", name, part.line, oneLine(err)))
			continue
		}
		docs = append(docs, items(document{file: name, line: part.line, json: asJSON})...)
	}
	return docs, errs
}

// items returns the members of a List, which is what "kubectl get … -o yaml" writes, or the document itself.
func items(doc document) []document {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(doc.json, &list) != nil || !strings.HasSuffix(list.Kind, "List") {
		return []document{doc}
	}
	var docs []document
	for _, item := range list.Items {
		docs = append(docs, document{file: doc.file, line: doc.line, json: item})
	}
	return docs
}

type part struct {
	text []byte
	line int
}

// split cuts a YAML stream at its "---" lines. A line is a separator only at the left margin, where no block scalar
// can have it.
func split(data []byte) []part {
	var parts []part
	current := part{line: 1}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		rest, separator := bytes.CutPrefix(line, []byte("---"))
		if !separator || len(bytes.TrimLeft(rest, " \t\r\n")) == len(rest) && len(rest) > 0 {
			current.text = append(current.text, line...)
			continue
		}
		parts = append(parts, current)
		current = part{line: i + 1, text: append([]byte("   "), rest...)}
	}
	return append(parts, current)
}

// oneLine keeps an error on one line.
func oneLine(err error) error {
	if text := err.Error(); strings.Contains(text, "\n") {
		return errors.New(strings.Join(strings.Fields(text), " "))
	}
	return err
}
