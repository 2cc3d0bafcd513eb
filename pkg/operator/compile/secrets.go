package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render/parsing"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// findSecrets finds what reads a Secret. It comes after everything else is compiled.
func findSecrets(c *compilation) {
	if isSecretKind(c.p.Upstream.GVK) {
		c.p.UpstreamWords = redact.NewWords()
	}
	for _, i := range c.p.Order { // whether those that one reads hold a value is known
		markSecretDocument(c.p, c.p.downstreams[i])
	}
	for i, d := range c.p.downstreams {
		markSecretRules(c.p, d)
		if d.rules.MessageFrom != nil && readsSecret(c.p, d.rules.MessageFrom.Reads, d) {
			refuseSecret(c, fmt.Sprintf("downstreams[%d].ready.messageFrom", i), "a condition")
		}
	}
	if h, d := c.p.Before, c.p.before; d != nil {
		markSecretDocument(c.p, d)
		h.HidesValues = programReadsSecret(c.p, h.Done, d) || programReadsSecret(c.p, h.Failed, d) ||
			programReadsSecret(c.p, d.When, nil)
	}
	c.p.QuietRules = make([]bool, len(c.file.Operator.Validate))
	for i := range c.p.QuietRules {
		if c.p.Validator == nil {
			break
		}
		c.p.QuietRules[i] = readsSecret(c.p, readsOfRule(c.p.Validator, i, rules.PartRule), nil)
		if readsSecret(c.p, readsOfRule(c.p.Validator, i, rules.PartMessageExpression), nil) {
			refuseSecret(c, fmt.Sprintf("validate[%d].messageExpression", i), "a condition")
		}
	}
	markSecretInputs(c.p)
	for i, program := range c.p.Fields {
		if programReadsSecret(c.p, program, nil) && !isBool(program) {
			refuseSecret(c, fmt.Sprintf("status.fields[%d].value", i), "a status")
		}
	}
}

// markSecretInputs marks the inputs for which errors of expressions can quote a value.
func markSecretInputs(p *Pipeline) {
	for _, s := range p.Inputs {
		ofObject := s.Matching != nil && isSecretKind(s.Kind.GVK) && reaches(s.Matching.Reads, "object", "")
		s.HidesValues = ofObject || programReadsSecret(p, s.ObjectName, nil) || programReadsSecret(p, s.Matching, nil)
	}
}

func refuseSecret(c *compilation, path, where string) {
	c.fail(
		path,
		"read metadata.name or another field that is not a value, or return true or false",
		"it reads data of a Secret, and more people can read %s than the Secret",
		where,
	)
}

// markSecretDocument finds out whether the document of a downstream can hold values of a Secret, and whether errors of
// making it can quote one. A digest of a value is none.
func markSecretDocument(p *Pipeline, d *downstream) {
	secretItems := programReadsSecret(p, d.Items, nil)
	d.HidesValues = isSecretKind(p.Upstream.GVK) || secretItems || programReadsSecret(p, d.When, nil)
	hidden := isSecretKind(d.GVK()) || isSecretKind(p.Upstream.GVK) || secretItems
	texts := conventionTexts(p.Renderer, d)
	if d.template != nil {
		texts = append(texts, readingOf(p.Renderer, d.template))
	}
	for _, t := range texts {
		d.HidesValues = d.HidesValues || templateReadsSecret(p, t.InputReads)
		hidden = hidden || templateReadsSecret(p, t.InputShown)
	}
	if p.OnlyDeletes && d.Index != operator.BeforeIndex { // what the template read is not known
		d.Words = redact.NewWords()
		return
	}
	if !hidden {
		return
	}
	conv := p.Config.Conventions
	author := []string{d.source.text}
	for _, entries := range []map[string]string{conv.Labels, conv.Annotations} {
		author = append(author, slices.Concat(slices.Collect(maps.Keys(entries)), slices.Collect(maps.Values(entries)))...)
	}
	d.Words = redact.NewWords(author...)
}

// markSecretRules marks the ready rules whose errors can quote a value.
func markSecretRules(p *Pipeline, d *downstream) {
	for _, list := range [][]health.Rule{d.rules.Ready, d.rules.Failed} {
		for i := range list {
			list[i].HidesValues = programReadsSecret(p, list[i].Program, d)
		}
	}
}

func programReadsSecret(p *Pipeline, program *rules.Program, d *downstream) bool {
	return program != nil && readsSecret(p, program.Reads, d)
}

// readsSecret reports whether an expression reads what a Secret holds. d is its own downstream, if it has one.
func readsSecret(p *Pipeline, reads reader, d *downstream) bool {
	for _, s := range p.Inputs {
		if isSecretKind(s.Kind.GVK) && reaches(reads, "inputs", s.Name) {
			return true
		}
	}
	for _, other := range p.downstreams {
		if other.Hidden() && reaches(reads, "downstreams", other.Name) {
			return true
		}
	}
	return isSecretKind(p.Upstream.GVK) && reaches(reads, "self", "") || d != nil && d.Hidden() &&
		reaches(reads, "downstream", "")
}

func templateReadsSecret(p *Pipeline, reads func(string) ([][]string, bool)) bool {
	return slices.ContainsFunc(p.Inputs, func(s *desired.InputSource) bool {
		return isSecretKind(s.Kind.GVK) && reaches(reads, s.Name, "")
	}) || slices.ContainsFunc(p.downstreams, func(d *downstream) bool {
		return d.Hidden() && reaches(reads, parsing.DownstreamKey(d.Name), "")
	})
}
