package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/render"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// findSecrets finds what reads a Secret. It comes after everything else is compiled.
func findSecrets(c *compilation) {
	if isSecretKind(c.p.Upstream.GVK) {
		c.p.UpstreamWords = redact.NewWords()
	}
	for _, i := range c.p.Order { // whether those that one reads hold a value is known
		markSecretDocument(c, c.p.downstreams[i])
	}
	for i, d := range c.p.downstreams {
		markSecretRules(c, d)
		if d.rules.MessageFrom != nil && readsSecret(c, d.rules.MessageFrom.Reads, d) {
			refuseSecret(c, fmt.Sprintf("downstreams[%d].ready.messageFrom", i), "a condition")
		}
	}
	if h, d := c.p.Before, c.before; d != nil {
		markSecretDocument(c, d)
		h.HidesValues = programReadsSecret(c, h.Done, d) || programReadsSecret(c, h.Failed, d) || programReadsSecret(c, d.When, nil)
	}
	c.p.QuietRules = make([]bool, len(c.file.Operator.Validate))
	for i := range c.p.QuietRules {
		if c.p.Validator == nil {
			break
		}
		part := func(part rules.Part) reader {
			return func(variable string) ([][]string, bool) { return c.p.Validator.ReadsOf(i, part, variable) }
		}
		c.p.QuietRules[i] = readsSecret(c, part(rules.PartRule), nil)
		if readsSecret(c, part(rules.PartMessageExpression), nil) {
			refuseSecret(c, fmt.Sprintf("validate[%d].messageExpression", i), "a condition")
		}
	}
	markSecretInputs(c)
	for i, program := range c.p.Fields {
		if programReadsSecret(c, program, nil) && !isBool(program) {
			refuseSecret(c, fmt.Sprintf("status.fields[%d].value", i), "a status")
		}
	}
}

// markSecretInputs marks the inputs for which errors of expressions can quote a value.
func markSecretInputs(c *compilation) {
	for _, s := range c.p.Inputs {
		ofObject := s.Matching != nil && isSecretKind(s.Kind.GVK) && reaches(s.Matching.Reads, "object", "")
		s.HidesValues = ofObject || programReadsSecret(c, s.ObjectName, nil) || programReadsSecret(c, s.Matching, nil)
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

// markSecretDocument finds out whether the document of a downstream can hold values of a Secret, and whether errors of making it
// can quote one. A digest of a value is none.
func markSecretDocument(c *compilation, d *downstream) {
	secretItems := programReadsSecret(c, d.Items, nil)
	d.HidesValues = isSecretKind(c.p.Upstream.GVK) || secretItems || programReadsSecret(c, d.When, nil)
	hidden := isSecretKind(d.GVK()) || isSecretKind(c.p.Upstream.GVK) || secretItems
	texts := conventionTexts(c, d)
	if d.Template != nil {
		texts = append(texts, readingOf(c, d.Template))
	}
	for _, t := range texts {
		d.HidesValues = d.HidesValues || templateReadsSecret(c, t.InputReads)
		hidden = hidden || templateReadsSecret(c, t.InputShown)
	}
	if c.p.OnlyDeletes && d.Index != operator.BeforeIndex { // what the template read is not known
		d.Words = redact.NewWords()
		return
	}
	if !hidden {
		return
	}
	conv := c.file.Operator.Conventions
	author := []string{d.source.text}
	for _, entries := range []map[string]string{conv.Labels, conv.Annotations} {
		author = append(author, slices.Concat(slices.Collect(maps.Keys(entries)), slices.Collect(maps.Values(entries)))...)
	}
	d.Words = redact.NewWords(author...)
}

// markSecretRules marks the ready rules whose errors can quote a value.
func markSecretRules(c *compilation, d *downstream) {
	for _, list := range [][]health.Rule{d.rules.Ready, d.rules.Failed} {
		for i := range list {
			list[i].HidesValues = programReadsSecret(c, list[i].Program, d)
		}
	}
}

func programReadsSecret(c *compilation, p *rules.Program, d *downstream) bool {
	return p != nil && readsSecret(c, p.Reads, d)
}

// readsSecret reports whether an expression reads what a Secret holds. d is its own downstream, if it has one.
func readsSecret(c *compilation, reads reader, d *downstream) bool {
	for _, s := range c.p.Inputs {
		if isSecretKind(s.Kind.GVK) && reaches(reads, "inputs", s.Name) {
			return true
		}
	}
	for _, other := range c.p.downstreams {
		if other.Hidden() && reaches(reads, "downstreams", other.Name) {
			return true
		}
	}
	return isSecretKind(c.p.Upstream.GVK) && reaches(reads, "self", "") || d != nil && d.Hidden() && reaches(reads, "downstream", "")
}

func templateReadsSecret(c *compilation, reads func(string) ([][]string, bool)) bool {
	return slices.ContainsFunc(c.p.Inputs, func(s *desired.InputSource) bool {
		return isSecretKind(s.Kind.GVK) && reaches(reads, s.Name, "")
	}) || slices.ContainsFunc(c.p.downstreams, func(d *downstream) bool {
		return d.Hidden() && reaches(reads, render.DownstreamKey(d.Name), "")
	})
}
