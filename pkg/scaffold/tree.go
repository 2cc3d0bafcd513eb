package scaffold

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/manifest"
)

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

func anyNode(n *yaml.Node, meets func(*yaml.Node) bool) bool {
	return meets(n) || slices.ContainsFunc(n.Content, func(child *yaml.Node) bool { return anyNode(child, meets) })
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

func textAt(n *yaml.Node, key string) string {
	if n = mapEntry(n, key); n == nil {
		return ""
	}
	return n.Value
}
