package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/corollary-dev/corollary/pkg/rules/schema"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// typeError converts the first of the type checker's errors to a readable one. The use of oldSelf comes first, because
// then nothing else needs fixing. The expression at the position of the error shows what is wrong.
func (s *scope) typeError(expr string, tree *ast.AST, errs []*cel.Error) *CompileError {
	nodes := map[int64]ast.Expr{}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) { nodes[e.ID()] = e }))
	usesOldSelf := func(err *cel.Error) bool {
		at := nodes[err.ExprID]
		return at != nil && at.Kind() == ast.IdentKind && at.AsIdent() == "oldSelf"
	}
	first := errs[max(0, slices.IndexFunc(errs, usesOldSelf))]
	problem := &CompileError{Line: first.Location.Line(), Column: first.Location.Column() + 1,
		Problem: Readable(first.Message)}
	at := nodes[first.ExprID]
	switch {
	case at == nil:
	case strings.HasPrefix(first.Message, "expected type "):
		if at.Kind() != ast.LiteralKind || strings.Contains(first.Message, "type 'dyn'") {
			problem.Fix = oneType(tree, at)
		}
	case at.Kind() == ast.IdentKind && strings.HasPrefix(first.Message, "undeclared reference "):
		s.unknownVariable(problem, at.AsIdent(), expr)
	case at.Kind() == ast.IdentKind && slices.Contains(s.variables(), at.AsIdent()): // such as a loop over self
		problem.Problem = at.AsIdent() + " cannot be used as a whole"
		problem.Fix = "read a member of it: " + at.AsIdent() + ".NAME"
	case at.Kind() == ast.SelectKind:
		s.unknownField(problem, placeOf(tree, at.AsSelect().Operand()), at.AsSelect().FieldName())
		problem.Column += distance(expr, first.Location, at.AsSelect().FieldName())
	case at.Kind() == ast.CallKind && at.AsCall().FunctionName() == operators.OptSelect:
		field := at.AsCall().Args()[1].AsLiteral().Value().(string)
		s.unknownField(problem, placeOf(tree, at.AsCall().Args()[0]), field)
		problem.Column += distance(expr, first.Location, field)
	case IsText(at):
		badPattern(problem, at.AsLiteral().Value().(string))
	case at.Kind() == ast.CallKind:
		s.badCall(problem, at.AsCall())
		problem.Column -= backToName(expr, first.Location, at.AsCall().FunctionName())
	}
	return problem
}

// oneType says how to write a map or list whose parts have different types; empty if the expression is not a part of
// one.
func oneType(tree *ast.AST, at ast.Expr) (fix string) {
	say := func(what string, parts []ast.Expr) {
		if !slices.ContainsFunc(parts, func(e ast.Expr) bool { return e.ID() == at.ID() }) {
			return
		}
		fix = what + " must have one type: write dyn(…) around each whose type is known"
		if i := slices.IndexFunc(parts, IsText); i >= 0 {
			fix += ", such as dyn('" + parts[i].AsLiteral().Value().(string) + "')"
		}
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ListKind:
			say("the items of a list", e.AsList().Elements())
		case ast.MapKind:
			var keys, values []ast.Expr
			for _, entry := range e.AsMap().Entries() {
				keys, values = append(keys, entry.AsMapEntry().Key()), append(values, entry.AsMapEntry().Value())
			}
			say("the keys of a map", keys)
			say("the values of a map", values)
		}
	}))
	return fix
}

// unknownVariable describes an undeclared name.
func (s *scope) unknownVariable(problem *CompileError, name, expr string) {
	names := s.variables()
	problem.Problem = name + " is not known here"
	problem.Fix = "valid names are " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	switch {
	case name == varVariables:
		problem.Problem = "there are no variables here"
		problem.Fix = "declare them in variables: an expression reads those that are declared before it"
	case name == "oldSelf":
		problem.Fix = "a reconcile has no old object: a rule about a change belongs in the" +
			" CustomResourceDefinition's x-kubernetes-validations or a ValidatingAdmissionPolicy"
	case name == "object":
		problem.Fix = "write self"
	case fieldsOfAll[strings.TrimPrefix(name, ".")] && s.kind == Downstream:
		field := strings.TrimPrefix(name, ".")
		problem.Fix = "write downstream." + field + ", or self." + field + " for the upstream's"
	case fieldsOfAll[strings.TrimPrefix(name, ".")]:
		problem.Fix = "write self." + strings.TrimPrefix(name, ".")
	case name == varDownstream && s.kind == Status:
		problem.Fix = "write downstreams.NAME"
	case name == varDownstreams && s.kind == Downstream:
		problem.Fix = "this expression sees only its own downstream: write downstream"
	default:
		if suggestion := spelling.Closest(name, names); suggestion != "" {
			problem.Fix = "did you mean " + suggestion + "?"
		} else if plainText.MatchString(expr) {
			problem.Fix = "write text in quotes: '" + expr + "'; " + problem.Fix
		}
	}
}

// plainText matches an expression that looks like a name, not like CEL.
var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*$`)

// fieldsOfAll are fields at the root of any object: an expression that begins with one lacks its variable.
var fieldsOfAll = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "spec": true,
	"status": true, "data": true}

// unknownField describes a field that the object does not have. It does not change the problem if the field is not the
// cause.
func (s *scope) unknownField(problem *CompileError, place, field string) {
	typeName, has := s.provider.lacking(field)
	if typeName == "" {
		return
	}
	owner := place
	if owner == "" {
		owner = strings.NewReplacer(schema.TypePrefix, "", ".@idx", "[…]", ".@elem", "[…]").Replace(typeName)
	}
	problem.Problem = fmt.Sprintf("%s has no field %s", owner, field)
	if i := slices.IndexFunc(has, func(name string) bool { return strings.HasPrefix(name, field+"__dash__") }); i >= 0 {
		problem.Fix = "did you mean " + has[i] + "? A dash in a name is escaped, since it would subtract"
	} else if suggestion := spelling.Closest(field, has); suggestion != "" {
		problem.Fix = "did you mean " + suggestion + "?"
	} else if len(has) > 0 && len(has) <= 12 {
		problem.Fix = "it has " + strings.Join(has, ", ")
	}
}

// placeOf returns the path of an expression, self.spec.ports[…]; empty if it is not just a path.
func placeOf(tree *ast.AST, e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return placeOfVariable(tree, e.AsIdent())
	case ast.SelectKind:
		return further(placeOf(tree, e.AsSelect().Operand()), "."+e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case name == operators.Index || name == operators.OptIndex:
			return further(placeOf(tree, call.Args()[0]), "[…]")
		case name == operators.OptSelect && IsText(call.Args()[1]):
			return further(placeOf(tree, call.Args()[0]), "."+call.Args()[1].AsLiteral().Value().(string))
		case (name == "orValue" || name == "or" || name == "value") && call.IsMemberFunction():
			return placeOf(tree, call.Target())
		}
	}
	return ""
}

func further(place, step string) string {
	if place == "" {
		return ""
	}
	return place + step
}

// placeOfVariable returns the path of a variable. For a variable of a macro it is the path of the items, or empty if
// several macros declare that name.
func placeOfVariable(tree *ast.AST, name string) string {
	var ranges []ast.Expr
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind && (e.AsComprehension().IterVar() == name ||
			e.AsComprehension().IterVar2() == name) {
			ranges = append(ranges, e.AsComprehension().IterRange())
		}
	}))
	switch {
	case len(ranges) == 0:
		return name
	case len(ranges) > 1 || mentions(ranges[0], name):
		return ""
	}
	return further(placeOf(tree, ranges[0]), "[…]")
}

// mentions reports whether an expression contains a variable.
func mentions(e ast.Expr, variable string) (found bool) {
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && e.AsIdent() == variable
	}))
	return found
}

// badCall describes an unknown function or one with wrong arguments.
func (s *scope) badCall(problem *CompileError, call ast.CallExpr) {
	name := call.FunctionName()
	if _, operator := operators.FindReverse(name); operator {
		switch {
		case name == operators.Index && len(call.Args()) == 2 && IsText(call.Args()[1]):
			problem.Fix = "select a field of an object by its name, as in self.spec.replicas; a character that an identifier" +
				" cannot have is escaped as in CRDs (foo-bar is foo__dash__bar)"
		case name == operators.Conditional:
			problem.Fix = "the part before the question mark must be a bool, and both results must have one type: " +
				"write dyn(…) around one that differs"
		case len(call.Args()) == 2 && slices.ContainsFunc(call.Args(), isNull):
			problem.Fix = "to test whether a field exists, write has(self.spec.field)"
		case len(call.Args()) == 2:
			problem.Fix = "compare, add or combine values of one type: convert with int(…), double(…) or string(…)"
		}
		return
	}
	if s.env.HasFunction(name) {
		return
	}
	problem.Problem = "unknown function " + name
	var names []string
	for known := range s.env.Functions() {
		if !strings.ContainsAny(known, "@_") {
			names = append(names, known)
		}
	}
	if suggestion := spelling.Closest(name, names); suggestion != "" {
		problem.Fix = "did you mean " + suggestion + "?"
	} else if own := celNames[name]; own != "" && s.env.HasFunction(own) {
		problem.Fix = "CEL calls it " + own
	}
}

// celNames are CEL's functions by their names in other languages, if the spelling is not similar.
var celNames = map[string]string{"len": "size", "length": "size", "count": "size",
	"regexMatch": "matches", "hasPrefix": "startsWith",
	"hasSuffix": "endsWith", "includes": "contains", "toLower": "lowerAscii",
	"lower": "lowerAscii", "toUpper": "upperAscii",
	"upper": "upperAscii"}

// badPattern describes an invalid regular expression. It does not change the problem if the expression is valid.
func badPattern(problem *CompileError, pattern string) {
	if _, err := regexp.Compile(pattern); err != nil {
		problem.Problem = fmt.Sprintf("%q is not a regular expression: %s", pattern,
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
}

func isNull(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue
}

// operatorName matches CEL's names of operators: _>_, _[_].
var operatorName = regexp.MustCompile(`'([!_@-][^' ]*)'`)

// Readable puts a message of CEL on one line, with operators as users write them.
func Readable(message string) string {
	text := operatorName.ReplaceAllStringFunc(firstLine(message), func(quoted string) string {
		name := strings.Trim(quoted, "'")
		switch name {
		case operators.Index:
			return "'[…]'"
		case operators.Conditional:
			return "'?:'"
		}
		if symbol, ok := operators.FindReverse(name); ok && symbol != "" {
			return "'" + symbol + "'"
		}
		return quoted
	})
	return strings.NewReplacer(" (in container '')", "", schema.TypePrefix, "",
		"found no matching overload for ", "", " applied to ", " does not take ").Replace(text)
}

// distance returns the number of characters between a position in the expression and the name of the field: a selection
// has the position of its dot, has() that of its parenthesis. It is 0 if the name is on another line.
func distance(expr string, at common.Location, field string) int {
	lines := strings.Split(expr, "\n")
	if at.Line() < 1 || at.Line() > len(lines) {
		return 0
	}
	line := []rune(lines[at.Line()-1])
	if at.Column() < 0 || at.Column() > len(line) {
		return 0
	}
	rest := string(line[at.Column():])
	before, dots, found := cutAtField(rest, field)
	if !found {
		return 0
	}
	return len([]rune(before)) + len([]rune(dots))
}

// backToName returns the number of characters between the name of a function and a position, which for a call is its
// parenthesis; 0 for any other position.
func backToName(expr string, at common.Location, name string) int {
	lines := strings.Split(expr, "\n")
	if at.Line() < 1 || at.Line() > len(lines) {
		return 0
	}
	line := []rune(lines[at.Line()-1])
	if at.Column() <= len(line) && at.Column() >= 0 && strings.HasSuffix(string(line[:at.Column()]), name) {
		return len([]rune(name))
	}
	return 0
}

// cutAtField finds the first selection of the field. It returns the text before its dots, and the dots.
func cutAtField(text, field string) (before, dots string, found bool) {
	selection := regexp.MustCompile(`[.]\s*[?]?\s*` + regexp.QuoteMeta(field) + `\b`)
	at := selection.FindStringIndex(text)
	if at == nil {
		return "", "", false
	}
	return text[:at[0]], text[at[0] : at[1]-len(field)], true
}
