package render

import "text/template/parse"

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
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos,
		Pipe: discardOutput(pipeNode(pos, commandNode(pos, identNode(name, pos))))}
}
