package check

import (
	"slices"
	"strings"
	template "text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
)

// nameOfItem is what templates call the item of forEach.
const nameOfItem = "item"

// pipe is the shape of a pipeline's value.
func (w *walk) pipe(p *template.PipeNode, in scope) shape {
	var value shape
	optional := w.optional
	w.optional = optional || slices.ContainsFunc(p.Cmds, takesMissing)
	defer func() { w.optional = optional }()
	for i, cmd := range p.Cmds {
		var args []shape
		for _, arg := range cmd.Args {
			args = append(args, w.node(arg, in))
		}
		name := parsing.Function(cmd)
		switch {
		case name == "" || name == nameOfItem:
			value = args[0]
		case i > 0:
			value = w.callOf(cmd, name, append(args[1:], value))
		default:
			value = w.callOf(cmd, name, args[1:])
		}
	}
	return value
}

// takesMissing reports whether a call works without a value.
func takesMissing(cmd *template.CommandNode) bool {
	name := parsing.Function(cmd)
	return name != "include" && functions.TakesNull(name)
}

// callOf is the shape of what a function gives for arguments, of which the last may be piped in. Of the functions only
// those are followed that give one of their arguments.
func (w *walk) callOf(cmd *template.CommandNode, name string, args []shape) shape {
	switch {
	case name == "omitempty" && len(args) == 1:
		return args[0]
	case name == "default" && len(args) > 1:
		return shape{either: args, constant: allConstant(args)}
	case name == "include":
		w.include(cmd, args)
		return shape{typed: functions.ResultType(name)}
	}
	for _, arg := range args {
		w.read(arg, true)
	}
	constant := allConstant(args)
	switch name {
	case "param":
		constant = true
	case "variable":
		if name, ok := parsing.OnlyArgument(cmd); ok {
			w.Variables = append(w.Variables, name)
			return shape{schema: w.roots.Variables[name]}
		}
		constant = false
	case "input", "downstream":
		if object := w.objectOf(cmd); object != "" {
			return shape{schema: w.roots.Objects[object]}
		}
		constant = false
	case "printf":
		w.printf(cmd, args)
	case "index", "get": // a field may choose the part
		constant = allConstant(args[:min(1, len(args))])
		w.indexed(cmd, name, args)
	}
	return shape{typed: functions.ResultType(name), constant: constant}
}

// allConstant reports whether nobody but the config's author decides any of the values.
func allConstant(values []shape) bool {
	return !slices.ContainsFunc(values, func(s shape) bool { return !s.constant })
}

// objectOf is how a call names an input or a downstream whose schema is known; empty for others.
func (w *walk) objectOf(cmd *template.CommandNode) string {
	if name, ok := parsing.OnlyArgument(cmd); ok {
		if key := ObjectName(parsing.Function(cmd), name); w.roots.Objects[key] != nil {
			return key
		}
	}
	return ""
}

// include follows a call of include. It may be of any tree and with any dot if its arguments do not tell.
func (w *walk) include(cmd *template.CommandNode, args []shape) {
	if len(args) == 2 {
		if name, ok := parsing.Constant(cmd.Args[1]); ok {
			w.call(name, args[1])
			return
		}
	}
	for _, arg := range args {
		w.read(arg, true)
	}
	for name := range w.trees {
		if name != "" {
			w.call(name, shape{})
		}
	}
}

// indexed checks the fields that a call of index names by constants.
func (w *walk) indexed(cmd *template.CommandNode, name string, args []shape) {
	if name != "index" || len(cmd.Args) < 3 {
		return
	}
	of, root := args[0], strings.TrimSuffix(cmd.Args[1].String(), ".")
	for _, arg := range cmd.Args[2:] {
		key, ok := parsing.Constant(arg)
		if !ok {
			return
		}
		of = w.field(cmd.Pos, of, root, []string{key})
		root += "." + key
	}
}

// printf records a constant format that the values never fit, such as %d for a text.
func (w *walk) printf(cmd *template.CommandNode, args []shape) {
	if len(cmd.Args) < 2 {
		return
	}
	format, isConstant := cmd.Args[1].(*template.StringNode)
	if !isConstant {
		return
	}
	var types []string
	for _, value := range args[1:] {
		types = append(types, value.scalarType())
	}
	if !functions.FitsVerbs(format.Text, types) {
		w.lack(cmd.Pos, "printf "+format.Quoted+" never fits its values ("+strings.Join(types,
			", ")+"): use %v, %s for a string, %d for an integer")
	}
}
