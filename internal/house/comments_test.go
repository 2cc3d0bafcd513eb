package house

import (
	"go/ast"
	"slices"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestCommentsBeginWithTheirName: a comment that begins with a name must describe that name. It may be wrong after a
// rename.
func TestCommentsBeginWithTheirName(t *testing.T) {
	declared := map[string]map[string]bool{} // by folder
	for _, s := range sources(t) {
		if declared[s.dir] == nil {
			declared[s.dir] = map[string]bool{}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				declared[s.dir][id.Name] = true
			}
			return true
		})
	}
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			doc, names := described(n)
			if doc == nil || len(names) == 0 {
				return true
			}
			first := firstWord(doc.Text())
			initial, _ := utf8.DecodeRuneInString(first)
			isName := unicode.IsLower(initial) || declared[s.dir][first] && isMixed(first)
			if isName && !slices.Contains(names, first) {
				t.Errorf("%s: the comment of %s begins with %s", s.at(doc.Pos()), names[0], first)
			}
			return true
		})
	}
}

// described returns the comment of a declaration, and the names that it describes.
func described(n ast.Node) (*ast.CommentGroup, []string) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Doc, []string{n.Name.Name}
	case *ast.GenDecl:
		if n.Lparen.IsValid() || len(n.Specs) != 1 {
			return nil, nil
		}
		_, names := described(n.Specs[0])
		return n.Doc, names
	case *ast.TypeSpec:
		return n.Doc, []string{n.Name.Name}
	case *ast.ValueSpec:
		return n.Doc, namesOf(n.Names)
	case *ast.Field:
		return n.Doc, namesOf(n.Names)
	}
	return nil, nil
}

func namesOf(list []*ast.Ident) []string {
	var names []string
	for _, id := range list {
		names = append(names, id.Name)
	}
	return names
}

func firstWord(text string) string {
	for i, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' {
			return text[:i]
		}
	}
	return text
}

// isMixed reports whether a word is a name such as forgetObject.
func isMixed(word string) bool {
	lower := false
	for _, r := range word {
		if lower && unicode.IsUpper(r) {
			return true
		}
		lower = unicode.IsLower(r)
	}
	return false
}
