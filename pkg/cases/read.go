package cases

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/config"
)

// Kind is the kind of a case file; its apiVersion is that of configs.
const Kind = "Case"

// testCase is one case, as in its file: a file is one YAML document, with the objects before the reconcile, and under
// expect the result.
type testCase struct {
	path string // of the file
	text []byte
	root *yaml.Node // the mapping of the file, for lines

	config   string   // file or directory, relative to the case; empty: found by others
	crds     []string // files or directories, relative to the case
	operator string   // which of several operators that watch the kind
	upstream map[string]any
	row      map[string]any // in the place of upstream, for an operator with source
	inputs   []map[string]any
	live     []liveEntry
	// namespaceLabels are the labels of the upstream's namespace; nil if the case does not have them.
	namespaceLabels map[string]string
	now             string
	expect          map[string]any
}

// readFile reads a case file. It returns all problems, each with file and line.
func readFile(path string) (*testCase, []error) {
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
	r := &reader{path: c.path}
	s := section{r, c.root, values, ""}
	if isCase, why := head(values); !isCase {
		s.problem(1, "%s", why)
		return r.sorted()
	}
	s.checkKeys(fileKeys)
	c.config, c.operator, c.now = s.text("config"), s.text("operator"), s.text("now")
	c.crds, c.upstream, c.expect = s.texts("crds"), s.mapAt("upstream"), s.mapAt("expect")
	c.row, c.inputs = s.mapAt("row"), s.objects("inputs")
	if c.row != nil && c.upstream != nil {
		s.wrong("row", "the only one of row and upstream")
	}
	for _, entry := range s.sections("live") {
		c.live = append(c.live, entry.liveEntry())
	}
	if labels := s.mapAt("namespaceLabels"); labels != nil {
		c.namespaceLabels = map[string]string{}
		for key := range labels {
			c.namespaceLabels[key] = s.section("namespaceLabels").text(key)
		}
	}
	s.section("expect").expectation()
	return r.sorted()
}

// decode parses the text twice: for values, as any file with objects, and for lines.
func (c *testCase) decode() (map[string]any, error) {
	var document yaml.Node
	asJSON, err := sigsyaml.YAMLToJSONStrict(c.text)
	if err == nil {
		err = yaml.Unmarshal(c.text, &document)
	}
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	var value any
	if err := utiljson.Unmarshal(asJSON, &value); err != nil {
		return nil, err
	}
	values, ok := value.(map[string]any)
	if !ok || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		_, why := head(nil)
		return nil, errors.New(why)
	}
	c.root = document.Content[0]
	return values, nil
}

// head reports whether a file is a case by its apiVersion and kind, and otherwise what they should be.
func head(values map[string]any) (bool, string) {
	if values["apiVersion"] == config.APIVersion && values["kind"] == Kind {
		return true, ""
	}
	return false, fmt.Sprintf("it is not a case: begin with apiVersion: %s and kind: %s", config.APIVersion, Kind)
}

// dir returns the folder that paths in the case are relative to.
func (c *testCase) dir() string { return filepath.Dir(c.path) }

// errorAt returns an error about a key of the case, with its line.
func (c *testCase) errorAt(key, format string, args ...any) error {
	line := 1
	if k, _ := child(c.root, key); k != nil {
		line = k.Line
	}
	return fmt.Errorf("%s:%d: %s", c.path, line, fmt.Sprintf(format, args...))
}
