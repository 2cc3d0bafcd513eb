package house

import (
	"go/ast"
	"regexp"
	"testing"
)

// unfinished matches marks of unfinished work.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func TestNothingIsLeftToDo(t *testing.T) {
	for _, s := range sources(t) {
		for _, group := range s.file.Comments {
			for _, comment := range group.List {
				if mark := unfinished.FindString(comment.Text); mark != "" && s.dir != "internal/house" {
					t.Errorf("%s: %s: do it, or leave it out", s.at(comment.Pos()), mark)
				}
			}
		}
	}
}

// TestTestsNeitherSleepNorSkip: a sleep is too long or too short, and a skipped test looks like one that passes.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, call := range calls(s.file) {
			switch call.name {
			case "time.Sleep", "t.Skip", "t.Skipf", "t.SkipNow", "b.Skip", "b.Skipf", "f.Skip":
				t.Errorf("%s: calls %s", s.at(call.node.Pos()), call.name)
			}
		}
	}
}

// TestErrorsAreNotMatchedByText: the texts of errors are for people and may change; use errors.Is and errors.As.
func TestErrorsAreNotMatchedByText(t *testing.T) {
	matchers := map[string]bool{
		"strings.Contains": true, "strings.HasPrefix": true, "strings.HasSuffix": true, "strings.EqualFold": true,
	}
	for _, s := range product(t) {
		for _, call := range calls(s.file) {
			if !matchers[call.name] {
				continue
			}
			for _, argument := range call.node.Args {
				if inner, ok := argument.(*ast.CallExpr); ok && len(inner.Args) == 0 {
					if method, ok := inner.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Error" {
						t.Errorf("%s: %s looks at the text of an error", s.at(call.node.Pos()), call.name)
					}
				}
			}
		}
	}
}

// call is a call of the form x.f.
type call struct {
	name string
	node *ast.CallExpr
}

// calls returns the calls of the form x.f in a file.
func calls(file *ast.File) []call {
	var found []call
	ast.Inspect(file, func(node ast.Node) bool {
		expression, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if function, ok := expression.Fun.(*ast.SelectorExpr); ok {
			if receiver, ok := function.X.(*ast.Ident); ok {
				found = append(found, call{receiver.Name + "." + function.Sel.Name, expression})
			}
		}
		return true
	})
	return found
}
