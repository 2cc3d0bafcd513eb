package render

import "text/template/parse"

// Names of the functions that the rewrite adds to the parse tree. A template cannot call them: they are unknown when its text
// is parsed.
const (
	// The number of a site follows these.
	fnGet     = "_get"     // read fields
	fnNeed    = "_need"    // read fields, which must exist
	fnPut     = "_put"     // record a hole and print its placeholder
	fnHole    = "_hole"    // record a hole and return its placeholder, for layout functions
	fnInclude = "_include" // return the text of a template with its holes

	fnIndent  = "_indent"
	fnNindent = "_nindent"
	fnTrim    = "_trim"
	fnEmit    = "_emit"  // print laid out text
	fnTick    = "_tick"  // count the steps of the body of a loop
	fnEnter   = "_enter" // count the steps of a template
	fnLeave   = "_leave"
	fnOver    = "_over" // count the items of a loop
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

// discardOutput makes a pipeline print nothing, by assigning its value to a variable that a template cannot name.
func discardOutput(p *parse.PipeNode) *parse.PipeNode {
	p.Decl = []*parse.VariableNode{{NodeType: parse.NodeVariable, Pos: p.Pos, Ident: []string{"$ "}}}
	return p
}

// discardCall returns an action that calls a function and prints nothing.
func discardCall(name string, pos parse.Pos) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: discardOutput(pipeNode(pos, commandNode(pos, identNode(name, pos))))}
}

// function returns the name of the function that a command calls, or "".
func function(cmd *parse.CommandNode) string {
	if id, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
		return id.Ident
	}
	return ""
}

// constString returns the value of a string constant.
func constString(n parse.Node) (string, bool) {
	s, ok := n.(*parse.StringNode)
	if !ok {
		return "", false
	}
	return s.Text, true
}
