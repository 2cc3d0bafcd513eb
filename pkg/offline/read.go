package offline

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/manifest"
)

// Upstream is a custom resource and where it was read.
type Upstream struct {
	Object *unstructured.Unstructured
	Where  string
}

// String is how errors name it: file, kind and name.
func (u Upstream) String() string {
	name := u.Object.GetName()
	if name == "" {
		return u.Where + ": " + u.Object.GetKind() // a row, before it is known what identifies it
	}
	if ns := u.Object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Sprintf("%s: %s %s", u.Where, u.Object.GetKind(), name)
}

// Read reads the objects in files, in the files of directories (not below them, as kubectl does it) and in
// standard input ("-"), in their order. Files may hold several documents, and Lists.
func Read(paths []string, stdin io.Reader) (list []Upstream, errs []error) {
	for _, path := range paths {
		names := []string{path}
		if path != "-" {
			var err error
			if names, err = manifest.Files(path, false); err != nil {
				errs = append(errs, fmt.Errorf("reading custom resources: %w", err))
			} else if len(names) == 0 {
				errs = append(errs, fmt.Errorf("reading custom resources: directory %s contains no *.yaml, *.yml or *.json", path))
			}
		}
		for _, name := range names {
			documents, err := manifest.Read(name, stdin)
			if err != nil {
				errs = append(errs, fmt.Errorf("reading custom resources: %w", err))
			}
			for _, d := range documents {
				found, err := upstreamsIn(d)
				if list = append(list, found...); err != nil {
					errs = append(errs, fmt.Errorf("%s: reading the document that begins here: %w", d, err))
				}
			}
		}
	}
	return list, errs
}

// upstreamsIn reads one document. An empty one gives nothing.
func upstreamsIn(d manifest.Document) ([]Upstream, error) {
	value, err := d.Value()
	if value == nil || err != nil {
		return nil, err
	}
	items, err := manifest.Items(value)
	if err != nil {
		return nil, err
	}
	var list []Upstream
	for _, item := range items {
		u := &unstructured.Unstructured{Object: item}
		if field := missingIn(u); field != "" {
			return nil, fmt.Errorf("%s is missing", field)
		}
		list = append(list, Upstream{Object: u, Where: d.File})
	}
	return list, nil
}

// missingIn names the first field that every object needs and this one lacks.
func missingIn(u *unstructured.Unstructured) string {
	switch {
	case u.GetAPIVersion() == "":
		return "apiVersion"
	case u.GetKind() == "":
		return "kind"
	case u.GetName() == "" && u.GetKind() != query.RowKind: // whose name is its key
		return "metadata.name"
	}
	return ""
}
