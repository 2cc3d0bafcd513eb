package operator_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/operator"
)

// TestStatesAreComplete: each constant of a state has a row of traits, so that whoever adds one says what follows from
// it.
func TestStatesAreComplete(t *testing.T) {
	file := must.Get(parser.ParseFile(token.NewFileSet(), "state.go", nil, 0)).In(t)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "State" {
			word := must.Get(strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)).In(t)
			if !slices.Contains(operator.States(), operator.State(word)) {
				t.Errorf("%s has no row in states", spec.Names[0])
			}
		}
		return true
	})
}
