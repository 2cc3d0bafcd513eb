package generate

import (
	"bytes"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// Text is manifests as documents for kubectl apply -f -, with a comment above the first of them.
func Text(head string, list []Manifest) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n", head)
	for _, m := range list {
		n, err := yamltext.Node(m.Object)
		if err != nil {
			return nil, err
		}
		commentRules(n, m.Rules)
		text, err := yamltext.Write(n)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		for _, line := range m.Comment {
			fmt.Fprintf(&out, "# %s\n", line)
		}
		out.WriteString(text)
	}
	return out.Bytes(), nil
}

// commentRules puts a comment above each of an object's rules, unless the one above it says the same.
func commentRules(object *yaml.Node, comments []string) {
	for i := 0; i+1 < len(object.Content); i += 2 {
		if object.Content[i].Value != "rules" {
			continue
		}
		for j, rule := range object.Content[i+1].Content {
			if j < len(comments) && (j == 0 || comments[j] != comments[j-1]) {
				rule.HeadComment = comments[j]
			}
		}
	}
}

// VersionHead is the comment above what is pasted into a kind's CustomResourceDefinition: whose it is, and where it goes.
func VersionHead(kind schema.GroupVersionKind, operators []string) string {
	return fmt.Sprintf("# %s of %s, for operator %s:\n# to be merged into the entry of spec.versions whose name is %s.\n",
		kind.Kind, kind.GroupVersion(), strings.Join(operators, ", "), kind.Version)
}

// Write writes what is to be pasted for one kind.
func (v *Validations) Write(out *bytes.Buffer) error {
	out.WriteString(VersionHead(v.Kind, v.Operators))
	for _, note := range v.Notes {
		fmt.Fprintf(out, "# note: %s\n", note)
	}
	lines, err := v.Lines()
	if err != nil {
		return err
	}
	text, err := yamltext.Of(lines)
	out.WriteString(text)
	return err
}
