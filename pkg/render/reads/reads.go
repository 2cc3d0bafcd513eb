// Package reads finds what a template can read, before it is rewritten.
package reads

import (
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/render/values"
)

// Reads is what a template can read.
type Reads struct {
	status bool
	// statusFields are the fields of the upstream's status that are read; an empty path means all of it.
	statusFields [][]string
	params       map[string]bool
	variables    map[string]bool
	// inputs has the fields that are read, by input; an empty path means the whole input.
	inputs map[string][][]string
	// computedInput is true if a name given to `input` is not a constant.
	computedInput bool
	// shown and showsComputed are inputs and computedInput without reads that end in a digest.
	shown         map[string][][]string
	showsComputed bool
}

// ReadsStatus reports whether the template can read .status of the upstream, or the upstream as a whole. If in doubt,
// it returns true: a computed name, or `.` as an argument of a function, counts as reading everything.
func (r *Reads) ReadsStatus() bool { return r.status }

// StatusReads returns what the template can read of the upstream's status: the fields of .status.field and everything
// below them. whole means that it may read anything.
func (r *Reads) StatusReads() (paths [][]string, whole bool) {
	return r.statusFields, hasWhole(r.statusFields)
}

// hasWhole reports whether one of the paths is empty.
func hasWhole(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 })
}

// Params returns the sorted names in calls of `param`; computed names are not among them.
func (r *Reads) Params() []string { return values.SortedKeys(r.params) }

// Variables returns the sorted names in calls of `variable`.
func (r *Reads) Variables() []string { return values.SortedKeys(r.variables) }

// Inputs returns the sorted names in calls of `input`; computed names are not among them.
func (r *Reads) Inputs() []string {
	return slices.DeleteFunc(values.SortedKeys(r.inputs), func(name string) bool { return strings.Contains(name, ".") })
}

// Downstreams returns the sorted names in calls of `downstream`.
func (r *Reads) Downstreams() (names []string) {
	for _, key := range values.SortedKeys(r.inputs) {
		if name, ok := strings.CutPrefix(key, parsing.DownstreamKey("")); ok {
			names = append(names, name)
		}
	}
	return names
}

// InputReads returns what the template can read of an input: the fields of (input "NAME").field and everything below
// them, or for a list the fields of its objects that a range reads. whole means that it may read anything.
func (r *Reads) InputReads(name string) (paths [][]string, whole bool) {
	return r.inputs[name], r.computedInput || hasWhole(r.inputs[name])
}

// InputShown is InputReads without reads that only go into a digest ((input "NAME").data | toJson | sha256sum): such a
// value does not appear in the document.
func (r *Reads) InputShown(name string) (paths [][]string, whole bool) {
	return r.shown[name], r.showsComputed || hasWhole(r.shown[name])
}

// digests are functions whose result does not reveal their argument.
var digests = map[string]bool{"sha1sum": true, "sha256sum": true, "sha512sum": true}

// ComputesInput reports whether the template computes the name of an input when it executes, so that it may be any
// input.
func (r *Reads) ComputesInput() bool { return r.computedInput }

// analysis walks the parse trees before they are rewritten.
type analysis struct {
	Reads
	trees map[string]*parse.Tree
	lists []string
	// rooted are the templates whose dot can be the upstream; queue holds those that are not walked yet.
	rooted map[string]bool
	queue  []string
	// isUsed are the templates that may be printed; used holds those that are not walked yet for reads that do not depend
	// on dot.
	isUsed map[string]bool
	used   []string
	// digesting is true while walking the argument of a digest.
	digesting bool
}

// Of returns what a template can read. lists are the inputs that are lists: of these it returns what is read of their
// objects. It removes the trees of helpers that nothing prints.
func Of(trees map[string]*parse.Tree, isHelper map[string]bool, lists []string) Reads {
	a := &analysis{trees: trees, lists: lists, rooted: map[string]bool{}, isUsed: map[string]bool{}}
	a.params, a.variables = map[string]bool{}, map[string]bool{}
	a.inputs, a.shown = map[string][][]string{}, map[string][][]string{}
	a.root(parsing.Main)
	for name := range trees {
		if !isHelper[name] {
			a.use(name)
		}
	}
	for len(a.queue)+len(a.used) > 0 {
		if len(a.queue) > 0 {
			name := a.queue[0]
			a.queue = a.queue[1:]
			a.list(trees[name].Root, scope{dot: true, dollar: true})
			continue
		}
		name := a.used[0]
		a.used = a.used[1:]
		if !a.rooted[name] {
			a.list(trees[name].Root, scope{}) // for its parameters and inputs
		}
	}
	maps.DeleteFunc(trees, func(name string, _ *parse.Tree) bool { return !a.isUsed[name] })
	return a.Reads
}

// use records that a template may be printed.
func (a *analysis) use(name string) {
	if !a.isUsed[name] && a.trees[name] != nil {
		a.isUsed[name] = true
		a.used = append(a.used, name)
	}
}

func (a *analysis) root(name string) {
	if !a.rooted[name] && a.trees[name] != nil {
		a.rooted[name] = true
		a.queue = append(a.queue, name)
	}
}

// scope says whether `.` and `$` are the upstream, and which of `.` and the variables are an object of an input that is
// a list.
type scope struct {
	dot, dollar bool
	dotOf       string
	vars        map[string]string
}

// with returns the scope in which a variable is an object of an input, or something else if input is empty.
func (s scope) with(variable, input string) scope {
	vars := maps.Clone(s.vars)
	if vars == nil {
		vars = map[string]string{}
	}
	vars[variable] = input
	s.vars = vars
	return s
}

func (a *analysis) list(l *parse.ListNode, s scope) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			a.pipe(n.Pipe, s)
		case *parse.IfNode:
			a.branch(&n.BranchNode, s, s)
		case *parse.WithNode:
			a.branch(&n.BranchNode, s, scope{dollar: s.dollar, vars: s.vars})
		case *parse.RangeNode:
			a.rangeOver(n, s)
		case *parse.TemplateNode:
			a.templateCall(n.Name, n.Pipe, s)
		}
	}
}

// branch: inside with and range, dot is no longer the upstream. If it still is, the pipeline has been counted already.
func (a *analysis) branch(n *parse.BranchNode, s, inner scope) {
	a.pipe(n.Pipe, s)
	a.list(n.List, inner)
	a.list(n.ElseList, s)
}

// rangeOver: for an input that is a list, only the fields that the range reads of its objects are read.
func (a *analysis) rangeOver(n *parse.RangeNode, s scope) {
	name := a.listCall(n.Pipe)
	inner := scope{dollar: s.dollar, dotOf: name, vars: s.vars}
	if name == "" {
		a.branch(&n.BranchNode, s, inner)
		return
	}
	a.input(name, true, listed)
	for i, v := range n.Pipe.Decl {
		of := name
		if i == 0 && len(n.Pipe.Decl) == 2 {
			of = "" // the index
		}
		inner = inner.with(v.Ident[0], of)
	}
	a.list(n.List, inner)
	a.list(n.ElseList, s)
}

// listed is a field that every object of a list has. Reading it means that the list is read, but nothing of its
// objects.
var listed = []string{"metadata", "name"}

// listCall returns the list input of a pipeline that consists of input "NAME", in any number of brackets.
func (a *analysis) listCall(n parse.Node) string {
	p, ok := n.(*parse.PipeNode)
	if !ok || p == nil || p.IsAssign || len(p.Cmds) != 1 {
		return ""
	}
	cmd := p.Cmds[0]
	if len(cmd.Args) == 1 {
		return a.listCall(cmd.Args[0])
	}
	if name, known := objectCall(cmd); known && slices.Contains(a.lists, name) {
		return name
	}
	return ""
}

// listLength returns the list input whose length a command returns.
func (a *analysis) listLength(cmd *parse.CommandNode) string {
	if parsing.Function(cmd) != "len" || len(cmd.Args) != 2 {
		return ""
	}
	return a.listCall(cmd.Args[1])
}

// templateCall records a call of a template. Passing the upstream to a template reads nothing by itself; the reads in
// that template count.
func (a *analysis) templateCall(name string, data parse.Node, s scope) {
	a.use(name)
	if a.isRoot(data, s) {
		a.root(name)
		return
	}
	a.node(data, s)
}

// isRoot reports whether an expression is the upstream itself.
func (a *analysis) isRoot(n parse.Node, s scope) bool {
	switch n := n.(type) {
	case *parse.DotNode:
		return s.dot
	case *parse.VariableNode:
		return len(n.Ident) == 1 && n.Ident[0] == "$" && s.dollar
	case *parse.PipeNode:
		return n != nil && len(n.Decl) == 0 && len(n.Cmds) == 1 && len(n.Cmds[0].Args) == 1 && a.isRoot(n.Cmds[0].Args[0], s)
	}
	return false
}

func (a *analysis) pipe(p *parse.PipeNode, s scope) {
	if p == nil {
		return
	}
	last := -1
	for i, cmd := range p.Cmds {
		if digests[parsing.Function(cmd)] {
			last = i
		}
	}
	around := a.digesting
	for i, cmd := range p.Cmds {
		a.digesting = around || i <= last
		a.command(cmd, s)
	}
	a.digesting = around
}

func (a *analysis) command(cmd *parse.CommandNode, s scope) {
	args := cmd.Args
	name := parsing.Function(cmd)
	if len(args) == 1 && name == "input" {
		a.input("", false, nil) // the name comes through the pipe
	}
	if list := a.listLength(cmd); list != "" {
		a.input(list, true, listed)
		return
	}
	if len(args) > 1 {
		text, known := parsing.Constant(args[1])
		switch {
		case name == "include" && known && len(args) == 3:
			a.templateCall(text, args[2], s)
			return
		case name == "include" && known:
			a.use(text)
		case name == "include":
			for tree := range a.trees {
				a.use(tree)
				a.root(tree)
			}
		default:
			a.named(name, text, known)
		}
	}
	for _, arg := range args {
		a.node(arg, s)
	}
}

// named records what a function reads by a name, which may be computed.
func (a *analysis) named(called, name string, known bool) {
	switch {
	case called == "param" && known:
		a.params[name] = true
	case called == "variable" && known:
		a.variables[name] = true
	case called == "input":
		a.input(name, known, nil)
	case called == "downstream" && known:
		a.input(parsing.DownstreamKey(name), true, nil)
	}
}

// input records what is read of an input; no fields mean the whole input.
func (a *analysis) input(name string, known bool, fields []string) {
	if !known {
		a.computedInput = true
		a.showsComputed = a.showsComputed || !a.digesting
		return
	}
	a.inputs[name] = append(a.inputs[name], fields)
	if !a.digesting {
		a.shown[name] = append(a.shown[name], fields)
	}
}

// inputCall returns the name if a node is (input "NAME") or (downstream "NAME"), whose fields can be read.
func inputCall(n parse.Node) (name string, ok bool) {
	p, isPipe := n.(*parse.PipeNode)
	if !isPipe || len(p.Decl) > 0 || len(p.Cmds) != 1 {
		return "", false
	}
	return objectCall(p.Cmds[0])
}

// objectCall returns the input, or the key of the downstream, of a call with a constant name.
func objectCall(cmd *parse.CommandNode) (name string, ok bool) {
	called := parsing.Function(cmd)
	if called != "input" && called != "downstream" {
		return "", false
	}
	if name, ok = parsing.OnlyArgument(cmd); called == "downstream" {
		name = parsing.DownstreamKey(name)
	}
	return name, ok
}

func (a *analysis) node(n parse.Node, s scope) {
	switch n := n.(type) {
	case *parse.DotNode:
		a.readsStatus(s.dot, nil)
		a.ofObject(s.dotOf, nil)
	case *parse.FieldNode:
		a.readsStatus(s.dot && n.Ident[0] == "status", n.Ident[1:])
		a.ofObject(s.dotOf, n.Ident)
	case *parse.VariableNode:
		a.ofObject(s.vars[n.Ident[0]], n.Ident[1:])
		if n.Ident[0] == "$" && s.dollar {
			a.readsStatus(len(n.Ident) == 1 || n.Ident[1] == "status", n.Ident[min(2, len(n.Ident)):])
		}
	case *parse.ChainNode:
		if name, ok := inputCall(n.Node); ok {
			a.input(name, true, n.Field)
			return
		}
		a.node(n.Node, s)
	case *parse.PipeNode:
		a.pipe(n, s)
	}
}

// ofObject records fields that are read of an object of a list input; no fields mean all of it. It does nothing if
// input is empty.
func (a *analysis) ofObject(input string, fields []string) {
	if input != "" {
		a.input(input, true, fields)
	}
}

// readsStatus records fields that are read of the status, if are is true; no fields mean all of it.
func (a *analysis) readsStatus(isStatus bool, fields []string) {
	if isStatus {
		a.status = true
		a.statusFields = append(a.statusFields, fields)
	}
}
