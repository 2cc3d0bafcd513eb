package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/manifest"
)

// document is one YAML document, or one item of a List.
type document struct {
	position string // file:line of the first line of the document
	json     []byte
}

// crd returns the CustomResourceDefinition in the document, or nil if it is something else.
func (d document) crd() (*apiextensionsv1.CustomResourceDefinition, error) {
	var head metav1.TypeMeta
	readable := json.Unmarshal(d.json, &head) == nil
	if !readable || head.Kind != "CustomResourceDefinition" {
		return nil, nil // other documents are ignored, whatever they contain
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

// CRDs returns the CustomResourceDefinitions in files and directories, as Offline finds them. The error joins one for
// each invalid document.
func CRDs(dirsOrFiles ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	docs, errs := readDocuments(dirsOrFiles)
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, doc := range docs {
		crd, err := doc.crd()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doc.position, err))
		} else if crd != nil {
			list = append(list, crd)
		}
	}
	return list, errors.Join(errs...)
}

// Definitions returns the CustomResourceDefinitions in files and directories, as Offline finds them, unchanged. The
// error joins one for each invalid document.
func Definitions(dirsOrFiles ...string) ([]*unstructured.Unstructured, error) {
	docs, errs := readDocuments(dirsOrFiles)
	var list []*unstructured.Unstructured
	for _, doc := range docs {
		crd, err := doc.crd()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", doc.position, err))
		}
		if crd == nil {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(doc.json); err != nil {
			errs = append(errs, fmt.Errorf("%s: reading a CustomResourceDefinition: %w", doc.position, err))
			continue
		}
		list = append(list, object)
	}
	return list, errors.Join(errs...)
}

// readDocuments reads every document below the paths, in the order of paths and file names. It reads each file once.
func readDocuments(paths []string) ([]document, []error) {
	var docs []document
	var errs []error
	seen := map[string]bool{}
	for _, path := range paths {
		names, err := manifest.Files(path, true)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading CustomResourceDefinitions: %w", err))
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

// readFile splits a file into its documents.
func readFile(name string) ([]document, []error) {
	parts, err := manifest.Read(name, nil)
	if err != nil {
		return nil, []error{fmt.Errorf("reading CustomResourceDefinitions: %w", err)}
	}
	var docs []document
	var errs []error
	for _, part := range parts {
		asJSON, err := yaml.YAMLToJSON(part.Text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: reading the document that begins here: %w", part, manifest.OneLine(err)))
			continue
		}
		docs = append(docs, items(document{position: part.String(), json: asJSON})...)
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
		docs = append(docs, document{position: doc.position, json: item})
	}
	return docs
}
