package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Options are what Compile knows besides the config.
type Options struct {
	// Kinds tells schema and scope of the kinds that the config names. A kind that it does not know is compiled untyped.
	Kinds kinds.Source
	// Version is the API server's, for the CEL functions that it has; nil: those of this library.
	Version *version.Version
}

// Compile turns a loaded config into a Pipeline. Every error of rules, templates and expressions is reported at once,
// each with the line of the config file. A file in which the loader found errors may be compiled for its further errors;
// what comes of it must not be run. An error of the kind source other than kinds.ErrUnknown is returned as err.
func Compile(f *config.File, o Options) (p *Pipeline, problems config.Errors, err error) {
	c := &compiler{file: f, p: &Pipeline{Name: f.Operator.Metadata.Name, Config: &f.Operator}}
	if err := c.lookUpKinds(o.Kinds); err != nil {
		return nil, nil, err
	}
	c.names()
	c.watched()
	c.told()
	if c.env, err = c.newEnv(o.Version); err != nil {
		return nil, nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	c.parameters()
	c.inputs()
	c.validation()
	for i := range f.Operator.Downstreams {
		c.downstream(i)
	}
	c.before()
	c.statusFields()
	c.views()
	if len(c.errs) > 0 {
		return nil, c.errs, nil
	}
	return c.p, nil, nil
}

// compiler carries one compilation from step to step.
type compiler struct {
	file *config.File
	p    *Pipeline
	env  *rules.Env
	errs config.Errors
}

// fail records an error at a path of the config file.
func (c *compiler) fail(path, mend, format string, args ...any) {
	c.errs = append(c.errs, c.file.Errorf(path, mend, format, args...))
}

func (c *compiler) lookUpKinds(source kinds.Source) error {
	op := &c.file.Operator
	up, err := lookUp(source, op.Watch.APIVersion, op.Watch.Kind)
	if err != nil {
		return err
	}
	c.p.Upstream = *up
	for i := range op.Downstreams {
		cfg := &op.Downstreams[i]
		kind, err := lookUp(source, cfg.APIVersion, cfg.Kind)
		if err != nil {
			return err
		}
		c.p.Downstreams = append(c.p.Downstreams, &Downstream{Index: i, Name: cfg.Name, Config: cfg, Kind: *kind})
	}
	for i := range op.Inputs {
		cfg := &op.Inputs[i]
		kind, err := lookUp(source, cfg.APIVersion, cfg.Kind)
		if err != nil {
			return err
		}
		c.p.Inputs = append(c.p.Inputs, &InputSource{Index: i, Name: cfg.Name, Config: cfg, Kind: *kind})
	}
	if c.p.StatusEnabled() {
		c.p.Storable = status.Probe(up.Schema)
	}
	return c.lookUpHook(source)
}

// watched holds what is watched to the scope of its kind, where that is known.
func (c *compiler) watched() {
	up := c.p.Upstream
	if up.GVR.Empty() || up.Namespaced {
		return
	}
	refuse := func(key string) {
		c.fail(key, "leave it out; labelSelector chooses among objects of the cluster", "a cluster-scoped %s is in no namespace", up.GVK.Kind)
	}
	if len(c.file.Watch.Namespaces) > 0 {
		refuse("watch.namespaces")
	}
	if c.file.Watch.NamespaceSelector != nil {
		refuse("watch.namespaceSelector")
	}
}

// told warns of a kind that has no place for the status which the config writes, or one that is everybody's.
func (c *compiler) told() {
	up := c.p.Upstream
	if up.GVR.Empty() || up.HasStatus || !c.p.StatusEnabled() {
		return
	}
	problem, mend := fmt.Sprintf("%s has no status subresource: whoever may edit one may write its status", up.GVK.Kind),
		"add the subresource to the CustomResourceDefinition (subresources: {status: {}})"
	if kinds.IsBuiltin(up.GVK.GroupKind()) {
		problem, mend = fmt.Sprintf("%s is a kind of Kubernetes' own and has no status: nothing can be told there", up.GVK.Kind), "write status.enabled: false"
	}
	c.p.Warnings = append(c.p.Warnings, *c.file.Errorf("status", mend, "%s", problem))
}

// lookUp asks the source; an unknown kind is taken for a namespaced one without a schema.
func lookUp(source kinds.Source, apiVersion, kind string) (*kinds.Kind, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	k, err := source.Kind(gvk)
	if errors.Is(err, kinds.ErrUnknown) {
		return &kinds.Kind{GVK: gvk, Namespaced: true}, nil
	}
	return k, err
}

func (c *compiler) names() {
	conv := c.file.Operator.Conventions
	c.p.algorithm = drift.Algorithm(conv.Hash.Algorithm)
	c.p.hashKey = drift.Key{Annotation: conv.Hash.Annotation, Label: conv.Hash.Label}
	c.p.previous = previousOf(&conv)
	if path := c.file.Operator.Status.Downstreams; path != "" {
		c.p.downstreamsPath, _ = fieldpath.Parse(path) // the loader reports what does not parse
	}
}

func (c *compiler) newEnv(v *version.Version) (*rules.Env, error) {
	schemas := make(map[string]*spec.Schema, len(c.p.Downstreams))
	for _, d := range c.p.Downstreams {
		schemas[d.Name] = d.Kind.Schema
	}
	apart := map[string]*spec.Schema{}
	if c.p.Hook != nil {
		apart[HookName] = c.p.Hook.Object.Kind.Schema
	}
	return rules.NewEnv(rules.EnvOptions{Version: v, Self: c.p.Upstream.Schema, Downstreams: schemas, Apart: apart})
}

func (c *compiler) validation() {
	cfg := c.file.Operator.Validate
	if len(cfg) == 0 {
		return
	}
	list := make([]rules.Validation, len(cfg))
	for i, r := range cfg {
		list[i] = rules.Validation{Rule: r.Rule, Message: r.Message, MessageExpression: r.MessageExpression, FieldPath: r.FieldPath, Reason: rules.Reason(r.Reason)}
	}
	validator, errs := rules.CompileValidation(c.env, list)
	for _, e := range errs {
		c.expressionError(fmt.Sprintf("validate[%d].%s", e.Index, e.Field), e.Err)
	}
	c.p.validator = validator
	if validator != nil {
		for i := range cfg {
			reads := func(part rules.Part) func(string) ([][]string, bool) {
				return func(variable string) ([][]string, bool) { return validator.ReadsOf(i, part, variable) }
			}
			c.programReads(fmt.Sprintf("validate[%d].rule", i), reads(rules.PartRule))
			c.programReads(fmt.Sprintf("validate[%d].messageExpression", i), reads(rules.PartMessageExpression))
		}
		c.p.validatorInputs = c.inputsOf(validator.Reads)
		c.p.readsStatus = c.p.readsStatus || readsField(validator.Reads, "status")
	}
}

func (c *compiler) downstream(i int) {
	d, cfg := c.p.Downstreams[i], c.p.Downstreams[i].Config
	path := fmt.Sprintf("downstreams[%d]", i)
	c.when(d, path)
	c.template(d)
	c.scope(d, path)
	c.conventions(d)
	d.ready = c.readyRules(d, path+".ready.rules", cfg.Ready.Rules, "waiting for")
	d.failed = c.readyRules(d, path+".ready.failed", cfg.Ready.Failed, "failed, since")
	d.observed = d.Kind.Schema != nil && d.Kind.HasStatus && status.Probe(d.Kind.Schema).Stores(observedGeneration)
	if cfg.Ready.MessageFrom != "" {
		d.messageFrom = c.program(path+".ready.messageFrom", func() (*rules.Program, error) {
			return c.env.String(cfg.Ready.MessageFrom, rules.Downstream, d.Name)
		})
	}
	d.initial = parsePaths(cfg.Drift.InitialFields)
	d.exclusive = parsePaths(cfg.Drift.ExclusiveFields)
}

// conventions compiles the labels and annotations that every document gets.
func (c *compiler) conventions(d *Downstream) {
	d.labels = c.texts("conventions.labels", c.file.Operator.Conventions.Labels)
	d.annotations = c.texts("conventions.annotations", c.file.Operator.Conventions.Annotations)
	for _, e := range slices.Concat(d.labels, d.annotations) {
		d.inputs.add(e.inputs...)
	}
	d.Selector = labels.Set{}
	for _, e := range d.labels {
		if value, ok := e.text.Constant(); ok {
			d.Selector[e.key] = value
		}
	}
}

// parsePaths parses paths, without those that the loader has reported.
func parsePaths(texts []string) []fieldpath.Path {
	var paths []fieldpath.Path
	for _, text := range texts {
		if path, err := fieldpath.Parse(text); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func (c *compiler) when(d *Downstream, path string) {
	if d.Config.When == "" || d.Config.When == "true" {
		return
	}
	d.when = c.program(path+".when", func() (*rules.Program, error) {
		return c.env.Bool(d.Config.When, rules.Upstream, "")
	})
	d.whenInputs = c.programInputs(d.when)
	c.p.readsStatus = c.p.readsStatus || (d.when != nil && readsField(d.when.Reads, "status"))
}

func (c *compiler) template(d *Downstream) {
	file, first := c.file.TemplatePos(d.Index)
	c.compileTemplate(d, fmt.Sprintf("downstreams[%d].template", d.Index), file, first)
	c.p.readsStatus = c.p.readsStatus || (d.template != nil && d.template.ReadsStatus())
}

// compileTemplate compiles the template that stands at a path, its first line at that one of a file.
func (c *compiler) compileTemplate(d *Downstream, path, file string, first int) {
	if d.Config.Template == "" {
		return // the loader has reported that
	}
	t, err := render.Compile(d.Config.Template, c.renderOptions(d.Name))
	d.template = t
	for _, e := range templateErrors(err) {
		c.errs = append(c.errs, &config.Error{File: file, Line: first + e.Line - 1, Path: path, Problem: e.Problem, Mend: e.Mend})
	}
	if t != nil {
		d.inputs.add(c.templateInputs(path, t, holeOf(t, file, first))...)
		c.fields(d, path, file, first)
	}
	c.warnOfTexts(d, path, file, first)
}

// templateErrors unpacks what render.Compile returns: one error or several.
func templateErrors(err error) []*render.Error {
	var several render.Errors
	var one *render.Error
	switch {
	case errors.As(err, &several):
		return several
	case errors.As(err, &one):
		return []*render.Error{one}
	case err != nil:
		return []*render.Error{{Line: 1, Problem: err.Error()}}
	}
	return nil
}

func (c *compiler) renderOptions(name string) render.Options {
	o := render.Options{Name: name}
	if d := c.file.Operator.Delimiters; len(d) == 2 {
		o.Left, o.Right = d[0], d[1]
	}
	return o
}

func (c *compiler) texts(path string, entries map[string]string) []textEntry {
	var list []textEntry
	for key, text := range entries {
		at := fmt.Sprintf("%s['%s']", path, key)
		t, err := render.CompileText(text, c.renderOptions(key))
		for _, e := range templateErrors(err) {
			c.failOnce(at, e.Mend, "%s", e.Problem)
		}
		if t != nil {
			list = append(list, textEntry{key: key, text: t, inputs: c.templateInputs(at, t, nil)})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].key < list[j].key })
	return list
}

// failOnce is fail for what every downstream would report again.
func (c *compiler) failOnce(path, mend, format string, args ...any) {
	c.addOnce(c.file.Errorf(path, mend, format, args...))
}

func (c *compiler) addOnce(e *config.Error) {
	for _, have := range c.errs {
		if *have == *e {
			return
		}
	}
	c.errs = append(c.errs, e)
}

// scope holds the config to what owner references can do, once the scope of both kinds is known: what they cannot
// clean up needs the owner annotation and the finalizer.
func (c *compiler) scope(d *Downstream, path string) {
	up, conv := c.p.Upstream, c.file.Operator.Conventions
	if c.p.Upstream.GVR.Empty() || d.Kind.GVR.Empty() {
		return
	}
	switch {
	case up.Namespaced && !d.Kind.Namespaced:
		if conv.Owner.Annotation == "" {
			c.failOnce("conventions.owner", "add owner.annotation: a key of your domain", "a namespaced %s cannot own a cluster-scoped %s by reference", up.GVK.Kind, d.Kind.GVK.Kind)
		}
		if conv.Finalizer == "" {
			c.failOnce("conventions", "add finalizer: a name of your domain", "nothing but a finalizer can clean up a cluster-scoped %s after a namespaced %s", d.Kind.GVK.Kind, up.GVK.Kind)
		}
	case !up.Namespaced && d.Kind.Namespaced && d.Config.TargetNamespaces.From == config.NamespacesSame && up.GVK.GroupKind() != (schema.GroupKind{Kind: "Namespace"}):
		c.fail(path+".targetNamespaces", "say from: List with names, or from: Any",
			"a cluster-scoped %s has no namespace that a %s could share", up.GVK.Kind, d.Kind.GVK.Kind)
	}
}

func (c *compiler) readyRules(d *Downstream, path string, list []config.ReadyRule, lead string) []readyRule {
	var out []readyRule
	for i, r := range list {
		at := fmt.Sprintf("%s[%d].rule", path, i)
		program := c.program(at, func() (*rules.Program, error) {
			return c.env.Bool(r.Rule, rules.Downstream, d.Name)
		})
		message := r.Message
		if message == "" {
			message = lead + ": " + strings.Join(strings.Fields(r.Rule), " ")
		}
		out = append(out, readyRule{path: at, program: program, message: message})
	}
	return out
}

func (c *compiler) statusFields() {
	if !c.p.StatusEnabled() {
		return
	}
	for i, f := range c.file.Operator.Status.Fields {
		program := c.program(fmt.Sprintf("status.fields[%d].value", i), func() (*rules.Program, error) {
			return c.env.Any(f.Value, rules.Status, "")
		})
		if path, err := fieldpath.Parse(f.Path); err == nil {
			c.p.fields = append(c.p.fields, statusField{path: path, program: program})
		}
	}
}

// program compiles one expression and files its error under path.
func (c *compiler) program(path string, compile func() (*rules.Program, error)) *rules.Program {
	program, err := compile()
	if err != nil {
		c.expressionError(path, err)
		return nil
	}
	c.programReads(path, program.Reads)
	return program
}

func (c *compiler) expressionError(path string, err error) {
	var ce *rules.CompileError
	var ve *rules.ValueError
	switch {
	case errors.As(err, &ve):
		c.fail(path, ve.Mend, "%s", ve.Problem)
		return
	case !errors.As(err, &ce):
		c.fail(path, "", "%v", err)
		return
	}
	e := c.file.Errorf(path, ce.Mend, "%s", ce.Problem)
	if file, line := c.file.TextPos(path); ce.Line > 1 && line > 0 {
		e.File, e.Line = file, line+ce.Line-1
	}
	c.errs = append(c.errs, e)
}

// observedGeneration is where a kind's own controller says which generation it has seen.
const observedGeneration = ".status.observedGeneration"

// views tells the caches what to keep of live downstreams: what ready and status expressions read, and no more.
func (c *compiler) views() {
	conv := c.file.Operator.Conventions
	for _, d := range c.p.Downstreams {
		v := drift.View{Manager: conv.FieldManager, Hash: c.p.hashKey, OwnerAnnotation: conv.Owner.Annotation, Initial: d.initial, Exclusive: d.exclusive, Previous: c.p.previous}
		if adopt := d.Config.Adopt; adopt != nil {
			v.Adopt = adopt.FieldManagers
		}
		for _, r := range append(append([]readyRule{}, d.ready...), d.failed...) {
			keep(&v, r.program, "downstream", "")
		}
		keep(&v, d.messageFrom, "downstream", "")
		if d.observed {
			v.Keep = append(v.Keep, []string{"status", "observedGeneration"})
		}
		for _, f := range c.p.fields {
			keep(&v, f.program, "downstreams", d.Name)
		}
		d.View = v
	}
}

// keep adds what a program reads below variable (and, of the map downstreams, below name) to a view.
func keep(v *drift.View, program *rules.Program, variable, name string) {
	if program == nil {
		return
	}
	paths, whole := program.Reads(variable)
	if whole {
		v.KeepWhole = true
		return
	}
	for _, path := range paths {
		if name != "" {
			if len(path) == 0 || path[0] != name {
				continue
			}
			path = path[1:]
		}
		if len(path) == 0 {
			v.KeepWhole = true
			return
		}
		v.Keep = append(v.Keep, path)
	}
}

// readsField tells whether reads may reach a top-level field of self.
func readsField(reads func(string) ([][]string, bool), name string) bool {
	paths, whole := reads("self")
	for _, path := range paths {
		whole = whole || len(path) == 0 || path[0] == name
	}
	return whole
}
