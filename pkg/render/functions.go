package render

import (
	"reflect"
	"slices"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"

	"github.com/corollary-dev/corollary/pkg/spelling"
)

// functions are sprig's and our own functions that do not need the execution. Templates can call them, the functions of
// text/template, and runFunctions.
var functions = func() map[string]any {
	out := map[string]any{}
	for name, f := range sprig.TxtFuncMap() {
		if _, no := refused[name]; !no {
			out[name] = f
		}
	}
	for name, f := range ownFunctions {
		out[name] = f
	}
	return out
}()

// builtinResults are the result types of text/template's own functions.
var builtinResults = map[string]reflect.Type{
	"and": nil, "or": nil, "index": nil,
	"not": boolType, "lt": boolType, "le": boolType, "gt": boolType, "ge": boolType,
	"len": reflect.TypeFor[int](),
}

var boolType = reflect.TypeFor[bool]()

// bound returns a function as an execution calls it, nil for those of text/template.
func bound(r *run, name string) any {
	if bind, ok := runFunctions[name]; ok {
		return bind(r)
	}
	f, ok := functions[name]
	if !ok {
		return nil
	}
	return withCost(r, f, costs[name])
}

// resultType returns the result type of a function, nil if it is unknown before the call.
func resultType(name string) reflect.Type {
	f := bound(&run{}, name)
	if f == nil {
		return builtinResults[name]
	}
	out := reflect.TypeOf(f).Out(0)
	if out.Kind() == reflect.Interface {
		return nil
	}
	return out
}

// isFunction reports whether an author can call a function.
func isFunction(name string) bool {
	if name[0] == '_' {
		return false // added by the rewrite
	}
	if _, ok := runFunctions[name]; ok {
		return true
	}
	if _, ok := functions[name]; ok {
		return true
	}
	_, ok := builtinResults[name]
	return ok
}

// call checks a call: that the function exists, and its arguments as far as they are known. given is the number of arguments,
// including the one from the pipe.
func (c *compiler) call(cmd *parse.CommandNode, name string, given int) {
	if reason, no := refused[name]; no {
		c.errorf(cmd.Pos, reason[1], "the function %s is not available: %s", name, reason[0])
		return
	}
	if name == "omitempty" {
		c.errorf(cmd.Pos, "for a value to fall back to, use `default`", "omitempty works only at the end of a hole")
		return
	}
	if name == "item" && !c.options.Items {
		c.errorf(
			cmd.Pos,
			"add forEach with items, or read the upstream, as in .metadata.name",
			"there are no items: the downstream has no forEach",
		)
		return
	}
	if (name == "variable" || name == "downstream") && !namesConstant(cmd) {
		c.errorf(cmd.Pos, `write `+name+` "NAME"`, "the name of a %s must be written as it is, since what is read must be known before", name)
		return
	}
	if !isFunction(name) {
		c.errorf(cmd.Pos, unknownFunctionFix(name), "unknown function %s", name)
		return
	}
	c.used[name] = true
	c.arguments(cmd.Pos, name, given)
	if len(cmd.Args) < 2 {
		return
	}
	if text, ok := constString(cmd.Args[1]); ok && name == "include" {
		c.templateName(cmd.Pos, text)
	}
}

// namesConstant reports whether the only argument of a call is a constant.
func namesConstant(cmd *parse.CommandNode) bool {
	if len(cmd.Args) != 2 {
		return false
	}
	_, ok := constString(cmd.Args[1])
	return ok
}

func (c *compiler) templateName(pos parse.Pos, name string) {
	if _, ok := c.trees[name]; ok {
		return
	}
	fix := "write {{ define }} for it in this template or in helpers"
	known := slices.Concat(sortedKeys(c.trees), sortedKeys(c.helpers))
	if near := spelling.Closest(name, slices.DeleteFunc(known, func(n string) bool { return n == mainTree })); near != "" {
		fix = "did you mean " + near + "?"
	}
	c.errorf(pos, fix, "unknown template %q", name)
}

// unknownFunctionFix suggests a fix for an unknown function.
func unknownFunctionFix(name string) string {
	switch name {
	case "self", "params", "inputs", "downstreams":
		return "this is CEL; in a template the upstream is the dot, as in .metadata.name, and there are " +
			"param, variable, input and downstream, each with \"NAME\""
	case "metadata", "spec", "status", "apiVersion", "kind", "data":
		return "a field begins with a dot: ." + name
	case "null", "None", "none":
		return "for nothing, write nothing; `omitempty` removes a key whose value is missing"
	}
	if near := nearestFunction(name); near != "" {
		return "did you mean " + near + "?"
	}
	return "the functions are those of text/template and sprig"
}

func nearestFunction(name string) string {
	var names []string
	names = append(names, sortedKeys(functions)...)
	names = append(names, slices.DeleteFunc(sortedKeys(runFunctions), func(n string) bool { return n[0] == '_' })...)
	names = append(names, sortedKeys(builtinResults)...)
	names = append(names, "omitempty")
	return spelling.Closest(name, names)
}

// mayBeNull reports whether the result of a function may be null.
func mayBeNull(name string) bool {
	switch name {
	case fnNeed, "required":
		return false
	case "list", "tuple", "dict", "set", "unset", "keys", "values", "pick", "omit":
		return false
	}
	t := resultType(name)
	return t == nil || t.Kind() == reflect.Pointer
}

func pipeMayBeNull(p *parse.PipeNode) bool {
	last := p.Cmds[len(p.Cmds)-1]
	switch last.Args[0].(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return false
	}
	name := function(last)
	return name == "" || mayBeNull(name)
}

// nullArguments says which arguments of a function may be null. Any other null is an error with the name of the argument: sprig
// would print nothing, or <nil>.
var nullArguments = map[string]func(i, n int) bool{
	"default": anyArgument, "coalesce": anyArgument, "omitempty": anyArgument, "empty": anyArgument,
	"all": anyArgument, "any": anyArgument, "and": anyArgument, "or": anyArgument, "not": anyArgument,
	"eq": anyArgument, "ne": anyArgument, "deepEqual": anyArgument, "list": anyArgument, "tuple": anyArgument,
	"kindOf": anyArgument, "typeOf": anyArgument,
	"kindIs": from(1), "typeIs": from(1), "typeIsLike": from(1), "required": from(1), "include": from(1),
	"dict":   func(i, _ int) bool { return i%2 == 1 },
	"set":    from(2),
	"append": from(1), "push": from(1), "mustAppend": from(1), "mustPush": from(1), "prepend": from(1), "mustPrepend": from(1),
	"ternary": func(i, n int) bool { return i < 2 && n > 2 },
	"has":     func(i, _ int) bool { return i == 0 }, "mustHas": func(i, _ int) bool { return i == 0 },
	"without": from(1), "mustWithout": from(1),
	"dig": func(i, n int) bool { return i == n-2 },
}

// looksUpKey reports whether a call looks up a key in its first argument, a map.
func looksUpKey(name string, args []parse.Node) bool {
	switch name {
	case "get", "hasKey", "pick", "omit":
		return true
	case "index":
		if len(args) > 2 {
			_, isText := constString(args[2])
			return isText
		}
	}
	return false
}

func anyArgument(int, int) bool { return true }

func from(first int) func(i, n int) bool {
	return func(i, _ int) bool { return i >= first }
}

// takesNull reports whether argument i of n may be null. It returns true if name is empty: that is not a function.
func takesNull(name string, i, n int) bool {
	if name == "" {
		return true
	}
	f, ok := nullArguments[name]
	return ok && f(i, n)
}

// TakesNull reports whether some argument of a template function may be null.
func TakesNull(function string) bool { return nullArguments[function] != nil }
