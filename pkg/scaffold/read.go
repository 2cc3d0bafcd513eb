package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/manifest"
)

// source is an object on its way to become a downstream: as its author wrote it, and as kubectl reads it. The two are
// changed together.
type source struct {
	where string // file and document
	// downstream is the name that it gets in the config.
	downstream string
	kind       schema.GroupVersionKind
	namespaced bool
	// name and namespace are the manifest's own.
	name, namespace string

	root  *yaml.Node
	value map[string]any
	// bound are the nodes that hold a mark in place of the author's text.
	bound map[*yaml.Node]bool
	// anyNamespace: its namespace follows from the custom resource.
	anyNamespace bool
	// dropped are fields that were left out, since an API server had set them.
	dropped []string
	// generated are the paths of values that are random.
	generated []string
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

// readBoth reads a document as kubectl does and as its author wrote it. What nobody would write by hand (JSON), or what
// cannot be cut into pieces (anchors), is formatted again.
func readBoth(d manifest.Document) (map[string]any, *yaml.Node, error) {
	object, err := d.Value()
	if object == nil || err != nil {
		return nil, nil, err
	}
	text := d.Text
	root, err := nodeOf(text)
	if err != nil || json.Valid(text) || !isPlainTree(root) {
		if text, err = sigsyaml.Marshal(object); err == nil {
			root, err = nodeOf(text)
		}
	}
	return object, root, err
}

// nodeOf parses one document; comments above and below it stay.
func nodeOf(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
		return nil, err
	}
	root := document.Content[0]
	if len(root.Content) > 0 && root.Content[0].HeadComment == "" {
		root.Content[0].HeadComment = document.HeadComment
	}
	return root, nil
}

// isPlainTree reports whether a tree is a map in block style without aliases and merges.
func isPlainTree(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 && !anyNode(n, func(n *yaml.Node) bool {
		return n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge"
	})
}

func anyNode(n *yaml.Node, is func(*yaml.Node) bool) bool {
	return is(n) || slices.ContainsFunc(n.Content, func(child *yaml.Node) bool { return anyNode(child, is) })
}

// mapEntry returns the value of a key, nil where the node is not a map or lacks it.
func mapEntry(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// dropEntry takes a key out of a map.
func dropEntry(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// oneLine keeps the text of an error on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
