package cases

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// reader collects the problems of a case.
type reader struct {
	path     string
	problems []problem
}

type problem struct {
	line int
	text string
}

func (r *reader) problem(line int, format string, args ...any) {
	r.problems = append(r.problems, problem{line, fmt.Sprintf(format, args...)})
}

// sorted returns the problems, sorted by line.
func (r *reader) sorted() []error {
	slices.SortStableFunc(r.problems, func(a, b problem) int { return a.line - b.line })
	var list []error
	for _, p := range r.problems {
		list = append(list, fmt.Errorf("%s:%d: %s", r.path, p.line, p.text))
	}
	return list
}

// section is one map of a case, and its place in the file.
type section struct {
	*reader
	node  *yaml.Node // nil if the map is missing
	value map[string]any
	at    string // the path to it, empty for the whole file
}

func (s section) pathTo(key string) string { return strings.TrimPrefix(s.at+"."+key, ".") }

// child returns the node of a key and of its value; nil if there is none.
func child(node *yaml.Node, key string) (k, v *yaml.Node) {
	if node = resolved(node); node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

func resolved(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func (s section) lineOf(key string) int {
	if k, _ := child(s.node, key); k != nil {
		return k.Line
	}
	if s.node != nil {
		return s.node.Line
	}
	return 1
}

// checkKeys reports unknown keys as problems.
func (s section) checkKeys(keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s.value)) {
		if slices.Contains(keys, key) {
			continue
		}
		if name := spelling.Closest(key, keys); name != "" {
			s.problem(s.lineOf(key), "%s: unknown key: did you mean %s?", s.pathTo(key), name)
		} else {
			s.problem(s.lineOf(key), "%s: unknown key: valid keys are %s", s.pathTo(key), strings.Join(keys, ", "))
		}
	}
}

func (s section) wrong(key, wanted string) {
	s.problem(s.lineOf(key), "%s is %s: write %s", s.pathTo(key), describe(s.value[key]), wanted)
}

func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

func (s section) text(key string) string {
	v, there := s.value[key]
	text, ok := v.(string)
	if there && v != nil && !ok {
		s.wrong(key, "a string, in quotes if YAML reads it as something else")
	}
	return text
}

func (s section) truth(key string) bool {
	v, there := s.value[key]
	flag, ok := v.(bool)
	if there && !ok {
		s.wrong(key, "true or false")
	}
	return flag
}

func (s section) mapAt(key string) map[string]any {
	v, there := s.value[key]
	m, ok := v.(map[string]any)
	if there && v != nil && !ok {
		s.wrong(key, "a map")
	}
	return m
}

func (s section) section(key string) section {
	_, node := child(s.node, key)
	m, _ := s.value[key].(map[string]any)
	return section{s.reader, node, m, s.pathTo(key)}
}

func (s section) listAt(key string) []any {
	v, there := s.value[key]
	list, ok := v.([]any)
	if there && v != nil && !ok {
		s.wrong(key, "a list, each item behind a dash")
	}
	return list
}

func (s section) texts(key string) []string {
	var out []string
	for _, item := range s.listAt(key) {
		text, ok := item.(string)
		if !ok {
			s.wrong(key, "a list of strings")
		}
		out = append(out, text)
	}
	return out
}

func (s section) objects(key string) []map[string]any {
	var out []map[string]any
	for _, item := range s.sections(key) {
		out = append(out, item.value)
	}
	return out
}

// sections returns the items of a list of maps.
func (s section) sections(key string) []section {
	_, node := child(s.node, key)
	node = resolved(node)
	var out []section
	for i, item := range s.listAt(key) {
		m, ok := item.(map[string]any)
		if !ok {
			s.wrong(key, "a list of maps")
			return nil
		}
		at := section{s.reader, nil, m, fmt.Sprintf("%s[%d]", s.pathTo(key), i)}
		if node != nil && i < len(node.Content) {
			at.node = resolved(node.Content[i])
		}
		out = append(out, at)
	}
	return out
}

// validNames lists the valid names for a message.
func validNames(names []string) string {
	if len(names) == 1 {
		return "the only one is " + names[0]
	}
	return "valid names are " + strings.Join(names, ", ")
}
