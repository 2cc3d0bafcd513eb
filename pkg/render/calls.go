package render

import (
	"fmt"
	"slices"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/values"
	"github.com/corollary-dev/corollary/pkg/spelling"
)

// call checks a call: that the function exists, and its arguments as far as they are known. given is the number of
// arguments, including the one from the pipe.
func (c *compiler) call(cmd *parse.CommandNode, name string, given int) {
	if reason, fix, no := functions.Refused(name); no {
		c.errorf(cmd.Pos, fix, "the function %s is not available: %s", name, reason)
		return
	}
	if name == "omitempty" {
		c.errorf(cmd.Pos, "for a value to fall back to, use `default`", "omitempty works only at the end of a hole")
		return
	}
	if name == "item" && !c.items {
		c.errorf(
			cmd.Pos,
			"add forEach with items, or read the upstream, as in .metadata.name",
			"there are no items: the downstream has no forEach",
		)
		return
	}
	if _, ok := parsing.OnlyArgument(cmd); !ok && (name == "variable" || name == "downstream") {
		c.errorf(cmd.Pos, `write `+name+` "NAME"`, "the name of a %s must be written as it is, since what is read must be known before", name)
		return
	}
	if !functions.Exists(name) {
		c.errorf(cmd.Pos, functions.UnknownFix(name), "unknown function %s", name)
		return
	}
	c.used[name] = true
	c.arguments(cmd.Pos, name, given)
	if len(cmd.Args) < 2 {
		return
	}
	if text, ok := parsing.Constant(cmd.Args[1]); ok && name == "include" {
		c.templateName(cmd.Pos, text)
	}
}

func (c *compiler) templateName(pos parse.Pos, name string) {
	if _, ok := c.Trees[name]; ok {
		return
	}
	fix := "write {{ define }} for it in this template or in helpers"
	known := slices.Concat(values.SortedKeys(c.Trees), values.SortedKeys(c.helpers))
	near := spelling.Closest(name, slices.DeleteFunc(known, func(n string) bool {
		return n == parsing.Main
	}))
	if near != "" {
		fix = "did you mean " + near + "?"
	}
	c.errorf(pos, fix, "unknown template %q", name)
}

// arguments checks the number of arguments of a call: text/template checks it only when it executes the call.
func (c *compiler) arguments(pos parse.Pos, name string, given int) {
	least, most := functions.Arity(name)
	switch {
	case given < least && name == "default":
		c.errorf(pos, "write `.spec.field | default VALUE`", "default has no value to fall back to")
	case given < least:
		c.errorf(pos, "the value before | is the last of them", "%s takes %s and is given %d", name,
			counted(least, most), given)
	case given > most:
		c.errorf(pos, "put a call that is an argument in parentheses", "%s takes %s and is given %d", name,
			counted(least, most), given)
	}
}

// counted returns "2 arguments" or "at least 1 argument".
func counted(least, most int) string {
	text := fmt.Sprintf("%d arguments", least)
	if least == 1 {
		text = "1 argument"
	}
	if most != least {
		return "at least " + text
	}
	return text
}

// looksUpKey reports whether a call looks up a key in its first argument, a map.
func looksUpKey(name string, args []parse.Node) bool {
	switch name {
	case "get", "hasKey", "pick", "omit":
		return true
	case "index":
		if len(args) > 2 {
			_, isText := parsing.Constant(args[2])
			return isText
		}
	}
	return false
}

func pipeMayBeNull(p *parse.PipeNode) bool {
	last := p.Cmds[len(p.Cmds)-1]
	switch last.Args[0].(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return false
	}
	name := parsing.Function(last)
	return name == "" || functions.MayBeNull(name)
}
