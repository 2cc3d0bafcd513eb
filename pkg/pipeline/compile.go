package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Options are what Compile knows besides the config.
type Options struct {
	// Kinds tells schema and scope of the kinds that the config names. A kind that it does not know is compiled untyped.
	Kinds kinds.Source
	// Version is the API server's, for the CEL functions that it has; nil: those of this library.
	Version *version.Version
	// Live is true if the pipeline runs against the API server that Kinds asks: what needs a kind that is not served, or that
	// the API server could not be asked about, waits. The upstream's kind must be known all the same.
	Live bool
	// Deletions is true for a config that was cut down to what deletions depend on (load.File.ForDeletion): the pipeline
	// decides about upstreams that are being deleted, and about no others.
	Deletions bool
}

// Compile turns a loaded config into a Pipeline. Every error of rules, templates and expressions is reported at once,
// each with the line of the config file. A file in which the loader found errors may be compiled for its further errors;
// describe comes of it must not be run. An error of the kind source other than kinds.ErrUnknown is returned as err.
func Compile(f *load.File, o Options) (p *Pipeline, problems config.Errors, err error) {
	c := &compiler{file: f, p: &Pipeline{Settings: &operator.Settings{Name: f.Operator.Metadata.Name, Config: &f.Operator, OnlyDeletes: o.Deletions},
		UpstreamReads: map[int][]check.Read{}}}
	if err := errors.Join(c.requires(o), c.lookUpKinds(o), c.describes(o)); err != nil {
		return nil, nil, err
	}
	for _, misread := range f.MisreadKeys {
		c.warn(*misread)
	}
	c.names()
	c.watched()
	c.hasReported()
	if c.env, err = c.newEnv(o.Version); err != nil {
		return nil, nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	c.parameters()
	c.variables()
	c.helpers()
	c.inputs()
	c.matchConditions()
	c.validation()
	for i := range f.Operator.Downstreams {
		c.downstream(i)
	}
	c.siblings()
	c.conventionReads()
	c.before()
	c.statusFields()
	c.secrets()
	c.views()
	c.feedback()
	if len(c.errs) > 0 {
		return nil, c.errs, nil
	}
	return c.p, nil, nil
}

// compiler carries one compilation from step to step.
type compiler struct {
	file *load.File
	p    *Pipeline
	env  *rules.Env
	errs config.Errors
	// wrongHelpers says that the errors of the helpers are among errs.
	wrongHelpers bool
}

// fail records an error at a path of the config file.
func (c *compiler) fail(path, fix, format string, args ...any) {
	c.errs = append(c.errs, c.file.Errorf(path, fix, format, args...))
}

// failOnce is fail for what every downstream would report again.
func (c *compiler) failOnce(path, fix, format string, args ...any) {
	c.addOnce(c.file.Errorf(path, fix, format, args...))
}

func (c *compiler) addOnce(e *config.Error) {
	for _, have := range c.errs {
		if *have == *e {
			return
		}
	}
	c.errs = append(c.errs, e)
}

func (c *compiler) lookUpKinds(o Options) error {
	op := &c.file.Operator
	up, err := RowKind(), error(nil)
	if op.Source == nil {
		up, err = lookUp(o, op.Watch.APIVersion, op.Watch.Kind)
	}
	if err != nil {
		return err
	}
	if up.Missing != nil && !errors.Is(up.Missing, kinds.ErrUnknown) {
		return up.Missing
	}
	c.p.Upstream = *up
	for i := range op.Downstreams {
		cfg := &op.Downstreams[i]
		kind, err := lookUp(o, cfg.APIVersion, cfg.Kind)
		if err != nil {
			return err
		}
		d := &operator.Downstream{Index: i, Name: cfg.Name, Config: cfg, Kind: *kind}
		if d.OwnsFields() {
			d.HashPrefix = marks.FieldsHashPrefix
		}
		c.p.addDownstream(d)
	}
	for i := range op.Inputs {
		cfg := &op.Inputs[i]
		kind, err := inputRowKind(), error(nil)
		if cfg.SQL == nil {
			kind, err = lookUp(o, cfg.APIVersion, cfg.Kind)
		}
		if err != nil {
			return err
		}
		c.p.Inputs = append(c.p.Inputs, &InputSource{Index: i, Name: cfg.Name, Config: cfg, Kind: *kind})
	}
	if c.p.StatusEnabled() {
		c.p.Storable = status.Probe(up.Schema)
		c.severalStored()
		c.p.StoresBaseline = c.p.Storable.StoresItem(c.file.Operator.Status.Downstreams, "baseline")
	}
	return c.lookUpBefore(o)
}

// severalStored refuses a list of downstreams that takes one item for each name where a downstream has several objects.
func (c *compiler) severalStored() {
	path := c.file.Operator.Status.Downstreams
	keys := c.p.Storable.KeyedBy(path)
	if len(keys) == 0 || slices.Contains(keys, "objectName") || !slices.ContainsFunc(c.p.Settings.Downstreams, (*operator.Downstream).Several) {
		return
	}
	c.fail("status.downstreams", "set x-kubernetes-list-type: atomic there in the CustomResourceDefinition; corollary generate crd-status prints it",
		"%s stores one item for each %s, and a downstream with forEach has one for each object", path, strings.Join(keys, " and "))
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

// hasReported warns of a kind that has no place for the status which the config writes, or one that is everybody's.
func (c *compiler) hasReported() {
	up := c.p.Upstream
	if up.GVR.Empty() || up.HasStatus || !c.p.StatusEnabled() {
		return
	}
	problem, fix := fmt.Sprintf("%s has no status subresource: whoever may edit one may write its status", up.GVK.Kind),
		"add the subresource to the CustomResourceDefinition (subresources: {status: {}})"
	if kinds.IsBuiltin(up.GVK.GroupKind()) {
		problem, fix = fmt.Sprintf("%s is a built-in kind without a status", up.GVK.Kind), "set status.enabled: false"
	}
	c.warn(*c.file.Errorf("status", fix, "%s", problem))
}

// lookUp asks the source; an unknown kind is taken for a namespaced one without a schema.
func lookUp(o Options, apiVersion, kind string) (*kinds.Kind, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	k, err := o.Kinds.Kind(gvk)
	switch {
	case err != nil && o.Live:
		return &kinds.Kind{GVK: gvk, Namespaced: true, Missing: err}, nil
	case errors.Is(err, kinds.ErrUnknown):
		return &kinds.Kind{GVK: gvk, Namespaced: true}, nil
	}
	return k, err
}

func (c *compiler) names() {
	conv := c.file.Operator.Conventions
	c.p.Algorithm = drift.Algorithm(conv.Hash.Algorithm)
	c.p.Hash = drift.Key{Annotation: conv.Hash.Annotation, Label: conv.Hash.Label}
	c.p.Previous = marks.PreviousOf(&conv)
	if path := c.file.Operator.Status.Downstreams; path != "" {
		c.p.DownstreamsPath, _ = fieldpath.Parse(path) // the loader reports what does not parse
	}
}

func (c *compiler) newEnv(v *version.Version) (*rules.Env, error) {
	schemas, several := make(map[string]*spec.Schema, len(c.p.Downstreams)), map[string]bool{}
	for _, d := range c.p.Downstreams {
		schemas[d.Name], several[d.Name] = d.Kind.Schema, d.Several()
	}
	apart := map[string]*spec.Schema{}
	if c.p.Before != nil {
		apart[operator.BeforeName] = c.p.Before.Object.Kind.Schema
	}
	lists := map[string]*spec.Schema{}
	for _, s := range c.p.Inputs {
		if s.Config.List != nil {
			lists[s.Name] = s.Kind.Schema
		}
	}
	return rules.NewEnv(rules.EnvOptions{Version: v, Self: c.p.Upstream.Schema, Downstreams: schemas, ForEach: several, Apart: apart, Lists: lists})
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
		c.p.readsStatus = c.p.readsStatus || readsStatus(validator.Reads)
	}
}

func (c *compiler) statusFields() {
	if !c.p.StatusEnabled() {
		return
	}
	for i, f := range c.file.Operator.Status.Fields {
		if path, err := fieldpath.Parse(f.Path); err == nil && c.p.OnlyDeletes { // it stays as it is
			c.p.addField(path, nil)
		}
		if c.p.OnlyDeletes {
			continue
		}
		program := c.program(fmt.Sprintf("status.fields[%d].value", i), func() (*rules.Program, error) {
			return c.env.Any(f.Value, rules.Status, "")
		})
		if path, err := fieldpath.Parse(f.Path); err == nil {
			c.p.addField(path, program)
			c.statusField(i, path, program)
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
		c.fail(path, ve.Fix, "%s", ve.Problem)
		return
	case !errors.As(err, &ce):
		c.fail(path, "", "%v", err)
		return
	}
	e := c.file.Errorf(path, ce.Fix, "%s", ce.Problem)
	if file, line := c.file.TextPos(path); ce.Line > 1 && line > 0 {
		e.File, e.Line = file, line+ce.Line-1
	}
	c.errs = append(c.errs, e)
}
