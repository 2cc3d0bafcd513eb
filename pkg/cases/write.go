package cases

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// treeWriter writes a result as YAML, with the keys of a case in their documented order.
type treeWriter struct {
	downstreams []string // the config's, in its order
	// words are the words that differences may show of documents with values of a Secret, by downstream.
	words map[string]redact.Words
}

// keyOrder returns the keys of the map at a path, in order; false if the map is the user's.
func (w treeWriter) keyOrder(path []string) ([]string, bool) {
	switch {
	case len(path) == 1 && path[0] == "expect":
		return expectKeys, true
	case len(path) == 2 && path[1] == "downstreams":
		return w.downstreams, true
	case (len(path) == 3 || len(path) == 5) && path[1] == "downstreams", len(path) == 2 && path[1] == "before":
		return downstreamKeys, true
	case len(path) == 2 && path[1] == "writeBack":
		return writeBackKeys, true
	}
	return nil, false
}

// itemOrder is order for the maps in the list at a path.
func itemOrder(path []string) []string {
	if len(path) != 2 {
		return nil
	}
	return map[string][]string{"conditions": conditionKeys, "leftovers": leftoverKeys}[path[1]]
}

// writeEntry writes the key at the end of a path, and its value.
func (w treeWriter) writeEntry(path []string, value any) (string, error) {
	key := path[len(path)-1]
	if m, ok := value.(map[string]any); ok && len(m) > 0 {
		if order, ours := w.keyOrder(path); ours {
			text, err := w.entries(path, m, order)
			return yamlKey(key) + "\n" + yamltext.Indent(text, "  "), err
		}
	}
	list, _ := value.([]any)
	order := itemOrder(path)
	if len(list) == 0 || order == nil {
		return encodePlain(key, value)
	}
	var out strings.Builder
	out.WriteString(yamlKey(key) + "\n")
	for _, item := range list {
		m, _ := item.(map[string]any)
		text, err := w.entries(append(path, ""), m, order)
		if err != nil {
			return "", err
		}
		out.WriteString("  - " + strings.TrimPrefix(yamltext.Indent(text, "    "), "    "))
	}
	return out.String(), nil
}

func (w treeWriter) entries(path []string, m map[string]any, order []string) (string, error) {
	var out strings.Builder
	for _, key := range keysInOrder(m, order) {
		text, err := w.writeEntry(append(slices.Clone(path), key), m[key])
		if err != nil {
			return "", fmt.Errorf("writing %s: %w", key, err)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// keysInOrder returns the keys of a map: those in order first, then the others.
func keysInOrder(m map[string]any, order []string) []string {
	rank := func(key string) int {
		if i := slices.Index(order, key); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

func yamlKey(key string) string {
	text, err := sigsyaml.Marshal(map[string]any{key: ""})
	if err != nil {
		return key + ":"
	}
	return strings.TrimSuffix(string(text), " \"\"\n")
}

// encodePlain writes a key and a value of the user as render does: with sorted keys, and as JSON what YAML cannot
// represent safely.
func encodePlain(key string, value any) (string, error) {
	entry := map[string]any{key: value}
	text, err := sigsyaml.Marshal(entry)
	if err != nil || yamltext.ReadsBack(text, entry) {
		return string(text), err
	}
	asJSON, err := json.Marshal(value)
	return yamlKey(key) + " " + string(asJSON) + "\n", err
}
