package compile

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/render/check"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// File turns a loaded config into a Pipeline. Every error of rules, templates and expressions is reported at once,
// each with the line of the config file. A file in which the loader found errors may be compiled for its further errors;
// describe comes of it must not be run. An error of the kind source other than kinds.ErrUnknown is returned as err.
func File(f *load.File, o Options) (p *Pipeline, problems config.Errors, err error) {
	settings := &operator.Settings{Name: f.Operator.Metadata.Name, Config: &f.Operator, OnlyDeletes: o.Deletions}
	c := &compilation{file: f, p: &Pipeline{Checks: &health.Checks{Renderer: &desired.Renderer{Settings: settings}}, UpstreamReads: map[int][]check.Read{}}}
	if err := errors.Join(checkRequired(c, o), lookUpKinds(c, o), checkDescribed(c, o)); err != nil {
		return nil, nil, err
	}
	for _, misread := range f.MisreadKeys {
		c.warn(*misread)
	}
	setNames(c)
	checkWatched(c)
	checkStatusSubresource(c)
	if c.env, err = newEnv(c, o.Version); err != nil {
		return nil, nil, fmt.Errorf("preparing the CEL environment: %w", err)
	}
	readParameters(c)
	compileVariables(c)
	checkHelpers(c)
	compileInputs(c)
	compileMatchConditions(c)
	compileValidation(c)
	for i := range f.Operator.Downstreams {
		compileDownstream(c, i)
	}
	findSiblings(c)
	noteConventionReads(c)
	compileBefore(c)
	compileStatusFields(c)
	findSecrets(c)
	setViews(c)
	warnOfFeedback(c)
	if len(c.errs) > 0 {
		return nil, c.errs, nil
	}
	return c.p, nil, nil
}

func setNames(c *compilation) {
	conv := c.file.Operator.Conventions
	c.p.Algorithm = drift.Algorithm(conv.Hash.Algorithm)
	c.p.Hash = drift.Key{Annotation: conv.Hash.Annotation, Label: conv.Hash.Label}
	c.p.Previous = marks.PreviousOf(&conv)
	if path := c.file.Operator.Status.Downstreams; path != "" {
		c.p.DownstreamsPath, _ = fieldpath.Parse(path) // the loader reports what does not parse
	}
}

func newEnv(c *compilation, v *version.Version) (*rules.Env, error) {
	schemas, several := make(map[string]*spec.Schema, len(c.p.downstreams)), map[string]bool{}
	for _, d := range c.p.downstreams {
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
