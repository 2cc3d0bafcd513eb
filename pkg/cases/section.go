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

// errors returns the problems, sorted by line.
func (r *reader) errors() []error {
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

func (s section) path(key string) string { return strings.TrimPrefix(s.at+"."+key, ".") }

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

func (s section) line(key string) int {
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
			s.problem(s.line(key), "%s: unknown key: did you mean %s?", s.path(key), name)
		} else {
			s.problem(s.line(key), "%s: unknown key: valid keys are %s", s.path(key), strings.Join(keys, ", "))
		}
	}
}

func (s section) wrong(key, wanted string) {
	s.problem(s.line(key), "%s is %s: write %s", s.path(key), describe(s.value[key]), wanted)
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
	is, ok := v.(bool)
	if there && !ok {
		s.wrong(key, "true or false")
	}
	return is
}

func (s section) object(key string) map[string]any {
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
	return section{s.reader, node, m, s.path(key)}
}

func (s section) list(key string) []any {
	v, there := s.value[key]
	list, ok := v.([]any)
	if there && v != nil && !ok {
		s.wrong(key, "a list, each item behind a dash")
	}
	return list
}

func (s section) texts(key string) []string {
	var out []string
	for _, item := range s.list(key) {
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
	for i, item := range s.list(key) {
		m, ok := item.(map[string]any)
		if !ok {
			s.wrong(key, "a list of maps")
			return nil
		}
		at := section{s.reader, nil, m, fmt.Sprintf("%s[%d]", s.path(key), i)}
		if node != nil && i < len(node.Content) {
			at.node = resolved(node.Content[i])
		}
		out = append(out, at)
	}
	return out
}

func (s section) liveEntry() liveEntry {
	s.checkKeys(liveKeys)
	e := liveEntry{
		line:       s.node.Line,
		object:     s.object("object"),
		applied:    s.text("applied"),
		objectName: s.text("objectName"),
		upstream:   s.object("upstream"),
		changes:    s.object("changes"),
		by:         s.text("by"),
		immutable:  s.truth("immutable"),
	}
	switch {
	case (e.object == nil) == (e.applied == ""):
		s.problem(e.line, "%s: write either object, as the API server would return it, or applied, the downstream whose last apply left it", s.at)
	case e.object != nil && (e.upstream != nil || e.changes != nil || e.by != ""):
		s.problem(e.line, "%s: upstream, changes and by go with applied: write the object as it is", s.at)
	}
	return e
}

// expectation checks the keys below expect.
func (s section) expectation() {
	s.checkKeys(expectKeys)
	s.texts("errors")
	s.texts("invalid")
	s.text("finalizer")
	s.object("status")
	s.object("writeBack")
	s.section("writeBack").checkKeys(writeBackKeys)
	downstreams := s.section("downstreams")
	for _, name := range slices.Sorted(maps.Keys(s.object("downstreams"))) {
		downstreams.object(name)
		downstreams.section(name).outcome()
	}
	s.object("before")
	s.section("before").outcome()
	for _, l := range s.sections("leftovers") {
		l.checkKeys(leftoverKeys)
	}
	for _, l := range s.sections("conditions") {
		l.checkKeys(conditionKeys)
		if l.text("type") == "" {
			l.problem(l.node.Line, "%s.type is missing: it says which condition is meant", l.at)
		}
	}
}

// outcome checks the expectation for one object.
func (s section) outcome() {
	s.checkKeys(downstreamKeys)
	objects := s.section("objects")
	for _, name := range slices.Sorted(maps.Keys(s.object("objects"))) {
		objects.object(name)
		objects.section(name).outcome()
	}
	s.text("state")
	s.text("message")
	s.object("document")
	s.object("fields")
}
