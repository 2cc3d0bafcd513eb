package render

import (
	"reflect"
	"strings"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/functions"
	"github.com/corollary-dev/corollary/pkg/render/holes"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/program"
)

// modes are the functions that have a special meaning at the end of a hole's pipeline.
var modes = map[string]program.Mode{
	"toYaml": program.ModeYAML,
	"toJson": program.ModeJSON, "mustToJson": program.ModeJSON,
	"toRawJson": program.ModeJSONRaw, "mustToRawJson": program.ModeJSONRaw,
	"toPrettyJson": program.ModeJSONPretty, "mustToPrettyJson": program.ModeJSONPretty,
	"quote": program.ModeQuote, "squote": program.ModeSingleQuote,
}

// layout are the functions that move text; after toYaml, include and the like they move the placeholder.
var layout = map[string]struct {
	args int // arguments besides the text
	name string
}{
	"indent":  {1, program.FnIndent},
	"nindent": {1, program.FnNindent},
	"trim":    {0, program.FnTrim},
}

// hole rewrites an action that prints: its value is recorded, and a placeholder is printed.
func (c *compiler) hole(n *parse.ActionNode) {
	cmds := flatten(n.Pipe.Cmds)
	source, stages, m, omit := cutTail(cmds)
	if omit && c.asText {
		c.errorf(n.Pos, "write `| default \"\"`", "omitempty removes a value, an item or a key; a text has none")
	}
	isInclude := m == program.ModePlain && !omit && parsing.Function(source[0]) == "include" &&
		len(source) == 1 && len(source[0].Args) > 1
	id, s := c.newSite(n.Pos, pipeText(source))
	s.Hole = !isInclude // the text of an include has its own holes
	s.Mode, s.Omit = m, omit
	s.Source = c.Action(n.Pos)
	s.NewLine = len(stages) > 0 && parsing.Function(stages[0]) == "nindent"
	known := &holes.Action{Site: id, Tree: c.current, Stages: stages}
	recordResultType(known, m, source[len(source)-1])
	c.Actions[n] = known
	if isInclude {
		known.Include = c.printed(source[0].Args[1])
		n.Pipe.Cmds = c.includeHole(source[0], id)
	} else {
		n.Pipe.Cmds = c.record(source, id, len(stages) > 0)
	}
	n.Pipe.Cmds = append(n.Pipe.Cmds, c.stages(stages)...)
	if len(stages) > 0 || isInclude {
		c.used[program.FnEmit] = true
		n.Pipe.Cmds = append(n.Pipe.Cmds, commandNode(n.Pos, identNode(program.FnEmit, n.Pos)))
	}
	n.Pipe = discardOutput(n.Pipe)
}

// recordResultType records what the last function of a hole, and its mode, say about the result.
func recordResultType(a *holes.Action, m program.Mode, last *parse.CommandNode) {
	a.Text = m == program.ModeQuote || m == program.ModeSingleQuote || m == program.ModePlain && givesText(last)
	a.Scalar = m == program.ModePlain && givesScalar(last)
	a.GoQuoted = m == program.ModePlain && len(a.Stages) == 0 && isGoQuote(last)
}

// printed records that an include prints the holes of a template; it returns the name if it is constant.
func (c *compiler) printed(name parse.Node) string {
	text, ok := parsing.Constant(name)
	if !ok {
		c.PrintsAny = true
		return ""
	}
	c.prints(text)
	return text
}

// record returns the commands that evaluate a source and record its value.
func (c *compiler) record(source []*parse.CommandNode, id int, isLaidOut bool) []*parse.CommandNode {
	end := program.FnPut
	if isLaidOut {
		end = program.FnHole
	}
	pos := source[0].Pos
	if len(source) == 1 && parsing.Function(source[0]) == "" && len(source[0].Args) == 1 {
		base, path, _ := c.chain(source[0].Args[0])
		c.Sites[id].Path = path
		return []*parse.CommandNode{c.callNode(end, id, pos, base)}
	}
	return append(c.commands(source), c.callNode(end, id, pos))
}

// includeHole rewrites `include NAME DATA` at the end of a pipeline.
func (c *compiler) includeHole(cmd *parse.CommandNode, id int) []*parse.CommandNode {
	cmd = c.command(cmd, false, false, "")[0]
	return []*parse.CommandNode{c.callNode(program.FnInclude, id, cmd.Pos, cmd.Args[1:]...)}
}

// stages rewrites the layout functions after a placeholder.
func (c *compiler) stages(stages []*parse.CommandNode) []*parse.CommandNode {
	var out []*parse.CommandNode
	for _, cmd := range stages {
		to := layout[parsing.Function(cmd)].name
		cmd = c.command(cmd, true, false, "")[0]
		c.used[to] = true
		cmd.Args[0] = identNode(to, cmd.Pos)
		out = append(out, cmd)
	}
	return out
}

// flatten rewrites a pipeline so that each function takes its text from the previous one: `nindent 4 (toYaml .x)`
// becomes `.x | toYaml | nindent 4`.
func flatten(cmds []*parse.CommandNode) []*parse.CommandNode {
	first := cmds[0]
	name := parsing.Function(first)
	args := len(first.Args)
	var inner parse.Node
	switch l, isLayout := layout[name]; {
	case name == "" && args == 1:
		inner = first.Args[0]
		if p, ok := inner.(*parse.PipeNode); !ok || len(p.Decl) > 0 {
			return cmds
		}
		return append(flatten(inner.(*parse.PipeNode).Cmds), cmds[1:]...)
	case isLayout && args == l.args+2, isMode(name) && args == 2:
		inner = first.Args[args-1]
	default:
		return cmds
	}
	rest := append([]*parse.CommandNode{commandNode(first.Pos, first.Args[:args-1]...)}, cmds[1:]...)
	if p, ok := inner.(*parse.PipeNode); ok && len(p.Decl) == 0 {
		return append(flatten(p.Cmds), rest...)
	}
	return append([]*parse.CommandNode{commandNode(first.Pos, inner)}, rest...)
}

func isMode(name string) bool {
	_, ok := modes[name]
	return ok || name == "omitempty"
}

// cutTail splits a flattened pipeline into the value, its layout, and the conversion at its end.
func cutTail(cmds []*parse.CommandNode) (source, stages []*parse.CommandNode, m program.Mode, omit bool) {
	source = cmds
	for len(source) > 1 {
		last := source[len(source)-1]
		l, ok := layout[parsing.Function(last)]
		if !ok || len(last.Args) != l.args+1 {
			break
		}
		source = source[:len(source)-1]
	}
	stages = cmds[len(source):]
	for len(source) > 1 {
		last := source[len(source)-1]
		name := parsing.Function(last)
		if len(last.Args) != 1 {
			break
		}
		if name == "omitempty" && !omit {
			omit = true
		} else if to, ok := modes[name]; ok && m == program.ModePlain {
			m = to
		} else {
			break
		}
		source = source[:len(source)-1]
	}
	if m == program.ModePlain && parsing.Function(source[0]) != "include" {
		// `.x | trim` is the trimmed text, not a placeholder without spaces.
		for len(stages) > 0 && parsing.Function(stages[0]) == "trim" {
			source = append(source[:len(source):len(source)], stages[0])
			stages = stages[1:]
		}
	}
	return source, stages, m, omit
}

func pipeText(cmds []*parse.CommandNode) string {
	texts := make([]string, len(cmds))
	for i, cmd := range cmds {
		texts[i] = cmd.String()
	}
	return strings.Join(texts, " | ")
}

// givesText reports whether a command always returns a string.
func givesText(cmd *parse.CommandNode) bool {
	if _, ok := parsing.Constant(cmd.Args[0]); ok {
		return true
	}
	out := functions.Result(parsing.Function(cmd))
	return out != nil && out.Kind() == reflect.String
}

// givesScalar reports whether a command always returns a number or a boolean.
func givesScalar(cmd *parse.CommandNode) bool {
	switch cmd.Args[0].(type) {
	case *parse.NumberNode, *parse.BoolNode:
		return true
	}
	out := functions.Result(parsing.Function(cmd))
	return out != nil && (out.Kind() == reflect.Bool || out.Kind() >= reflect.Int && out.Kind() <= reflect.Float64)
}

// isGoQuote reports whether a command is `printf "%q" …`.
func isGoQuote(cmd *parse.CommandNode) bool {
	if parsing.Function(cmd) != "printf" || len(cmd.Args) < 2 {
		return false
	}
	format, ok := parsing.Constant(cmd.Args[1])
	return ok && format == "%q"
}
