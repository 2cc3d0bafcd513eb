package scaffold

import (
	"fmt"
	"io"
	"strings"

	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/manifest"
)

// Manifests are the objects that follow from one custom resource, each with a name as downstream and in the namespace
// that it will be in.
type Manifests struct {
	upstream *Upstream
	list     []*source
	notes    []string
}

// Read reads the manifests of files, of which one may be "-", the text of stdin. source says which kinds are
// namespaced; one that it does not know is taken to be. Errors name the file and document.
func (u *Upstream) Read(paths []string, stdin io.Reader, source kinds.Source) (*Manifests, error) {
	list, err := readAll(paths, stdin)
	if err != nil {
		return nil, err
	}
	nameDownstreams(list, u.kind.Kind)
	m := &Manifests{upstream: u, list: list}
	for _, one := range list {
		if err := m.resolveNamespace(one, source); err != nil {
			return nil, err
		}
	}
	return m, m.distinct()
}

// resolveNamespace finds the namespace that a downstream goes to.
func (m *Manifests) resolveNamespace(one *source, source kinds.Source) error {
	upstream := m.upstream
	if one.kind.GroupKind() == upstream.kind.GroupKind() {
		return fmt.Errorf("%s: it is of kind %s itself: give manifests of its downstreams", one.where, one.kind.Kind)
	}
	one.namespaced = true
	if kind, err := source.Kind(one.kind); err == nil {
		one.namespaced = kind.Namespaced
	} else {
		m.note("%s is assumed to be namespaced: %v", one.kind.Kind, err)
	}
	switch {
	case !upstream.namespaced && one.namespaced && one.namespace == "":
		return fmt.Errorf("%s: it names no namespace, and %s is cluster-scoped: add metadata.namespace",
			one.where, upstream.kind.Kind)
	case !upstream.namespaced && one.namespaced:
		one.setNamespace()
	case one.namespaced && one.namespace != "" && one.namespace != "default":
		m.note("downstream %s goes to the namespace of its %s, not to %s", one.downstream, upstream.kind.Kind, one.namespace)
	}
	return nil
}

// distinct refuses manifests that would be one object.
func (m *Manifests) distinct() error {
	first := map[string]*source{}
	for _, one := range m.list {
		namespace := ""
		if one.namespaced && !m.upstream.namespaced {
			namespace = one.namespace
		}
		id := strings.Join([]string{one.kind.GroupKind().String(), namespace, one.name}, "/")
		if other, twice := first[id]; twice {
			return fmt.Errorf("%s: %s %s is in %s too, and of one %s follows one of them: rename it, or make the kind "+
				"cluster-scoped for objects "+
				"in several namespaces",
				one.where, one.kind.Kind, one.name, other.where, m.upstream.kind.Kind)
		}
		first[id] = one
	}
	return nil
}

func (m *Manifests) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// readAll reads every object of the files, those of Lists one by one.
func readAll(paths []string, stdin io.Reader) ([]*source, error) {
	var manifests []*source
	for _, path := range paths {
		found, err := readFile(path, stdin)
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("reading manifests: %s contains no object", path)
		}
		manifests = append(manifests, found...)
	}
	return manifests, nil
}

func readFile(path string, stdin io.Reader) ([]*source, error) {
	documents, err := manifest.Read(path, stdin)
	if err != nil {
		return nil, err
	}
	var manifests []*source
	for _, d := range documents {
		found, err := manifestsOf(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, manifest.OneLine(err))
		}
		manifests = append(manifests, found...)
	}
	return manifests, nil
}

// manifestsOf makes a manifest of a document, or one of each item of a List.
func manifestsOf(d manifest.Document) ([]*source, error) {
	value, root, err := readBoth(d)
	if err != nil || value == nil {
		return nil, err
	}
	kind, _ := value["kind"].(string)
	items, isList := value["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		s, err := newManifest(value, root, d.String())
		return []*source{s}, err
	}
	var manifests []*source
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] is not an object", i)
		}
		s, err := newManifest(object, mapEntry(root, "items").Content[i], d.String())
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		manifests = append(manifests, s)
	}
	return manifests, nil
}
