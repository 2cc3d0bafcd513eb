package compile

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/corollary-dev/corollary/pkg/canonical"
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

// One turns a loaded config into a Pipeline. Every error of rules, templates and expressions is reported at once, each
// with the line of the config file. A file in which the loader found errors may be compiled for its further errors;
// what comes of it must not be run. An error of the kind source other than kinds.ErrUnknown is returned as err.
func One(f *load.File, o Options) (*Pipeline, config.Errors, error) {
	settings := &operator.Settings{Name: f.Operator.Metadata.Name, Config: &f.Operator, OnlyDeletes: o.Deletions}
	c := &compilation{problems: problems{file: f},
		p: &Pipeline{Checks: &health.Checks{Renderer: &desired.Renderer{Settings: settings}},
			UpstreamReads: map[int][]check.Read{}}}
	if err := errors.Join(checkRequired(c, o), lookUpKinds(c, o), checkDescribed(c, o)); err != nil {
		return nil, nil, err
	}
	for _, misread := range f.MisreadKeys {
		c.warn(*misread)
	}
	setNames(c.p.Settings)
	checkWatched(c)
	checkStatusSubresource(c)
	var err error
	if c.env, err = newEnv(c.p, o.Version); err != nil {
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
	compileRollout(c)
	findSecrets(c)
	setViews(c.p)
	warnOfFeedback(c)
	if len(c.errs) > 0 {
		return nil, c.errs, nil
	}
	c.p.Warnings, c.p.Refusals = c.warnings, c.refusals
	return c.p, nil, nil
}

func setNames(s *operator.Settings) {
	conv := s.Config.Conventions
	s.Algorithm = canonical.Algorithm(conv.Hash.Algorithm)
	s.Hash = drift.Key{Annotation: conv.Hash.Annotation, Label: conv.Hash.Label}
	s.Previous = marks.PreviousOf(&conv)
	if path := s.Config.Status.Downstreams; path != "" {
		s.DownstreamsPath, _ = fieldpath.Parse(path) // the loader reports what does not parse
	}
}

func newEnv(p *Pipeline, v *version.Version) (*rules.Env, error) {
	schemas, several := make(map[string]*spec.Schema, len(p.downstreams)), map[string]bool{}
	for _, d := range p.downstreams {
		schemas[d.Name], several[d.Name] = d.Kind.Schema, d.Several()
	}
	apart := map[string]*spec.Schema{}
	if p.Before != nil {
		apart[operator.BeforeName] = p.Before.Object.Kind.Schema
	}
	lists := map[string]*spec.Schema{}
	for _, s := range p.Inputs {
		if s.Config.List != nil {
			lists[s.Name] = s.Kind.Schema
		}
	}
	return rules.NewEnv(rules.EnvOptions{Version: v, Self: p.Upstream.Schema, Downstreams: schemas, ForEach: several,
		Apart: apart, Lists: lists})
}
