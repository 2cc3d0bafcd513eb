package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
)

// caseKind is what a case file says of itself, beside the API version of configs.
const caseKind = "Case"

// testCase is one case of the test command, as its file says it. A file is one YAML document: what goes in, and under
// expect what should come out.
type testCase struct {
	path string // of the file
	name string // as it is told, and as --run selects it
	text []byte
	root *yaml.Node // the mapping of the file, for lines

	config   string   // file or directory, relative to the case; empty: found by others
	crds     []string // likewise
	operator string   // which of several operators that watch the kind
	upstream map[string]any
	inputs   []map[string]any
	live     []liveEntry
	// namespaceLabels are those of the upstream's namespace; nil where the case does not say them.
	namespaceLabels map[string]string
	now             string
	expect          map[string]any
}

// liveEntry is one object that stands when the upstream is looked at.
type liveEntry struct {
	line int
	// object is any object, as an API server would return it.
	object map[string]any
	// applied names a downstream: the object is what our last apply of it left.
	applied string
	// upstream is what the upstream said then, where that differs: a merge patch.
	upstream map[string]any
	// changes is what others have written since: a merge patch, status included. by is their field manager.
	changes map[string]any
	by      string
	// immutable: the API server refuses to change what was applied.
	immutable bool
}

// The keys of a case file, by where they stand.
var (
	caseKeys       = []string{"apiVersion", "kind", "config", "crds", "operator", "upstream", "inputs", "live", "namespaceLabels", "now", "expect"}
	liveKeys       = []string{"object", "applied", "upstream", "changes", "by", "immutable"}
	expectKeys     = []string{"errors", "invalid", "downstreams", "before", "leftovers", "finalizer", "conditions", "status"}
	downstreamKeys = []string{"state", "message", "document", "fields"}
	leftoverKeys   = []string{"downstream", "object", "state", "action", "message"}
	conditionKeys  = []string{"type", "status", "reason", "message", "observedGeneration"}
)

// newCase is the text of a case that expects nothing yet: --update fills it in. config and crds are paths relative to the
// file that it is written to, upstream is the custom resource as YAML, and reason says in a sentence what the case holds.
func newCase(reason, config string, crds []string, upstream []byte) []byte {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(reason) + "\n") {
		out.WriteString("# " + line)
	}
	fmt.Fprintf(&out, "%skind: %s\nconfig: %s\n", caseHeader, caseKind, quotedPath(config))
	crds = slices.Clone(crds)
	for i, path := range crds {
		crds[i] = quotedPath(path)
	}
	if len(crds) > 0 {
		fmt.Fprintf(&out, "crds: [%s]\n", strings.Join(crds, ", "))
	}
	out.WriteString("\nupstream:\n" + indented(string(upstream), "  ") + "\nexpect: {}\n")
	return []byte(out.String())
}

// plainPath matches the paths that YAML takes for text wherever they stand.
var plainPath = regexp.MustCompile(`^[A-Za-z./_][A-Za-z0-9./_-]*$`)

func quotedPath(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return strconv.Quote(path)
}

const caseHeader = "apiVersion: " + config.APIVersion + "\n"

// indented puts a prefix before each line of a text that is not empty.
func indented(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		if strings.TrimSpace(line) != "" {
			out.WriteString(prefix)
		}
		out.WriteString(line)
	}
	return out.String()
}

// readCase reads a case file. Every problem is told at once, each with file and line.
func readCase(path string) (*testCase, []error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, []error{fmt.Errorf("reading a case: %w", err)}
	}
	c := &testCase{path: path, text: text}
	return c, c.parse()
}

func (c *testCase) parse() []error {
	values, err := c.decode()
	if err != nil {
		return []error{fmt.Errorf("%s: %w", c.path, err)}
	}
	r := &caseReader{path: c.path}
	s := section{r, c.root, values, ""}
	if isCase, why := caseHead(values); !isCase {
		s.problem(1, "%s", why)
		return r.errors()
	}
	s.known(caseKeys)
	c.config, c.operator, c.now = s.text("config"), s.text("operator"), s.text("now")
	c.crds, c.upstream, c.expect = s.texts("crds"), s.object("upstream"), s.object("expect")
	c.inputs = s.objects("inputs")
	for _, entry := range s.sections("live") {
		c.live = append(c.live, entry.liveEntry())
	}
	if labels := s.object("namespaceLabels"); labels != nil {
		c.namespaceLabels = map[string]string{}
		for key := range labels {
			c.namespaceLabels[key] = s.section("namespaceLabels").text(key)
		}
	}
	s.section("expect").expectation()
	return r.errors()
}

// decode reads the text twice: once for values, as every other file with objects is read, and once for lines.
func (c *testCase) decode() (map[string]any, error) {
	var document yaml.Node
	asJSON, err := sigsyaml.YAMLToJSONStrict(c.text)
	if err == nil {
		err = yaml.Unmarshal(c.text, &document)
	}
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %s", oneLine(err.Error()))
	}
	var value any
	if err := utiljson.Unmarshal(asJSON, &value); err != nil {
		return nil, err
	}
	values, ok := value.(map[string]any)
	if !ok || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		_, why := caseHead(nil)
		return nil, errors.New(why)
	}
	c.root = document.Content[0]
	return values, nil
}

// caseHead tells whether a file says of itself that it is a case, and if not, what it should say.
func caseHead(values map[string]any) (bool, string) {
	if values["apiVersion"] == config.APIVersion && values["kind"] == caseKind {
		return true, ""
	}
	return false, fmt.Sprintf("it is no case: begin with apiVersion: %s and kind: %s", config.APIVersion, caseKind)
}

// dir is the folder that the paths in the case are relative to.
func (c *testCase) dir() string { return filepath.Dir(c.path) }

// caseReader gathers what is wrong with a case.
type caseReader struct {
	path     string
	problems []caseProblem
}

type caseProblem struct {
	line int
	text string
}

func (r *caseReader) problem(line int, format string, args ...any) {
	r.problems = append(r.problems, caseProblem{line, fmt.Sprintf(format, args...)})
}

// errors returns the problems in the order of their lines.
func (r *caseReader) errors() []error {
	slices.SortStableFunc(r.problems, func(a, b caseProblem) int { return a.line - b.line })
	var list []error
	for _, p := range r.problems {
		list = append(list, fmt.Errorf("%s:%d: %s", r.path, p.line, p.text))
	}
	return list
}

// section is one map of a case, and where it stands in the file.
type section struct {
	*caseReader
	node  *yaml.Node // nil where the map is not there
	value map[string]any
	at    string // the path to it, empty for the whole file
}

func (s section) path(key string) string { return strings.TrimPrefix(s.at+"."+key, ".") }

// child returns the key's and the value's node; nil where there is none.
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

// known refuses every key that is none of these.
func (s section) known(keys []string) {
	for _, key := range slices.Sorted(maps.Keys(s.value)) {
		if slices.Contains(keys, key) {
			continue
		}
		if name := closest(key, keys); name != "" {
			s.problem(s.line(key), "%s is no key of a case: did you mean %s?", s.path(key), name)
		} else {
			s.problem(s.line(key), "%s is no key of a case: there are %s", s.path(key), strings.Join(keys, ", "))
		}
	}
}

func (s section) wrong(key, wanted string) {
	s.problem(s.line(key), "%s is %s: write %s", s.path(key), describe(s.value[key]), wanted)
}

func describe(v any) string {
	switch v := v.(type) {
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
		s.wrong(key, "a text, in quotes where YAML takes it for something else")
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
	return section{s.caseReader, node, m, s.path(key)}
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
			s.wrong(key, "a list of texts")
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

// sections are the items of a list of maps.
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
		at := section{s.caseReader, nil, m, fmt.Sprintf("%s[%d]", s.path(key), i)}
		if node != nil && i < len(node.Content) {
			at.node = resolved(node.Content[i])
		}
		out = append(out, at)
	}
	return out
}

func (s section) liveEntry() liveEntry {
	s.known(liveKeys)
	e := liveEntry{line: s.node.Line, object: s.object("object"), applied: s.text("applied"), upstream: s.object("upstream"),
		changes: s.object("changes"), by: s.text("by"), immutable: s.truth("immutable")}
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
	s.known(expectKeys)
	s.texts("errors")
	s.texts("invalid")
	s.text("finalizer")
	s.object("status")
	downstreams := s.section("downstreams")
	for _, name := range slices.Sorted(maps.Keys(s.object("downstreams"))) {
		downstreams.object(name)
		downstreams.section(name).outcome()
	}
	s.object("before")
	s.section("before").outcome()
	for _, l := range s.sections("leftovers") {
		l.known(leftoverKeys)
	}
	for _, l := range s.sections("conditions") {
		l.known(conditionKeys)
		if l.text("type") == "" {
			l.problem(l.node.Line, "%s.type is missing: it says which condition is meant", l.at)
		}
	}
}

// outcome checks what is expected of one object that is made.
func (s section) outcome() {
	s.known(downstreamKeys)
	s.text("state")
	s.text("message")
	s.object("document")
	s.object("fields")
}
