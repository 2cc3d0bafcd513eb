package render

import "text/template/parse"

// Names of the functions that rewriting puts into the parse tree. An author cannot call them: they are unknown when
// the text is parsed.
const (
	// These are followed by the number of a site.
	fnGet     = "_get"     // read fields
	fnNeed    = "_need"    // read fields, which must be there
	fnPut     = "_put"     // record a hole and print its placeholder
	fnHole    = "_hole"    // record a hole and give its placeholder, to be laid out
	fnInclude = "_include" // give a template's text with its holes

	fnIndent  = "_indent"
	fnNindent = "_nindent"
	fnTrim    = "_trim"
	fnEmit    = "_emit"  // print what was laid out
	fnTick    = "_tick"  // count the steps of a loop's body
	fnEnter   = "_enter" // the same of a template's
	fnLeave   = "_leave"
	fnOver    = "_over" // count what a loop goes over
)

func identNode(name string, pos parse.Pos) *parse.IdentifierNode {
	return parse.NewIdentifier(name).SetPos(pos)
}

func commandNode(pos parse.Pos, args ...parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: args}
}

func pipeNode(pos parse.Pos, cmds ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: cmds}
}

// silent turns a pipeline into one that prints nothing, by assigning its value to a variable that no author can name.
func silent(p *parse.PipeNode) *parse.PipeNode {
	p.Decl = []*parse.VariableNode{{NodeType: parse.NodeVariable, Pos: p.Pos, Ident: []string{"$ "}}}
	return p
}

// silentCall is an action that calls a function for its effect.
func silentCall(name string, pos parse.Pos) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: silent(pipeNode(pos, commandNode(pos, identNode(name, pos))))}
}

// function gives the name that a command calls, "" where it calls none.
func function(cmd *parse.CommandNode) string {
	if id, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
		return id.Ident
	}
	return ""
}

// constString gives the value of a string constant.
func constString(n parse.Node) (string, bool) {
	s, ok := n.(*parse.StringNode)
	if !ok {
		return "", false
	}
	return s.Text, true
}
