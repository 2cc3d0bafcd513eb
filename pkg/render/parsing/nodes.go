package parsing

import "text/template/parse"

// Function returns the name of the function that a command calls, or "".
func Function(cmd *parse.CommandNode) string {
	if id, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
		return id.Ident
	}
	return ""
}

// Constant returns the value of a string constant.
func Constant(n parse.Node) (text string, ok bool) {
	s, ok := n.(*parse.StringNode)
	if !ok {
		return "", false
	}
	return s.Text, true
}

// OnlyArgument returns the argument of a call that has a string constant and nothing else.
func OnlyArgument(cmd *parse.CommandNode) (text string, ok bool) {
	if len(cmd.Args) != 2 {
		return "", false
	}
	return Constant(cmd.Args[1])
}
