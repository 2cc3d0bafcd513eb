package scaffold

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// commonName returns the text that is replaced by the custom resource's name in manifests: what the names of all begin
// with, or where their selectors name the beginning of that, this. Manifests whose names begin with nothing in common
// are known by the first one's.
func commonName(manifests []*source) string {
	words := strings.Split(manifests[0].name, "-")
	for _, s := range manifests[1:] {
		others := strings.Split(s.name, "-")
		n := 0
		for n < min(len(words), len(others)) && words[n] == others[n] {
			n++
		}
		words = words[:n]
	}
	name := strings.Join(words, "-")
	if name == "" {
		return manifests[0].name
	}
	for _, s := range manifests {
		for _, entry := range selectorOf(s) {
			if strings.HasPrefix(name, entry.value.Value+"-") {
				name = entry.value.Value
			}
		}
	}
	return name
}

// pair is a key and value of a map.
type pair struct{ key, value *yaml.Node }

func pairs(n *yaml.Node) []pair {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var list []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, pair{n.Content[i], n.Content[i+1]})
	}
	return list
}

// selectorOf returns the labels by which a workload or Service selects its pods.
func selectorOf(s *source) []pair {
	selector := mapEntry(mapEntry(s.root, "spec"), "selector")
	if labels := mapEntry(selector, "matchLabels"); labels != nil {
		selector = labels
	}
	return slices.DeleteFunc(pairs(selector), func(p pair) bool { return p.value.Kind != yaml.ScalarNode })
}

// naming puts a mark for the custom resource's name wherever manifests contain it: in their own names, in labels and
// selectors, and where one of them refers to another. Elsewhere a text is left as it is: a container's name or an image
// may well be the same for all.
type naming struct {
	base, mark string
	names      map[string]string // what becomes of the manifests' names
}

func bindNames(manifests []*source, base, mark string) {
	n := &naming{base: base, mark: mark, names: map[string]string{}}
	for _, s := range manifests {
		if text, ok := n.replace(s.name); ok {
			n.names[s.name] = text
		}
	}
	for _, s := range manifests {
		metadata := mapEntry(s.root, "metadata")
		n.bind(s, mapEntry(metadata, "name"))
		if in := mapEntry(metadata, "namespace"); in != nil && slices.ContainsFunc(manifests, func(other *source) bool {
			return other.kind.Group == "" && other.kind.Kind == "Namespace" && other.name == in.Value
		}) {
			n.refer(s, in)
			s.anyNamespace = s.bound[in]
		}
		n.walk(s, s.root, "", false)
	}
}

// replace puts the mark for the base where it is a whole word or more.
func (n *naming) replace(text string) (string, bool) {
	var out strings.Builder
	rest, found := text, false
	for {
		i := strings.Index(rest, n.base)
		if i < 0 {
			break
		}
		end := i + len(n.base)
		before := i == 0 && out.Len() == 0 || i > 0 && !isWord(rest[i-1])
		if before && (end == len(rest) || !isWord(rest[end])) {
			out.WriteString(rest[:i] + n.mark)
			found = true
		} else {
			out.WriteString(rest[:end])
		}
		rest = rest[end:]
	}
	return out.String() + rest, found
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// bind replaces the base in a text.
func (n *naming) bind(s *source, at *yaml.Node) {
	if at == nil || at.Kind != yaml.ScalarNode || s.bound[at] {
		return
	}
	if text, ok := n.replace(at.Value); ok {
		at.Value, s.bound[at] = text, true
	}
}

// refer replaces a text that is another manifest's name.
func (n *naming) refer(s *source, at *yaml.Node) {
	text, ok := n.names[at.Value]
	if ok && at.Kind == yaml.ScalarNode && !s.bound[at] {
		at.Value, s.bound[at] = text, true
	}
}

// walk goes through the value of key; inList reports whether the value is an item of the list there.
func (n *naming) walk(s *source, at *yaml.Node, key string, inList bool) {
	if at.Kind == yaml.SequenceNode {
		for _, item := range at.Content {
			if key == "values" && item.Kind == yaml.ScalarNode {
				n.bind(s, item) // of a matchExpression
			}
			n.walk(s, item, key, true)
		}
		return
	}
	for _, p := range pairs(at) {
		switch name := p.key.Value; {
		case slices.Contains([]string{"labels", "matchLabels", "selector"}, key) && !inList:
			n.bind(s, p.value)
		case strings.HasSuffix(name, "Name"), name == "name" && refers(at, key, inList):
			n.refer(s, p.value)
		}
		n.walk(s, p.value, p.key.Value, false)
	}
}

// refers reports whether the name in a map is that of another object rather than of an item in a list.
func refers(m *yaml.Node, key string, inList bool) bool {
	return !inList || mapEntry(m, "kind") != nil || strings.HasSuffix(strings.ToLower(key), "secrets")
}

// advise warns of downstreams that several custom resources would fight for.
func advise(manifests []*source, kind string) []string {
	var notes []string
	for _, s := range manifests {
		metadata := mapEntry(s.root, "metadata")
		apart := s.bound[mapEntry(metadata, "namespace")] // each custom resource has a namespace of its own
		if !apart && !s.bound[mapEntry(metadata, "name")] {
			notes = append(notes,
				fmt.Sprintf("downstream %s is called %s for every %s, and of two the second would be in conflict: write {{ "+
					".metadata.name }} into "+
					"its name",
					s.downstream, s.name, kind))
		}
		selector := selectorOf(s)
		if !apart && len(selector) > 0 && !slices.ContainsFunc(selector, func(p pair) bool { return s.bound[p.value] }) {
			notes = append(notes,
				fmt.Sprintf("downstream %s selects %s: %s for every %s: write {{ .metadata.name }} there and in the labels that "+
					"it selects, or name "+
					"the text with --name",
					s.downstream, selector[0].key.Value, selector[0].value.Value, kind))
		}
		if s.kind.Group == "" && s.kind.Kind == "Secret" && s.holdsData() {
			notes = append(notes,
				fmt.Sprintf("downstream %s is a Secret, and its data is now in the config: protect the file like a Secret, or "+
					"make holes of the data",
					s.downstream))
		}
		if len(s.dropped) > 0 {
			notes = append(notes, fmt.Sprintf("%s: left out, since it is set by others: %s", s.where,
				strings.Join(s.dropped, ", ")))
		}
	}
	return notes
}

// holdsData reports whether a Secret's data is in the template, and does not come from the custom resource.
func (s *source) holdsData() bool {
	return slices.ContainsFunc([]string{"data", "stringData"}, func(field string) bool {
		return slices.ContainsFunc(pairs(mapEntry(s.root, field)), func(p pair) bool { return !s.bound[p.value] })
	})
}
