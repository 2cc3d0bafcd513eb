package charts

import (
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
)

// value is one of the chart's values that has a comment.
type value struct {
	path    string // such as image.tag
	initial string // its default, as YAML on one line
	meaning string
}

// documentedValues returns the values whose comment in values.yaml begins with "# --", in their order.
func documentedValues(t *testing.T) []value {
	t.Helper()
	var document yaml.Node
	must.Do(t, yaml.Unmarshal([]byte(text(t, "corollary/values.yaml")), &document))
	var values []value
	var walk func(node *yaml.Node, path string)
	walk = func(node *yaml.Node, path string) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, content := node.Content[i], node.Content[i+1]
			name := strings.TrimPrefix(path+"."+key.Value, ".")
			_, comment, documented := strings.Cut(key.HeadComment, "# -- ")
			switch {
			case documented:
				meaning := strings.Join(strings.Fields(strings.ReplaceAll(comment, "\n#", "\n")), " ")
				values = append(values, value{name, oneLine(t, content), meaning})
			case content.Kind == yaml.MappingNode && len(content.Content) > 0:
				walk(content, name)
			default:
				t.Errorf("values.yaml has no comment that begins with # -- for %s", name)
			}
		}
	}
	walk(document.Content[0], "")
	return values
}

// oneLine returns a value as YAML on one line.
func oneLine(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var flat func(n yaml.Node) *yaml.Node
	flat = func(n yaml.Node) *yaml.Node {
		n.Style &^= yaml.LiteralStyle | yaml.FoldedStyle
		if n.Kind != yaml.ScalarNode {
			n.Style = yaml.FlowStyle
		}
		n.HeadComment, n.LineComment, n.FootComment = "", "", ""
		children := n.Content
		n.Content = nil
		for _, child := range children {
			n.Content = append(n.Content, flat(*child))
		}
		return &n
	}
	text := must.Get(yaml.Marshal(flat(*node))).In(t)
	return strings.Join(strings.Fields(string(text)), " ")
}

const (
	tableBegins = "<!-- The table is written by the tests from values.yaml. -->\n"
	tableEnds   = "<!-- End of the table. -->\n"
)

// TestReadmeListsTheValues holds the table in the chart's README to values.yaml.
func TestReadmeListsTheValues(t *testing.T) {
	const path = "corollary/README.md"
	before, rest, begins := strings.Cut(text(t, path), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", path, tableBegins, tableEnds)
	}
	var table strings.Builder
	table.WriteString("\n| value | default | meaning |\n|---|---|---|\n")
	for _, v := range documentedValues(t) {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, v.initial, strings.ReplaceAll(v.meaning, "|", `\|`))
	}
	table.WriteString("\n")
	golden.File(t, path, []byte(before+tableBegins+table.String()+tableEnds+after))
}
