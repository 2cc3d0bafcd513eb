package house

import (
	"go/ast"
	"regexp"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
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
			must.Same(t, "", replacedWords.FindString(group.Text()), s.at(group.Pos()), "in a comment")
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.Ident:
				must.Same(t, "", replacedWords.FindString(node.Name), s.at(node.Pos()), "in a name")
			case *ast.BasicLit:
				must.Same(t, "", replacedWords.FindString(node.Value), s.at(node.Pos()), "in a text")
			}
			return true
		})
	}
}
