package generate

import (
	"bytes"
	"fmt"

	yaml "go.yaml.in/yaml/v3"

	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// manifests are documents for kubectl apply -f -, with a comment above the first of them.
func manifests(head string, list []generate.Manifest) ([]byte, error) {
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
