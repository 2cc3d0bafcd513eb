package pipeline

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	template "text/template/parse"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/render/functions"
)

// shape is what is known of a value before it is there. The zero shape is one of which nothing is known.
type shape struct {
	schema *spec.Schema
	scalar bool   // a key of a range: text, a number or a boolean
	typed  string // a constant, or what a function gives: the type as schemas call it
	// constant says that only the config's author decides it.
	constant bool
	// either, where it is set, are the shapes of which the value has one: that of a field, and its default.
	either []shape
	// at are the fields that lead to it from the upstream, lists taking no step; nil if it is not a part of that.
	at []string
}

// closed tells that the value can be neither map nor list.
func (s shape) closed() bool {
	for _, one := range s.either {
		if !one.closed() {
			return false
		}
	}
	return s.scalar || s.typed != "" || len(s.either) > 0 || s.schema != nil && isScalar(s.schema)
}

// below is the shape of a field of a field and so on.
func (s shape) below(names []string) shape {
	for _, name := range names {
		next := shape{constant: s.constant}
		if s.schema != nil {
			if property, declared := s.schema.Properties[name]; declared {
				next.schema = plainSchema(&property)
			} else if s.schema.AdditionalProperties != nil {
				next.schema = plainSchema(s.schema.AdditionalProperties.Schema)
			}
		}
		if s.at != nil {
			next.at = append(slices.Clip(s.at), name)
		}
		s = next
	}
	return s
}

// item is the shape of what a range over the value gives.
func (s shape) item() shape {
	of := shape{at: s.at, constant: s.constant}
	switch {
	case s.schema == nil || len(s.schema.Properties) > 0:
	case s.schema.Items != nil:
		of.schema = plainSchema(s.schema.Items.Schema)
	case s.schema.AdditionalProperties != nil:
		of.schema = plainSchema(s.schema.AdditionalProperties.Schema)
	}
	return of
}

func isScalar(s *spec.Schema) bool {
	either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string")
	return either || len(s.Type) == 1 && (s.Type[0] == "string" || s.Type[0] == "integer" || s.Type[0] == "number" || s.Type[0] == "boolean")
}

// preservesUnknown marks a schema whose objects may have fields that it does not declare.
const preservesUnknown = "x-kubernetes-preserve-unknown-fields"

// upstreamShape is an upstream's: what every kind has, and what its schema declares besides.
func upstreamShape(s *spec.Schema) shape {
	root := spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{}}}
	if s != nil {
		maps.Copy(root.Properties, s.Properties)
		root.AdditionalProperties, root.Extensions = s.AdditionalProperties, s.Extensions
	} else {
		root.AddExtension(preservesUnknown, true)
	}
	text, texts := *spec.StringProperty(), *spec.MapProperty(spec.StringProperty())
	root.Properties["apiVersion"], root.Properties["kind"] = text, text
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{Properties: map[string]spec.Schema{
		"name": text, "namespace": text, "uid": text, "generateName": text, "resourceVersion": text, "creationTimestamp": text,
		"generation": *spec.Int64Property(), "labels": texts, "annotations": texts, "selfLink": text,
		"deletionTimestamp": text, "deletionGracePeriodSeconds": *spec.Int64Property(),
		"finalizers": *spec.ArrayProperty(&text), "ownerReferences": *spec.ArrayProperty(&spec.Schema{}), "managedFields": *spec.ArrayProperty(&spec.Schema{}),
	}}}
	root.Properties["metadata"] = metadata
	return shape{schema: &root, at: []string{}}
}

// roots are the shapes of what a template begins with.
type roots struct {
	upstream, item shape
	variables      map[string]shape
	// objects are those of inputs and of other downstreams, by how a template names them: input "settings".
	objects map[string]shape
}

// rootsOf are those of a downstream.
func (p *Pipeline) rootsOf(d *Downstream) roots {
	in := roots{upstream: upstreamShape(p.Upstream.Schema), variables: map[string]shape{}, objects: map[string]shape{}}
	for _, s := range p.Inputs {
		in.objects[objectName("input", s.Name)] = objectShape(s.Kind.Schema, s.Config.List != nil, false)
	}
	for _, other := range p.Downstreams {
		in.objects[objectName("downstream", other.Name)] = objectShape(other.Kind.Schema, false, other.Several())
	}
	for _, v := range p.variables {
		if v.program != nil {
			in.variables[v.name] = shape{schema: v.program.Schema()}
		}
	}
	if d.items != nil {
		in.item = shape{schema: d.items.Schema()}
	}
	return in
}

func objectName(function, name string) string { return function + " " + strconv.Quote(name) }

// objectShape is the shape of an object that is not the upstream: alone, in a list, or in a map by names.
func objectShape(s *spec.Schema, inList, byName bool) shape {
	if s == nil {
		return shape{}
	}
	object := upstreamShape(s).schema
	switch {
	case inList:
		object = spec.ArrayProperty(object)
	case byName:
		object = spec.MapProperty(object)
	}
	return shape{schema: object}
}

// walkShapes walks a template. Of a text that does not parse nothing is found.
func walkShapes(text string, o render.Options, in roots) *shapeWalk {
	w := &shapeWalk{printed: map[template.Pos]shape{}, printedReads: map[template.Pos][]fieldRead{}, printedVariables: map[template.Pos][]string{},
		undeclared: map[template.Pos]undeclaredField{}, assigned: map[string]bool{}, each: in.item,
		variables: in.variables, objects: in.objects, calls: map[call]bool{}}
	var err error
	if w.trees, err = render.Parse(text, o); err != nil {
		return w
	}
	// What a variable holds that is assigned to anew depends on the way there, so a first walk collects their names.
	w.call("", in.upstream)
	clear(w.printed)
	clear(w.printedReads)
	clear(w.printedVariables)
	clear(w.undeclared)
	clear(w.calls)
	w.reads, w.variablesRead = nil, nil
	w.call("", in.upstream)
	return w
}

// call is a define block with the schema, and the place, of what it is handed as its dot.
type call struct {
	name     string
	schema   *spec.Schema
	at       string
	optional bool
}

// maxCalls bounds how many different calls are followed; of the dot in others nothing is known.
const maxCalls = 200

// call walks a tree with the dot that it is handed.
func (w *shapeWalk) call(name string, dot shape) {
	if dot.schema == nil || len(w.calls) > maxCalls {
		w.read(dot, true)
		dot = shape{}
	}
	made := call{name, dot.schema, strings.Join(dot.at, "."), w.optional}
	if tree := w.trees[name]; tree != nil && !w.calls[made] {
		w.calls[made] = true
		before := w.inDefine
		w.inDefine = name != ""
		w.list(tree.Root, dot, map[string]shape{"$": dot})
		w.inDefine = before
	}
}

// include follows a call of include. It may be of any tree and with any dot if its arguments do not tell.
func (w *shapeWalk) include(args []template.Node, dot shape, vars map[string]shape) {
	if len(args) == 2 {
		if name, ok := args[0].(*template.StringNode); ok {
			w.call(name.Text, w.node(args[1], dot, vars))
			return
		}
	}
	for _, arg := range args {
		w.read(w.node(arg, dot, vars), true)
	}
	for name := range w.trees {
		if name != "" {
			w.call(name, shape{})
		}
	}
}

type shapeWalk struct {
	// reads are what is read of the upstream, and variablesRead the config's variables that are.
	reads         []fieldRead
	variablesRead []string
	// printed are the shapes of what actions print, by place.
	printed map[template.Pos]shape
	// printedReads and printedVariables are what is read for that.
	printedReads     map[template.Pos][]fieldRead
	printedVariables map[template.Pos][]string
	// undeclared are the fields that the schema does not have, by place.
	undeclared map[template.Pos]undeclaredField
	inDefine   bool // the walk is in a define block, which may be called for several kinds
	optional   bool // the template may work without what is read
	assigned   map[string]bool
	trees      map[string]*template.Tree
	calls      map[call]bool    // that were walked
	each       shape            // of item
	variables  map[string]shape // by name
	objects    map[string]shape // see roots
}

// list walks one block. vars holds its variables and, since the block may declare more, is a copy of its own.
func (w *shapeWalk) list(l *template.ListNode, dot shape, vars map[string]shape) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *template.ActionNode:
			reads, variables := len(w.reads), len(w.variablesRead)
			if s := w.declare(withoutLayout(n.Pipe), dot, vars, nil); len(n.Pipe.Decl) == 0 {
				if other, again := w.printed[n.Pos]; again {
					s = shape{either: []shape{other, s}, constant: other.constant && s.constant}
				}
				w.read(s, true)
				w.printed[n.Pos] = s
				w.printedReads[n.Pos] = append(w.printedReads[n.Pos], w.reads[reads:]...)
				w.printedVariables[n.Pos] = append(w.printedVariables[n.Pos], w.variablesRead[variables:]...)
			}
		case *template.TemplateNode:
			handed := shape{}
			if n.Pipe != nil {
				handed = w.declare(n.Pipe, dot, vars, nil)
			}
			w.call(n.Name, handed)
		case *template.IfNode:
			w.branch(&n.BranchNode, dot, vars, func(shape) shape { return dot }, nil)
		case *template.WithNode:
			w.branch(&n.BranchNode, dot, vars, func(s shape) shape { return s }, nil)
		case *template.RangeNode:
			w.branch(&n.BranchNode, dot, vars, shape.item, shape.item)
		}
	}
}

// withoutLayout is a pipeline without the functions at its end that print a value as YAML or JSON: the hole gives the value.
func withoutLayout(p *template.PipeNode) *template.PipeNode {
	if len(p.Decl) > 0 {
		return p
	}
	layout, prints := map[string]bool{"indent": true, "nindent": true, "trim": true}, map[string]bool{"toYaml": true, "toJson": true, "mustToJson": true}
	for last := len(p.Cmds) - 1; last >= 0; last-- {
		cmd := p.Cmds[last]
		name, _ := cmd.Args[0].(*template.IdentifierNode)
		switch {
		case name == nil || !layout[name.Ident] && !prints[name.Ident]:
			return p
		case prints[name.Ident] && last > 0:
			whole := *p
			whole.Cmds = p.Cmds[:last]
			return &whole
		case prints[name.Ident] && len(cmd.Args) == 2:
			whole, value := *p, *cmd
			value.Args = cmd.Args[1:]
			whole.Cmds = []*template.CommandNode{&value}
			return &whole
		}
	}
	return p
}

// branch walks both blocks of an if, with or range. inner gives the dot of the first one, each what a range's variables
// hold of its value.
func (w *shapeWalk) branch(n *template.BranchNode, dot shape, vars map[string]shape, inner, each func(shape) shape) {
	vars = maps.Clone(vars)
	optional, known := w.optional, len(w.undeclared)
	w.optional = true
	value := w.declare(n.Pipe, dot, vars, each)
	w.read(value, false)
	w.optional = optional || w.inDefine || len(w.undeclared) > known // its blocks may be for another kind
	defer func() { w.optional = optional }()
	w.list(n.List, inner(value), maps.Clone(vars))
	w.list(n.ElseList, dot, maps.Clone(vars))
}

// declare evaluates a pipeline and gives its variables their shapes: the value's, or of a range an item's and, of two
// variables, the first the key's.
func (w *shapeWalk) declare(p *template.PipeNode, dot shape, vars map[string]shape, each func(shape) shape) shape {
	value := w.pipe(p, dot, vars)
	for i, v := range p.Decl {
		name := v.Ident[0]
		if p.IsAssign || w.assigned[name] { // where it leads to is not followed
			w.read(value, true)
		}
		if p.IsAssign {
			w.assigned[name] = true
			continue
		}
		switch {
		case each == nil:
			vars[name] = value
		case i == 0 && len(p.Decl) == 2:
			vars[name] = shape{scalar: true}
		default:
			vars[name] = each(value)
		}
	}
	return value
}

// pipe is the shape of a pipeline's value. Of the functions only those are followed that give one of their arguments.
func (w *shapeWalk) pipe(p *template.PipeNode, dot shape, vars map[string]shape) shape {
	var value shape
	optional := w.optional
	w.optional = optional || slices.ContainsFunc(p.Cmds, takesMissing)
	defer func() { w.optional = optional }()
	for i, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			w.node(arg, dot, vars) // for what is wrong with it
		}
		w.indexed(cmd, dot, vars)
		name, isCall := cmd.Args[0].(*template.IdentifierNode)
		if isCall && name.Ident != "default" && name.Ident != "omitempty" {
			w.readArguments(cmd.Args[1:], name.Ident, value, dot, vars)
		}
		if isCall && name.Ident == "printf" {
			w.printf(cmd, i > 0, value, dot, vars)
		}
		if !isCall {
			value = w.node(cmd.Args[0], dot, vars)
			continue
		}
		value = w.function(cmd, name.Ident, i > 0, value, dot, vars)
	}
	return value
}

// indexed checks the fields that a call of index names by constants.
func (w *shapeWalk) indexed(cmd *template.CommandNode, dot shape, vars map[string]shape) {
	name, isCall := cmd.Args[0].(*template.IdentifierNode)
	if !isCall || name.Ident != "index" || len(cmd.Args) < 3 {
		return
	}
	of, root := w.node(cmd.Args[1], dot, vars), strings.TrimSuffix(cmd.Args[1].String(), ".")
	for _, arg := range cmd.Args[2:] {
		key, ok := arg.(*template.StringNode)
		if !ok {
			return
		}
		of = w.field(cmd.Pos, of, root, []string{key.Text})
		root += "." + key.Text
	}
}

// function is the shape of what a function returns; value is piped in if isPiped.
func (w *shapeWalk) function(cmd *template.CommandNode, name string, isPiped bool, value shape, dot shape, vars map[string]shape) shape {
	switch {
	case name == nameOfItem && len(cmd.Args) == 1:
		return w.each
	case name == "variable" && len(cmd.Args) == 2:
		return w.variable(cmd.Args[1])
	case name == "include":
		w.include(cmd.Args[1:], dot, vars)
		return shape{typed: functions.ResultType(name)}
	case name == "omitempty" && isPiped:
		return value
	case name == "default" && len(cmd.Args) > 1:
		return w.either(isPiped, value, cmd.Args[1:], dot, vars)
	}
	constant := w.isConstant(cmd, isPiped, value, dot, vars)
	value = w.result(cmd, name)
	value.constant = constant
	return value
}

// either is the shape of one of several arguments, of which piped is the last one if it is piped in.
func (w *shapeWalk) either(isPiped bool, piped shape, args []template.Node, dot shape, vars map[string]shape) shape {
	var all []shape
	if isPiped {
		all = append(all, piped)
	}
	for _, arg := range args {
		all = append(all, w.node(arg, dot, vars))
	}
	return shape{either: all, constant: !slices.ContainsFunc(all, func(s shape) bool { return !s.constant })}
}

// variable is the shape of the variable that a node names.
func (w *shapeWalk) variable(n template.Node) shape {
	if name, ok := n.(*template.StringNode); ok {
		w.variablesRead = append(w.variablesRead, name.Text)
		return w.variables[name.Text]
	}
	return shape{}
}

// result is the shape of what any other call gives.
func (w *shapeWalk) result(cmd *template.CommandNode, function string) shape {
	if name := w.objectOf(cmd); name != "" {
		return w.objects[name]
	}
	return shape{typed: functions.ResultType(function)}
}

// objectOf is how a call names an input or a downstream whose shape is known; empty for others.
func (w *shapeWalk) objectOf(cmd *template.CommandNode) string {
	function, isCall := cmd.Args[0].(*template.IdentifierNode)
	if !isCall || len(cmd.Args) != 2 {
		return ""
	}
	if name, ok := cmd.Args[1].(*template.StringNode); ok {
		if key := objectName(function.Ident, name.Text); w.objects[key].schema != nil {
			return key
		}
	}
	return ""
}

func (w *shapeWalk) node(n template.Node, dot shape, vars map[string]shape) shape {
	switch n := n.(type) {
	case *template.DotNode:
		return dot
	case *template.FieldNode:
		return w.field(n.Pos, dot, "", n.Ident)
	case *template.VariableNode:
		if w.assigned[n.Ident[0]] {
			return shape{}
		}
		return w.field(n.Pos, vars[n.Ident[0]], "", n.Ident[1:])
	case *template.ChainNode:
		if name, ok := n.Node.(*template.IdentifierNode); ok && name.Ident == nameOfItem {
			return w.field(n.Pos, w.each, nameOfItem, n.Field)
		}
		root := ""
		if p, ok := n.Node.(*template.PipeNode); ok && len(p.Cmds) == 1 && w.objectOf(p.Cmds[0]) != "" {
			root = "(" + w.objectOf(p.Cmds[0]) + ")"
		}
		return w.field(n.Pos, w.node(n.Node, dot, vars), root, n.Field)
	case *template.PipeNode:
		return w.pipe(n, dot, vars)
	case *template.StringNode:
		return shape{typed: "string", constant: true}
	case *template.BoolNode:
		return shape{typed: "boolean", constant: true}
	case *template.NumberNode:
		if n.IsInt {
			return shape{typed: "integer", constant: true}
		}
		return shape{typed: "number", constant: true}
	}
	return shape{}
}

// nameOfItem is what templates call the item of forEach.
const nameOfItem = "item"

// field is the shape of what a path leads to. root is what the path begins with; empty for the dot and for variables.
func (w *shapeWalk) field(pos template.Pos, s shape, root string, names []string) shape {
	if len(names) > 0 && len(s.either) > 0 {
		w.read(s, true)
	}
	for i, name := range names {
		if fix := s.lacks(name); fix != "" {
			w.lack(pos, "the schema has no "+root+"."+strings.Join(names[:i+1], ".")+": "+fix)
		}
		s = s.below(names[i : i+1])
	}
	return s
}
