package house

import (
	"go/ast"
	"regexp"
	"testing"
)

// replacedWords matches words that Kubernetes spells the American way, and words that plainer ones have replaced.
var replacedWords = regexp.MustCompile(`(?i)\b(\w*colour\w*|\w*behaviour\w*|licence|\w+alised|recognised?|cancelled|labelled|grey|` +
	`analyse|for ever|mends?|mended|hearsay|heirs?)\b`)

// TestWords: comments, names and texts of the code have American spelling, and no replaced words.
func TestWords(t *testing.T) {
	for _, s := range sources(t) {
		if s.path == "internal/house/words_test.go" {
			continue
		}
		for _, group := range s.file.Comments {
			if found := replacedWords.FindString(group.Text()); found != "" {
				t.Errorf("%s: %q in a comment", s.at(group.Pos()), found)
			}
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.Ident:
				if found := replacedWords.FindString(node.Name); found != "" {
					t.Errorf("%s: %q in a name", s.at(node.Pos()), found)
				}
			case *ast.BasicLit:
				if found := replacedWords.FindString(node.Value); found != "" {
					t.Errorf("%s: %q in a text", s.at(node.Pos()), found)
				}
			}
			return true
		})
	}
}
